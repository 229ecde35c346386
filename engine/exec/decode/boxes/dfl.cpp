// layout=dfl: one output [m, C + 4 bins] over strides 8, 16, 32, 64, or scores [k, C] of each stride and then sides [k,
// 4 bins]: a side is stride * sum of i * softmax(its bins)_i from (cell + centre) * stride; bins=8, centre=0 (Li and
// others, "Generalized Focal Loss", 2020, as in NanoDet-plus; PicoDet has centre=0.5).
#include <array>

#include "engine/exec/decode/boxes/layout.h"
#include "engine/exec/spec_line.h"

namespace leat::exec {
namespace {

constexpr std::uint32_t kMaxBins = 32;

class Dfl final : public BoxLayout {
 public:
  static OpenedLayout open(const LayoutSetting& s) {
    const std::size_t n = s.post.outputs.size();
    const ItemTensor& first = s.first();
    auto out = std::make_unique<Dfl>();
    out->bins_ = s.spec.bins, out->centre_ = s.spec.centre, out->together_ = n == 1;
    const Error wrong = boxes_error(
        "layout=dfl needs one output [m, C + 4 bins], or scores [k, C] and sides [k, 4 bins] of each of strides 8, 16, "
        "32 (and 64); the first is " +
        first.text());
    if (s.spec.bins > kMaxBins || (n != 1 && n != 6 && n != 8) || first.rank != 2) return wrong;
    const std::int64_t classes = first.last() - static_cast<std::int64_t>(out->together_ ? out->sides() : 0);
    if (classes < 1) return wrong;
    out->classes_ = static_cast<std::size_t>(classes);
    const auto levels = static_cast<std::uint32_t>(out->together_ ? 4 : n / 2);
    for (std::uint32_t l = 0; l < levels; ++l)
      if (!out->add(s.post, l, levels)) return wrong;
    if (out->together_ && first.shape[0] != static_cast<std::int64_t>(out->max_boxes_)) return wrong;
    return OpenedLayout(std::move(out));
  }

  void gather(const BoxesInput& in, Candidates& out) noexcept override {
    const std::size_t wide = classes_ + (together_ ? sides() : 0), wide_box = together_ ? wide : sides();
    for (const Grid& grid : grids_) {
      const ItemTensor &scores = in.outputs[grid.scores], &boxes = in.outputs[grid.boxes];
      const auto stride = static_cast<float>(grid.stride);
      for (std::size_t cell = 0; cell < grid.cells; ++cell) {
        const std::size_t row = grid.first + cell;
        const Largest best = largest_of(0, classes_, [&](std::size_t c) { return scores.at(row * wide + c); });
        if (!out.reaches(best.value)) continue;
        std::array<float, 4> to{};  // left, top, right, bottom
        for (std::size_t k = 0; k < 4; ++k)
          to[k] = stride * expected(boxes, row * wide_box + (together_ ? classes_ : 0) + k * bins_);
        const float x = (static_cast<float>(cell % grid.columns) + centre_) * stride,
                    y = (static_cast<float>(cell / grid.columns) + centre_) * stride;
        out.add({x + (to[2] - to[0]) / 2, y + (to[3] - to[1]) / 2, to[0] + to[2], to[1] + to[3], 0, best.value,
                 static_cast<std::int32_t>(best.place), 0, static_cast<std::uint32_t>(row)});
      }
    }
  }

 private:
  struct Grid {                           // one stride
    std::uint32_t scores = 0, boxes = 0;  // outputs
    std::uint32_t stride = 8, columns = 0;
    std::size_t first = 0, cells = 0;  // rows of the outputs
  };
  [[nodiscard]] std::size_t sides() const noexcept { return 4 * std::size_t{bins_}; }

  bool add(const PostSetting& post, std::uint32_t l, std::uint32_t levels) {
    const std::uint32_t stride = 8U << l;
    Grid grid{.scores = together_ ? 0 : l,
              .boxes = together_ ? 0 : levels + l,
              .stride = stride,
              .columns = (post.input_width + stride - 1) / stride};
    grid.cells = std::size_t{grid.columns} * ((post.input_height + stride - 1) / stride);
    if (together_) grid.first = max_boxes_;
    max_boxes_ += grid.cells;
    grids_.push_back(grid);
    return together_ || (post.outputs[grid.scores].count() == grid.cells * classes_ &&
                         post.outputs[grid.boxes].count() == grid.cells * sides());
  }
  // The mean of 0, 1, .. bins - 1, each as probable as the softmax of its value.
  [[nodiscard]] float expected(const ItemTensor& t, std::size_t at) const noexcept {
    const float largest = largest_of(0, bins_, [&](std::size_t i) { return t.at(at + i); }).value;
    float sum = 0, mean = 0;
    for (std::uint32_t i = 0; i < bins_; ++i) {
      const float p = std::exp(t.at(at + i) - largest);
      sum += p, mean += p * static_cast<float>(i);
    }
    return mean / sum;
  }

  std::uint32_t bins_ = 8;
  float centre_ = 0;
  bool together_ = false;  // one output has scores and sides of all levels
  std::vector<Grid> grids_;
};

}  // namespace

void dfl_words(SpecLine& words, BoxesSpec& spec) {
  shared_words(words, spec);
  words.whole("bins", 2, kMaxBins, &spec.bins);
  words.number("centre", 0, 1, &spec.centre);
}
OpenedLayout open_dfl(const LayoutSetting& s) { return Dfl::open(s); }

}  // namespace leat::exec
