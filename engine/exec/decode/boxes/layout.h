// A layout of boxes: how one family of detectors writes its boxes into its outputs. Each is a file of its own in this
// folder, and a row of the table in layouts.cpp; boxes.h says what is the same for all of them.
//
// Thread rule: one thread. Errors: open() one line; the rest cannot fail. A row whose score, place or class is not
// finite is no box, and is noted; one below the least score is not looked at further, whatever its place is.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/exec/decode/activation.h"
#include "engine/exec/decode/boxes/suppression.h"
#include "engine/exec/decode/post.h"

namespace leat::exec {

enum class BoxOrder : std::uint8_t { xyxy, yxyx, cxcywh };
enum class PriorSet : std::uint8_t { retinaface, retinanet, blazeface, ultraface, palm, person };
struct LayoutRow;

// What the words behind `boxes` say. A layout looks at what concerns it.
struct BoxesSpec {
  const LayoutRow* layout = nullptr;
  std::vector<std::string> columns;
  bool unit_one = false;
  BoxOrder order = BoxOrder::xyxy;
  PriorSet set = PriorSet::retinaface;
  Activation act = Activation::none;
  std::uint32_t first = 0, points = 0, bins = 8;
  float stride = 8;                  // of maps' cells, in pixels
  float centre = 0;                  // of dfl's cells, in cells
  bool angle = false, mask = false;  // extra=
  float score_min = 0.25f, iou_max = 0.45f;
};

// One item as a layout reads it.
struct BoxesInput {
  std::span<const ItemTensor> outputs;
  float width = 0, height = 0;  // of the model's picture
  // From a box's parts of the picture (unit=one) to pixels.
  [[nodiscard]] float across(const BoxesSpec& s) const noexcept { return s.unit_one ? width : 1; }
  [[nodiscard]] float down(const BoxesSpec& s) const noexcept { return s.unit_one ? height : 1; }
};

// What a layout finds in one item: room is allocated once, and what exceeds it is not kept.
class Candidates {
 public:
  void allocate(std::size_t max, float score_min) { all_.resize(max), score_min_ = score_min; }
  // visible: where the frame lies in the model's picture.
  void begin(const Box& visible) noexcept { count_ = 0, not_finite_ = false, visible_ = visible; }

  [[nodiscard]] float score_min() const noexcept { return score_min_; }
  // Whether a row of this score can be a box. -inf is below every least score; infinity and what is no number are
  // noted.
  [[nodiscard]] bool reaches(float score) noexcept { return reaches(score, score_min_); }
  [[nodiscard]] bool reaches(float score, float min) noexcept {
    if (!(score < INFINITY)) not_finite_ = true;
    return score < INFINITY && score >= min;
  }
  // Takes the class that the outputs name, where `first` is the first one's number. False: it is none.
  [[nodiscard]] bool take_class(float named, std::uint32_t first, Candidate& c) noexcept;
  void add(const Candidate& c) noexcept;
  // Cut to what the frame shows before it is compared with others.
  void add_visible(Box box, float score, std::size_t class_id, std::size_t source) noexcept;
  [[nodiscard]] std::span<Candidate> found() noexcept { return {all_.data(), count_}; }
  void note_not_finite() noexcept { not_finite_ = true; }
  [[nodiscard]] bool not_finite() const noexcept { return not_finite_; }  // of what would have been a box

 private:
  std::vector<Candidate> all_;
  std::size_t count_ = 0;
  bool not_finite_ = false;
  float score_min_ = 0;
  Box visible_;
};

class BoxLayout {
 public:
  virtual ~BoxLayout() = default;
  virtual void gather(const BoxesInput& in, Candidates& out) noexcept = 0;
  // Point k of a kept box, in pixels of the model's picture; of layouts with points() alone.
  [[nodiscard]] virtual leat_keypoint point(const BoxesInput&, const Candidate&, std::uint32_t) const noexcept {
    return {};
  }
  // Coefficient k of a kept box's mask; of layouts that take extra=mask alone.
  [[nodiscard]] virtual float coefficient(const BoxesInput&, const Candidate&, std::size_t) const noexcept { return 0; }

  // That scores are of; 0: the outputs number them themselves.
  [[nodiscard]] std::size_t classes() const noexcept { return classes_; }
  [[nodiscard]] std::uint32_t points() const noexcept { return points_; }
  // As many boxes as the outputs can hold; 0: known only after a run.
  [[nodiscard]] std::size_t max_boxes() const noexcept { return max_boxes_; }

 protected:
  std::size_t classes_ = 0, max_boxes_ = 0;
  std::uint32_t points_ = 0;
};
using OpenedLayout = Result<std::unique_ptr<BoxLayout>>;

// What a layout is opened for. coefficients: of a box's mask (extra=mask), else 0.
struct LayoutSetting {
  const BoxesSpec& spec;
  const PostSetting& post;
  std::size_t coefficients = 0;

  [[nodiscard]] const ItemTensor& first() const noexcept { return post.outputs[0]; }
  // Its place among the outputs; kNoOutput: there is none of that name.
  [[nodiscard]] std::uint32_t named(std::string_view name) const noexcept;
  // "output0 [84, 8400] float32, ...".
  [[nodiscard]] std::string outputs_text() const;
};
inline constexpr std::uint32_t kNoOutput = UINT32_MAX;

// "postprocess: boxes layout=dfl needs ..."
[[nodiscard]] inline Error boxes_error(const std::string& what) { return Error{"postprocess: boxes " + what}; }

// A row of the table of layouts.
struct LayoutRow {
  std::string_view name;                 // layout=
  void (*words)(SpecLine&, BoxesSpec&);  // its defaults, then the words that it knows beside score= and iou=
  OpenedLayout (*open)(const LayoutSetting&);
  bool masks = false;  // takes extra=mask
};

// The words that most layouts know: unit= order= act= extra= first= points=.
void shared_words(SpecLine& words, BoxesSpec& spec);

}  // namespace leat::exec
