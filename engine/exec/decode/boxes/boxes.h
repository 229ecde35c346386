// boxes layout=...: the published layouts of detectors beside `maps` and `rows` (postprocess.h), each decoded as its
// authors' own code does; [..] is one item, without the batch. Coordinates are of the model's input.
//   yolo8    one output [4 + C, m]: cx, cy, w, h, then C scores (Ultralytics v8 to 12, YOLOv9). extra=angle: the last
//   row
//            is an angle (obb); extra=points: K * 3 rows of x, y, score behind the scores (pose, with points=K);
//            extra=mask: K coefficients behind the scores, and prototypes (masks.h; seg)
//   yolo5    one output [m, 5 + C]: cx, cy, w, h, objectness, C scores; score = objectness * class (YOLOv5, v6, v7).
//            extra=points points=K: K pairs x, y behind the objectness (YOLOv5-face); extra=mask: K coefficients behind
//            the scores (YOLOv5 seg)
//   yolox    as yolo5, not decoded: centre = (p + cell) * stride, size = exp(p) * stride over strides 8, 16, 32
//   (Megvii) columns=A,B,...   one output [k, n] with these columns: x0 y0 x1 y1, or cx cy w h; s score, c class, b the
//   item
//                     within the batch, - ignored, a angle. Rows whose score is 0 fill up. extra=points: K * 3 columns
//                     behind them
//   split    outputs by name or type: boxes [k, 4], scores [k], labels [k] (classes), count (optional)
//   query    two outputs [k, 4] and [k, C]: boxes cx, cy, w, h and class scores or logits (DETR, RF-DETR); or one
//            [k, 4 + C] (RT-DETR as Ultralytics exports it)
//   levels   scores [k, 1], boxes [k, 4], points [k, 2 * P] for each of strides 8, 16, 32, or 8 to 128: distances to
//   the
//            sides from the cell's corner in strides, two anchors a cell, or one (SCRFD); or cls_8, obj_8, bbox_8,
//            kps_8 .. (YuNet): score = sqrt(cls * obj), centre = (cell + d) * stride, size = exp * stride
//   dfl      one output [m, C + 4 bins] over strides 8, 16, 32, 64, or scores [k, C] of each stride and then sides [k,
//   4
//            bins]: a side is stride * sum of i * softmax(its bins)_i from (cell + centre) * stride; bins=8, centre=0
//            (Li and others, "Generalized Focal Loss", 2020, as in NanoDet-plus; PicoDet has centre=0.5)
//   priors   set=retinaface|retinanet|blazeface|ultraface|palm|person: relative to prior boxes (priors.h)
// unit=px|one   coordinates are pixels (default), or parts of the picture (default of query)
// order=xyxy|yxyx|cxcywh   of split's and query's boxes
// act=none|sigmoid|softmax what makes scores of the values; softmax drops the last class (DETR's "nothing")
// first=0|1     number of the first class; the columns of query before it are no class
// score=, overlap=   kept at least and at most; overlap=1 keeps all (default where the graph has suppressed already)
//
// Oriented boxes are suppressed by the probabilistic intersection over union of Llerena, Zeni, Kristen and Jung,
// "Gaussian Bounding Boxes and Probabilistic Intersection-over-Union for Object Detection", 2021.
#pragma once

#include <optional>

#include "engine/exec/decode/boxes/priors.h"
#include "engine/exec/decode/masks.h"
#include "engine/exec/decode/post.h"

namespace leat::exec {

enum class BoxesLayout : std::uint8_t { yolo8, yolo5, yolox, columns, split, query, levels, priors, dfl };
enum class BoxOrder : std::uint8_t { xyxy, yxyx, cxcywh };

struct BoxesSpec {
  BoxesLayout layout = BoxesLayout::yolo8;
  std::vector<std::string> columns;
  bool unit_one = false;
  BoxOrder order = BoxOrder::xyxy;
  PriorSet set = PriorSet::retinaface;
  Activation act = Activation::none;
  std::uint32_t first = 0, points = 0, bins = 8;
  float centre = 0;  // of dfl's cells, in cells
  bool angle = false, mask = false;
  float score_least = 0.25f, overlap_most = 0.45f;
};

class BoxesPost final : public Post {
 public:
  // The words behind `boxes`, its layout taken already; fails `words` where they do not fit together.
  static BoxesSpec parse(const std::string& layout, SpecLine& words);
  static Result<std::unique_ptr<BoxesPost>> open(const BoxesSpec& spec, const PostSetting& setting);

  [[nodiscard]] std::vector<PartSpec> parts() const override { return parts_; }
  std::uint32_t run(std::span<const ItemTensor> outputs, const PostTarget& target) noexcept override;

 private:
  // In pixels of the model's input.
  struct Found {
    float cx = 0, cy = 0, w = 0, h = 0, angle = 0, score = 0;
    std::int32_t class_id = 0;
    std::uint32_t output = 0, source = 0;  // where its points are
  };
  struct Level {  // outputs of one stride
    std::uint32_t scores = 0, objects = 0, boxes = 0, points = UINT32_MAX;
    std::uint32_t stride = 8, columns = 0, anchors = 1;
    std::uint32_t first = 0, cells = 0;  // of dfl: its rows
  };
  Status resolve(const PostSetting& setting);
  Status resolve_levels(const PostSetting& setting);
  Status resolve_dfl(const PostSetting& setting);
  void add(Found f) noexcept;
  void gather(std::span<const ItemTensor> outputs) noexcept;
  void gather_yolo8(const ItemTensor& t) noexcept;
  void gather_rows(const ItemTensor& t) noexcept;  // yolo5, yolox
  void gather_columns(const ItemTensor& t) noexcept;
  void gather_split(std::span<const ItemTensor> outputs) noexcept;
  void gather_query(std::span<const ItemTensor> outputs) noexcept;
  void gather_levels(std::span<const ItemTensor> outputs) noexcept;
  void gather_dfl(std::span<const ItemTensor> outputs) noexcept;
  void gather_priors(std::span<const ItemTensor> outputs) noexcept;
  void suppress() noexcept;
  // Of yolo5: points stand between objectness and scores, coefficients of masks behind them.
  [[nodiscard]] std::size_t columns_behind() const noexcept {
    return 2 * spec_.points + (masks_ ? masks_->coefficients() : 0);
  }
  // Numbers that stand with a box behind its scores, in the last rows (yolo8) or columns.
  [[nodiscard]] float behind(const ItemTensor& t, const Found& f, std::size_t from_end) const noexcept;
  [[nodiscard]] std::size_t rows_behind() const noexcept {
    return 3 * spec_.points + (spec_.angle ? 1 : 0) + (masks_ ? masks_->coefficients() : 0);
  }
  [[nodiscard]] leat_keypoint point(std::span<const ItemTensor> outputs, const Found& f,
                                    std::uint32_t p) const noexcept;

  BoxesSpec spec_;
  float width_ = 0, height_ = 0;
  bool yunet_ = false;
  std::size_t classes_ = 0;  // that scores are of; 0: the outputs number them themselves
  std::uint32_t boxes_ = 0, scores_ = 0, labels_ = UINT32_MAX, count_ = UINT32_MAX;  // outputs
  std::vector<Level> levels_;
  std::optional<Masks> masks_;
  std::optional<Priors> priors_;
  std::vector<PartSpec> parts_;
  std::vector<Found> found_;  // room for every cell
  std::size_t found_count_ = 0;
};

}  // namespace leat::exec
