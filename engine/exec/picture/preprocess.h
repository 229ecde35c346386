// From a frame slot to a model's input in one pass: crop or letterbox, resize, colour conversion and normalisation,
// planar float32 (NCHW), nothing written but the input's row.
//
// One line of text describes it (a module's `preprocess`), words in any order:
//   raw                    no conversion: the executor takes the frame's bytes where they are
//   letterbox | stretch    keep the picture's proportions and fill the rest with `pad`, or fill the whole input
//   (default letterbox) crop=0.1               behind a fan-out: widen the detection's box by this part of its side
//   each way (default 0) rgb | bgr | gray       channel order of the model's input (default rgb) mean=A[,B,C]
//   std=A[,B,C]   value = (pixel / 255 - mean) / std (default 0 and 1) pad=V                  pixel / 255 of the filled
//   part (default 0.5) bt601 | bt709 | bt2020, limited | full   matrix and range that nv12 and i420 frames are read
//   with whatever they state, as the model was trained (default: as each frame states, FrameView::color)
//   resize=linear|antialias|cubic|area|lanczos|nearest   as OpenCV's INTER_LINEAR (default), Pillow's BILINEAR and
//   BICUBIC, OpenCV's INTER_AREA, Pillow's LANCZOS and NEAREST
//   quad, flip, align=face5: crop.h   longest=, shortest=, multiple=, height=, widths=, wide=: sizes.h
//
// Geometry: the source rectangle [x0, x1) x [y0, y1) is the frame, or the box widened and clipped to the frame. Target
// pixel i lies at x0 + (i + 0.5) * scale - 0.5 in frame pixels; bilinear between the four pixels (each plane's own)
// round that point, never outside of the frame; other ways to resize weigh more of them (kernel.h). Placement maps
// back: frame = offset + scale * input.
//
// Thread rule: a Preprocessor is used by one thread. Errors: parse() and open() one line; run() returns false for a
// frame whose geometry is unusable (unknown format, no pixels, planes longer than the slot) and writes nothing then.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/exec/device.h"
#include "engine/exec/frame_view.h"
#include "engine/exec/picture/crop.h"
#include "engine/exec/picture/resample.h"
#include "engine/exec/picture/resize.h"
#include "engine/exec/picture/sizes.h"
#include "leat/result.hpp"

namespace leat::exec {

enum class Fit : std::uint8_t { raw, tensors, letterbox, stretch, cover, line };  // line: of fixed height, at the left
enum class Channels : std::uint8_t { rgb, bgr, gray, rgba };

struct PreprocessSpec {
  Fit fit = Fit::letterbox;
  Channels channels = Channels::rgb;
  shm::Color color;  // what is not unspecified holds for every nv12 and i420 frame
  std::uint32_t resize = LEAT_RESIZE_linear;
  float crop = 0, cover = 1;
  bool aspect = false;    // the box grows to the input's proportions
  bool top_left = false;  // where a letterbox lies
  std::array<float, 4> mean = {0, 0, 0, 0}, deviation = {1, 1, 1, 1};
  float pad = 0.5f;
  std::uint32_t width = 0, height = 0;  // of the model's input, where the model leaves it open; 0: the model's
  CropSpec cut;
  SizeRule sizes;
  std::vector<std::pair<std::string, std::string>> feeds;  // input, word (model_inputs.h)
};
Result<PreprocessSpec> parse_preprocess(std::string_view line);

// frame = offset + scale * input, in pixels of each; what post-processing needs to give boxes in frame pixels.
struct Placement {
  float offset_x = 0, offset_y = 0, scale_x = 1, scale_y = 1;
  float input_width = 0, input_height = 0;  // of this item's picture; 0: as the model's, which is fixed
};

class Preprocessor {
 public:
  Preprocessor() = default;
  // width, height, channel_count: of the model's input, the largest where it varies. Error: channel_count does not suit
  // spec.channels.
  static Result<Preprocessor> open(const PreprocessSpec& spec, std::uint32_t channel_count, std::uint32_t width,
                                   std::uint32_t height);

  // Where it varies: the size that this picture of the frame is given; {0, 0}: it has no sides. Calls that follow give
  // pictures of the size that was set.
  [[nodiscard]] Size size_of(const FrameView& frame, const Region& region) const noexcept;
  // How it is shown where it is wider than any picture that is given.
  [[nodiscard]] Pieces pieces_of(const FrameView& frame, const Region& region) const noexcept;
  void set_size(Size size) noexcept { width_ = size.width, height_ = size.height; }

  // out: channel_count planes of height x width floats. No allocation.
  bool run(const FrameView& frame, const Region& region, float* out) noexcept;
  // The same for upright boxes; null for the whole frame.
  bool run(const FrameView& frame, const Box* box, float* out) noexcept { return run(frame, region_of(box), out); }
  // The same as a device's job: everything but `out`. Planes and slot stay host addresses.
  bool job(const FrameView& frame, const Box* box, leat_picture_job* out) noexcept;
  // The same geometry without touching a pixel.
  [[nodiscard]] Placement placement(const FrameView& frame, const Region& region) const noexcept;
  [[nodiscard]] Placement placement(const FrameView& frame, const Box* box) const noexcept {
    return placement(frame, region_of(box));
  }

  [[nodiscard]] const PreprocessSpec& spec() const noexcept { return spec_; }

 private:
  struct Window {
    float x0 = 0, y0 = 0, x1 = 0, y1 = 0;                    // source rectangle, frame pixels
    std::uint32_t left = 0, top = 0, width = 0, height = 0;  // of the target that it fills
    bool operator==(const Window&) const = default;
  };
  static Region region_of(const Box* box) noexcept {
    return box != nullptr ? Region{.whole = false, .box = *box} : Region{};
  }
  Window whole_of(const FrameView& frame, const Region& region) const noexcept;
  Window source_of(const FrameView& frame, const Region& region) const noexcept;
  Window window_of(const FrameView& frame, const Region& region) const noexcept;
  void warp_into(const FrameView& frame, const Region& region, const Window& window, float* out) const noexcept;
  void lay_taps(const FrameView& frame, const Window& window) noexcept;
  void fill_pad(const Window& window, float* out) const noexcept;
  [[nodiscard]] shm::Color color_of(const FrameView& frame) const noexcept;
  // True: they are others than before.
  bool set_coefficients(const FrameView& frame) noexcept;

  PreprocessSpec spec_;
  std::uint32_t channel_count_ = 0, width_ = 0, height_ = 0;
  PixelTaps columns_, chroma_columns_, rows_, chroma_rows_;  // linear
  Resizer resizer_;                                          // not linear
  Colour colour_;
  Window laid_window_;  // what the taps were laid for
  std::uint32_t laid_format_ = 0, laid_width_ = 0, laid_height_ = 0;
  shm::Color laid_color_;
};

// Empty: every plane of the frame lies within its slot. Otherwise what is wrong.
[[nodiscard]] std::string_view problem_of(const FrameView& frame) noexcept;

}  // namespace leat::exec
