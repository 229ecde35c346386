// Resizing by weights (enum leat_resize but linear). Where no weight is below 0, the source rows of a target row are
// put together first, and the row that they give is resized along its length. Other kernels can leave the range of
// their source, which libraries clip between their passes: so each source row is resized along its length once,
// clipped, and added to the target rows that it belongs to, which lie in the model's input itself.
//
// A YUV frame's planes are resized, the smaller ones by what their pixels would weigh if they were enlarged linearly
// first, and converted to colours after that: equal to converting first where no colour lies outside of RGB.
//
// Thread rule: one thread. open() allocates, lay() and run() do not.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/exec/device.h"
#include "engine/exec/frame_view.h"
#include "engine/exec/picture/passes.h"
#include "engine/exec/picture/weights.h"

namespace leat::exec {

class Resizer {
 public:
  // width, height: of the largest target.
  void open(std::uint32_t resize, std::uint32_t channels, std::uint32_t width, std::uint32_t height);

  // For frames of this size and format: the source rectangle, in frame pixels, and how many target pixels share it.
  struct Window {
    float x0 = 0, y0 = 0, x1 = 0, y1 = 0;
    std::uint32_t width = 0, height = 0;
  };
  void lay(const FrameView& frame, const Window& window) noexcept;
  // out[c]: the window's first pixel of each channel; stride: values from row to row. Precondition: a frame without a
  // problem (problem_of), of the format and size that were laid.
  void run(const FrameView& frame, const Colour& colour, float* const out[3], std::uint32_t stride) noexcept;

 private:
  // What is read together: a plane, or a picture whose components alternate.
  struct Source {
    std::uint32_t plane = 0, components = 1, first = 0;  // the first of its components
    bool half = false;
  };
  [[nodiscard]] const RowWeights& rows_of(const Source& s) const noexcept { return s.half ? half_rows_ : rows_; }
  // Source rows into across_; their weights are not looked at where it is one.
  void read_rows(const FrameView& frame, const Source& source, std::uint32_t first, std::uint32_t count,
                 const std::int16_t* weights, float low, float high) noexcept;
  void add_row(const Source& source, std::uint32_t row, std::uint32_t target, float* const sums[3],
               std::uint32_t stride) const noexcept;
  void run_down_first(const FrameView& frame, const Colour& colour, float* const out[3], std::uint32_t stride) noexcept;
  void run_across_first(const FrameView& frame, const Colour& colour, float* const out[3],
                        std::uint32_t stride) noexcept;

  std::uint32_t resize_ = 0, channels_ = 0;
  ColumnWeights columns_, half_columns_;
  RowWeights rows_, half_rows_;
  Window window_;
  Source sources_[3];
  std::uint32_t source_count_ = 0, components_ = 0;
  std::vector<std::int16_t> combined_;  // a source row, its components as in the frame
  std::vector<float> across_;           // [component][target pixel]
  std::vector<float> sums_;             // [component][row][target pixel], where fewer channels are given than are read
};

}  // namespace leat::exec
