// boxes [layout=maps] ...: detectors' boxes, each layout decoded as its authors' own code does. A layout is a file of
// this folder, whose first lines say how its outputs read ([..] is one item, without the batch; coordinates are of the
// model's input), and a row of layouts.cpp. What several of them know:
// unit=px|one   coordinates are pixels (default), or parts of the picture (default of query)
// order=xyxy|yxyx|cxcywh   of split's and query's boxes
// act=none|sigmoid|softmax what makes scores of the values; softmax drops the last class (DETR's "nothing")
// first=0|1     number of the first class; the columns of query before it are no class
// score=, iou=  kept are boxes of at least this score that share at most this with a better one of their class; iou=1
//               keeps all (default where the graph has suppressed already)
#pragma once

#include <optional>

#include "engine/exec/decode/boxes/layout.h"
#include "engine/exec/decode/masks.h"
#include "engine/exec/decode/post.h"

namespace leat::exec {

class BoxesPost final : public Post {
 public:
  // The words behind `boxes`; fails `words` where they do not fit together.
  static BoxesSpec parse(SpecLine& words);
  static Result<std::unique_ptr<BoxesPost>> open(const BoxesSpec& spec, const PostSetting& setting);

  [[nodiscard]] std::vector<PartSpec> parts() const override { return parts_; }
  Answered run(std::span<const ItemTensor> outputs, const PostTarget& target) noexcept override;

 private:
  void declare_parts();
  [[nodiscard]] bool write(const BoxesInput& in, const PostTarget& target, const Candidate& c, leat_detection d,
                           std::uint32_t place) noexcept;
  // The directory's entry of the part that stands at `part` in parts_; null: it has none, or nobody asks for it.
  [[nodiscard]] leat_part* entry(const PostTarget& target, std::int32_t part) const noexcept {
    return part < 0 || target.parts == nullptr ? nullptr : target.parts + part;
  }

  BoxesSpec spec_;
  float width_ = 0, height_ = 0;  // of the model's picture
  std::unique_ptr<BoxLayout> layout_;
  std::optional<Masks> masks_;
  Candidates candidates_;
  std::vector<PartSpec> parts_;
  std::int32_t oriented_ = -1, points_ = -1, mask_part_ = -1;  // places in parts_; -1: none
};

}  // namespace leat::exec
