#include "engine/exec/picture/preprocess.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "engine/exec/picture/warp.h"
#include "engine/exec/spec_line.h"
#include "shm/src/segments/segment_layout.h"

namespace leat::exec {
namespace {

constexpr bool subsampled(std::uint32_t format) { return format == LEAT_FORMAT_nv12 || format == LEAT_FORMAT_i420; }
constexpr Arrangement arrangement_of(std::uint32_t format) {
  switch (format) {
    case LEAT_FORMAT_nv12:
      return Arrangement::semi_planar;
    case LEAT_FORMAT_i420:
      return Arrangement::planar;
    case LEAT_FORMAT_gray8:
      return Arrangement::gray;
    default:
      return Arrangement::packed;
  }
}

// What red and blue weigh in Y (H.273, table 4).
struct Weights {
  float red, blue;
};
constexpr Weights weights_of(std::uint8_t matrix) {
  switch (matrix) {
    case LEAT_COLOR_MATRIX_bt709:
      return {0.2126f, 0.0722f};
    case LEAT_COLOR_MATRIX_bt2020:
      return {0.2627f, 0.0593f};
    default:
      return {0.299f, 0.114f};
  }
}

// Rows of (factor of each component, constant) that give R, G, B, all in pixel / 255.
struct ToRgb {
  float rows[3][4];
};
ToRgb to_rgb(std::uint32_t format, shm::Color color) {
  constexpr float k = 1.0f / 255;
  const bool limited = color.range == LEAT_COLOR_RANGE_limited;
  const float y = limited ? 1.0f / 219 : k, c = limited ? 1.0f / 224 : k, dark = limited ? -16.0f / 219 : 0.0f;
  if (format == LEAT_FORMAT_gray8) return {{{y, 0, 0, dark}, {y, 0, 0, dark}, {y, 0, 0, dark}}};
  if (format == LEAT_FORMAT_rgb24) return {{{k, 0, 0, 0}, {0, k, 0, 0}, {0, 0, k, 0}}};
  if (format == LEAT_FORMAT_bgr24) return {{{0, 0, k, 0}, {0, k, 0, 0}, {k, 0, 0, 0}}};
  const auto [kr, kb] = weights_of(color.matrix);
  const float kg = 1 - kr - kb;
  const float rv = 2 * (1 - kr) * c, bu = 2 * (1 - kb) * c, gu = -bu * kb / kg, gv = -rv * kr / kg;
  return {{{y, 0, rv, dark - 128 * rv}, {y, gu, gv, dark - 128 * (gu + gv)}, {y, bu, 0, dark - 128 * bu}}};
}

}  // namespace

namespace {

constexpr float kMaxOfUnit = 16;  // a mean or deviation above is meant for pixels from 0 to 255

// What value = (pixel / 255 - mean) / std stands for by name.
void set_norm(const std::string& name, PreprocessSpec& spec, SpecLine& words) {
  struct Norm {
    std::string_view name;
    std::array<float, 4> mean, deviation;
  };
  static constexpr float k = 1.0f / 255;
  static constexpr Norm kNorms[] = {
      {"unit", {0, 0, 0, 0}, {1, 1, 1, 1}},
      {"raw", {0, 0, 0, 0}, {k, k, k, k}},
      {"half", {0.5f, 0.5f, 0.5f, 0}, {0.5f, 0.5f, 0.5f, 1}},
      {"imagenet", {0.485f, 0.456f, 0.406f, 0}, {0.229f, 0.224f, 0.225f, 1}},
      {"clip", {0.48145466f, 0.4578275f, 0.40821073f, 0}, {0.26862954f, 0.26130258f, 0.27577711f, 1}}};
  const auto found = std::find_if(std::begin(kNorms), std::end(kNorms), [&](const Norm& n) { return n.name == name; });
  if (found == std::end(kNorms))
    return words.fail("norm=" + name + " is not known; write unit, raw, half, imagenet or clip");
  spec.mean = found->mean, spec.deviation = found->deviation;
}

}  // namespace

Result<PreprocessSpec> parse_preprocess(std::string_view line) {
  PreprocessSpec spec;
  SpecLine words("preprocess", line);
  if (words.word("raw")) spec.fit = Fit::raw;
  if (words.word("tensors")) spec.fit = Fit::tensors;
  const bool letterbox = words.word("letterbox");
  if (letterbox) spec.fit = Fit::letterbox;
  if (words.word("stretch")) spec.fit = Fit::stretch;
  if (words.word("rgb")) spec.channels = Channels::rgb;
  if (words.word("bgr")) spec.channels = Channels::bgr;
  if (words.word("gray")) spec.channels = Channels::gray;
  if (words.word("bt601")) spec.color.matrix = LEAT_COLOR_MATRIX_bt601;
  if (words.word("bt709")) spec.color.matrix = LEAT_COLOR_MATRIX_bt709;
  if (words.word("bt2020")) spec.color.matrix = LEAT_COLOR_MATRIX_bt2020;
  if (words.word("limited")) spec.color.range = LEAT_COLOR_RANGE_limited;
  if (words.word("full")) spec.color.range = LEAT_COLOR_RANGE_full;
  if (words.word("rgba")) spec.channels = Channels::rgba;
  spec.aspect = words.word("aspect");
  if (words.has("cover")) spec.fit = Fit::cover;
  words.number("cover", 0.1f, 1, &spec.cover);
  words.choice("at", {"centre", "topleft"}, [&](std::size_t i) { spec.top_left = i == 1; });
  if (const auto norm = words.text("norm")) set_norm(*norm, spec, words);
  const bool resizes = words.has("resize");
  words.choice("resize", {"linear", "antialias", "cubic", "area", "lanczos", "nearest"},
               [&](std::size_t i) { spec.resize = static_cast<std::uint32_t>(i); });
  words.number("crop", 0, 10, &spec.crop);
  words.number("pad", 0, 1, &spec.pad);
  words.numbers("mean", -1000, 1000, std::span(spec.mean).first(3));
  words.numbers("std", 1e-6f, 1000, std::span(spec.deviation).first(3));
  const auto of_bytes = [](float v) { return v > kMaxOfUnit; };
  if (std::any_of(spec.mean.begin(), spec.mean.end(), of_bytes) ||
      std::any_of(spec.deviation.begin(), spec.deviation.end(), of_bytes))
    words.fail("mean= and std= are of pixels from 0 to 1; of pixels from 0 to 255 write mean=123.675/255");
  spec.feeds = words.starting("feed.");
  words.size("size", &spec.width, &spec.height);
  spec.cut.quad = words.word("quad");
  if (words.word("flip")) spec.cut.flip = kFlipScore;
  words.number("flip", 0, 1, &spec.cut.flip);
  words.choice("align", {"face5"}, [&](std::size_t) { spec.cut.face = true; });
  spec.sizes = parse_sizes(words, letterbox);
  if (spec.sizes.varies()) {
    if (spec.width != 0) words.fail("size= is one size, longest= and height= let it vary; write either");
    if (spec.fit != Fit::letterbox && spec.fit != Fit::stretch)
      words.fail("longest= and height= do not suit " +
                 std::string(spec.fit == Fit::cover ? "cover=" : "raw and tensors"));
    spec.fit = spec.sizes.height != 0 ? Fit::line : letterbox ? Fit::letterbox : Fit::stretch;
    spec.top_left = true;
  }
  if (spec.cut.quad && spec.cut.face) words.fail("quad and align= are two ways to cut; write either");
  if (resizes && (spec.fit == Fit::raw || spec.fit == Fit::tensors))
    words.fail("resize= does not suit raw and tensors, which are not resized; leave it out");
  if (spec.resize != LEAT_RESIZE_linear && spec.cut.projected())
    words.fail("resize= does not suit quad and align=, whose crops are turned by linear interpolation; leave it out");
  if (spec.cut.flip <= 1 && !spec.cut.quad) words.fail("flip needs quad beside it");
  const auto status = words.finish(
      "raw, letterbox, stretch, cover=, rgb, bgr, gray, rgba, bt601, bt709, bt2020, limited, full, resize=, crop=, "
      "aspect, at=, pad=, "
      "norm=, mean=, std=, size=WxH, "
      "longest=, shortest=, edge=, multiple=, height=, widths=, wide=, quad, flip=, align=, tensors, feed.INPUT=");
  if (!status) return Error{status.error()};
  return spec;
}

std::string_view problem_of(const FrameView& frame) noexcept {
  const std::uint32_t planes = shm::plane_count(frame.format);
  if (planes == 0) return "unknown pixel format";
  if (frame.format == LEAT_FORMAT_tensors) return frame.planes[0] == nullptr ? "no tensors" : std::string_view{};
  if (frame.width == 0 || frame.height == 0 || frame.width > kMaxSide || frame.height > kMaxSide)
    return "width and height must be 1..16384";
  if (subsampled(frame.format) && (frame.width % 2 != 0 || frame.height % 2 != 0))
    return "nv12 and i420 need an even width and height";
  for (std::uint32_t p = 0; p < planes; ++p) {
    const shm::PlaneShape shape = shm::plane_shape(frame.format, p, frame.width, frame.height);
    if (frame.planes[p] == nullptr || frame.planes[p] < frame.planes[0]) return "a plane lies before its slot";
    if (frame.strides[p] < shape.row_bytes) return "a stride is shorter than its row";
    const auto from = static_cast<std::uint64_t>(frame.planes[p] - frame.planes[0]);
    const std::uint64_t bytes = std::uint64_t{frame.strides[p]} * (shape.rows - 1) + shape.row_bytes;
    if (from > frame.bytes || bytes > frame.bytes - from) return "a plane ends behind its slot";
  }
  return {};
}

Result<Preprocessor> Preprocessor::open(const PreprocessSpec& spec, std::uint32_t channel_count, std::uint32_t width,
                                        std::uint32_t height) {
  Preprocessor out;
  out.spec_ = spec;
  out.channel_count_ = channel_count, out.width_ = width, out.height_ = height;
  if (spec.fit == Fit::raw) return out;
  if (width == 0 || height == 0 || width > kMaxSide || height > kMaxSide)
    return Error{"preprocess: the model's input is not a picture of 1..16384 pixels a side; use 'raw'"};
  const std::uint32_t wanted = spec.channels == Channels::gray ? 1 : 3;
  if (channel_count != wanted) {
    return Error{"preprocess: the model's input has " + std::to_string(channel_count) +
                 " channels, and this line gives " + std::to_string(wanted) +
                 "; write 'gray' for 1, 'rgb' or 'bgr' for 3"};
  }
  if (spec.resize != LEAT_RESIZE_linear) {
    out.resizer_.open(spec.resize, channel_count, width, height);
    return out;
  }
  for (PixelTaps* taps : {&out.columns_, &out.chroma_columns_}) taps->reserve(width);
  for (PixelTaps* taps : {&out.rows_, &out.chroma_rows_}) taps->reserve(height);
  return out;
}

// The rectangle of all that the region shows: of the frame, or of the region's own picture.
Preprocessor::Window Preprocessor::whole_of(const FrameView& frame, const Region& region) const noexcept {
  const float w = static_cast<float>(frame.width), h = static_cast<float>(frame.height);
  Window out{.x0 = 0, .y0 = 0, .x1 = w, .y1 = h, .width = width_, .height = height_};
  if (!region.whole) {
    const Box around{0, 0, region.width, region.height};
    const Box* const box = region.projected ? &around : &region.box;
    float mx = spec_.crop * (box->x1 - box->x0), my = spec_.crop * (box->y1 - box->y0);
    if (spec_.aspect) {
      const float bw = box->x1 - box->x0 + 2 * mx, bh = box->y1 - box->y0 + 2 * my;
      const float ratio = static_cast<float>(width_) / static_cast<float>(height_);
      mx += std::max(bh * ratio - bw, 0.0f) / 2, my += std::max(bw / ratio - bh, 0.0f) / 2;
    }
    if (region.projected) {
      out.x0 = -mx, out.y0 = -my, out.x1 = region.width + mx, out.y1 = region.height + my;
      return out;
    }
    // Comparisons are written so that a value that is not a number becomes the frame's edge; at least one pixel is
    // left.
    const auto low = [](float v, float max) { return v > 0 ? std::min(v, max) : 0.0f; };
    const auto high = [](float v, float min, float max) { return v < max ? std::max(v, min) : max; };
    out.x0 = low(box->x0 - mx, w - 1), out.y0 = low(box->y0 - my, h - 1);
    out.x1 = high(box->x1 + mx, out.x0 + 1, w), out.y1 = high(box->y1 + my, out.y0 + 1, h);
  }
  return out;
}

// The part of it that is read.
Preprocessor::Window Preprocessor::source_of(const FrameView& frame, const Region& region) const noexcept {
  Window out = whole_of(frame, region);
  const Piece& piece = region.piece;
  const float across = out.x1 - out.x0;
  if (piece.to < 1) out.x1 = out.x0 + piece.to * across;
  if (piece.from > 0) out.x0 += piece.from * across;
  return out;
}

Size Preprocessor::size_of(const FrameView& frame, const Region& region) const noexcept {
  const Window s = source_of(frame, region);
  return spec_.sizes.size_of(s.x1 - s.x0, s.y1 - s.y0);
}

Pieces Preprocessor::pieces_of(const FrameView& frame, const Region& region) const noexcept {
  const Window w = whole_of(frame, region);
  return spec_.sizes.pieces_of(w.x1 - w.x0, w.y1 - w.y0);
}

Preprocessor::Window Preprocessor::window_of(const FrameView& frame, const Region& region) const noexcept {
  Window out = source_of(frame, region);
  if (spec_.fit == Fit::line) {
    std::uint32_t content = width_;
    (void)spec_.sizes.size_of(out.x1 - out.x0, out.y1 - out.y0, &content);
    out.width = std::min(content, width_);
  }
  if (spec_.fit == Fit::cover) {  // the middle that the input's proportions leave, and of it this part of the side
    const float sw = out.x1 - out.x0, sh = out.y1 - out.y0,
                scale = spec_.cover * std::min(sw / static_cast<float>(width_), sh / static_cast<float>(height_));
    const float half_w = scale * static_cast<float>(width_) / 2, half_h = scale * static_cast<float>(height_) / 2;
    const float cx = (out.x0 + out.x1) / 2, cy = (out.y0 + out.y1) / 2;
    out.x0 = cx - half_w, out.x1 = cx + half_w, out.y0 = cy - half_h, out.y1 = cy + half_h;
  }
  if (spec_.fit == Fit::letterbox) {
    const float sw = out.x1 - out.x0, sh = out.y1 - out.y0,
                scale = std::max(sw / static_cast<float>(width_), sh / static_cast<float>(height_));
    out.width = std::clamp(static_cast<std::uint32_t>(std::lround(sw / scale)), 1u, width_);
    out.height = std::clamp(static_cast<std::uint32_t>(std::lround(sh / scale)), 1u, height_);
    if (!spec_.top_left) out.left = (width_ - out.width) / 2, out.top = (height_ - out.height) / 2;
  }
  return out;
}

Placement Preprocessor::placement(const FrameView& frame, const Region& region) const noexcept {
  const Window w = window_of(frame, region);
  Placement p;
  p.scale_x = (w.x1 - w.x0) / static_cast<float>(w.width), p.scale_y = (w.y1 - w.y0) / static_cast<float>(w.height);
  p.input_width = static_cast<float>(width_), p.input_height = static_cast<float>(height_);
  p.offset_x = w.x0 - static_cast<float>(w.left) * p.scale_x, p.offset_y = w.y0 - static_cast<float>(w.top) * p.scale_y;
  return p;
}

void Preprocessor::lay_taps(const FrameView& frame, const Window& window) noexcept {
  const float sx = (window.x1 - window.x0) / static_cast<float>(window.width),
              sy = (window.y1 - window.y0) / static_cast<float>(window.height);
  laid_window_ = window;
  laid_width_ = frame.width, laid_height_ = frame.height;
  if (spec_.resize != LEAT_RESIZE_linear)
    return resizer_.lay(frame, {window.x0, window.y0, window.x1, window.y1, window.width, window.height});
  const std::uint32_t pixel = arrangement_of(frame.format) == Arrangement::packed ? 3 : 1;
  columns_.lay(window.x0, sx, window.width, frame.width, pixel);
  rows_.lay(window.y0, sy, window.height, frame.height, 1);
  if (subsampled(frame.format)) {
    chroma_columns_.lay(window.x0 / 2, sx / 2, window.width, frame.width / 2, frame.format == LEAT_FORMAT_nv12 ? 2 : 1);
    chroma_rows_.lay(window.y0 / 2, sy / 2, window.height, frame.height / 2, 1);
  }
}

shm::Color Preprocessor::color_of(const FrameView& frame) const noexcept {
  const shm::Color said = shm::has_matrix(frame.format) ? spec_.color : shm::Color{};
  return shm::color_of(said, frame.color, frame.format, frame.height);
}

bool Preprocessor::set_coefficients(const FrameView& frame) noexcept {
  const shm::Color color = color_of(frame);
  if (frame.format == laid_format_ && color == laid_color_) return false;
  const ToRgb rgb = to_rgb(frame.format, color);
  constexpr float kGray[] = {0.299f, 0.587f, 0.114f};
  for (std::uint32_t c = 0; c < channel_count_; ++c) {
    for (int i = 0; i < 4; ++i) {
      float v = rgb.rows[spec_.channels == Channels::bgr ? 2 - c : c][i];
      if (spec_.channels == Channels::gray)
        v = kGray[0] * rgb.rows[0][i] + kGray[1] * rgb.rows[1][i] + kGray[2] * rgb.rows[2][i];
      colour_.factors[c][i] = (v - (i == 3 ? spec_.mean[c] : 0)) / spec_.deviation[c];
    }
    colour_.low[c] = -spec_.mean[c] / spec_.deviation[c];
    colour_.high[c] = (1 - spec_.mean[c]) / spec_.deviation[c];
  }
  laid_format_ = frame.format;
  laid_color_ = color;
  return true;
}

void Preprocessor::fill_pad(const Window& w, float* out) const noexcept {
  const std::size_t plane = std::size_t{width_} * height_;
  for (std::uint32_t c = 0; c < channel_count_; ++c, out += plane) {
    const float v = (spec_.pad - spec_.mean[c]) / spec_.deviation[c];
    std::fill(out, out + std::size_t{w.top} * width_, v);
    std::fill(out + std::size_t{w.top + w.height} * width_, out + plane, v);
    if (w.width == width_) continue;
    for (std::uint32_t y = w.top; y < w.top + w.height; ++y) {
      float* row = out + std::size_t{y} * width_;
      std::fill(row, row + w.left, v);
      std::fill(row + w.left + w.width, row + width_, v);
    }
  }
}

bool Preprocessor::job(const FrameView& frame, const Box* box, leat_picture_job* out) noexcept {
  if (!problem_of(frame).empty()) return false;
  const Window w = window_of(frame, region_of(box));
  if (set_coefficients(frame)) laid_window_ = {};  // its taps were not laid
  *out = {};
  for (std::uint32_t p = 0; p < shm::plane_count(frame.format); ++p)
    out->planes[p] = frame.planes[p], out->strides[p] = frame.strides[p];
  out->slot = frame.on_device ? nullptr : frame.planes[0], out->slot_bytes = frame.bytes;
  out->format = frame.format, out->width = frame.width, out->height = frame.height;
  out->x0 = w.x0, out->y0 = w.y0, out->x1 = w.x1, out->y1 = w.y1;
  out->scale_x = (w.x1 - w.x0) / static_cast<float>(w.width),
  out->scale_y = (w.y1 - w.y0) / static_cast<float>(w.height);
  out->left = w.left, out->top = w.top, out->window_width = w.width, out->window_height = w.height;
  for (std::uint32_t c = 0; c < channel_count_; ++c) {
    std::copy_n(colour_.factors[c], 4, out->factors[c]);
    out->low[c] = colour_.low[c], out->high[c] = colour_.high[c];
    out->pad[c] = (spec_.pad - spec_.mean[c]) / spec_.deviation[c];
  }
  return true;
}

void Preprocessor::warp_into(const FrameView& frame, const Region& region, const Window& w, float* out) const noexcept {
  WarpJob job{.frame = &frame,
              .to_frame = region.to_frame,
              .x0 = w.x0,
              .y0 = w.y0,
              .scale_x = (w.x1 - w.x0) / static_cast<float>(w.width),
              .scale_y = (w.y1 - w.y0) / static_cast<float>(w.height),
              .colour = &colour_,
              .channels = channel_count_,
              .width = w.width,
              .height = w.height,
              .stride = width_};
  for (std::uint32_t c = 0; c < channel_count_; ++c)
    job.out[c] = out + c * std::size_t{width_} * height_ + std::size_t{w.top} * width_ + w.left;
  warp(job);
}

namespace {

constexpr std::uint32_t kRowsAhead = 3;
constexpr std::uintptr_t kLine = 64;

// Brings the source rows of a target row that is to come: gathers wait for each line that is not in a cache, and a
// picture that waited for its turn is in none.
class Fetcher {
 public:
  Fetcher(const std::uint8_t* plane, std::size_t stride, const PixelTaps& rows, const PixelTaps& columns,
          std::uint32_t width) noexcept
      : plane_(plane),
        stride_(stride),
        rows_(rows),
        from_(static_cast<std::size_t>(columns.offsets[0])),
        to_(static_cast<std::size_t>(columns.offsets[width - 1] + columns.step) + 1) {}

  void fetch(std::uint32_t row) noexcept {
    const auto first = static_cast<std::size_t>(rows_.offsets[row]);
    const std::size_t end = first + (rows_.step != 0 ? 2 : 1);
    for (std::size_t r = std::max(first, fetched_); r < end; ++r) {
      const auto at = reinterpret_cast<std::uintptr_t>(plane_ + r * stride_);
      for (std::uintptr_t line = (at + from_) / kLine * kLine; line < at + to_; line += kLine)
        __builtin_prefetch(reinterpret_cast<const void*>(line));
    }
    fetched_ = end;
  }

 private:
  const std::uint8_t* plane_;
  std::size_t stride_;
  const PixelTaps& rows_;
  std::size_t from_, to_;    // bytes of a row
  std::size_t fetched_ = 0;  // rows
};

}  // namespace

bool Preprocessor::run(const FrameView& frame, const Region& region, float* out) noexcept {
  if (frame.format == LEAT_FORMAT_tensors || !problem_of(frame).empty()) return false;
  const Window window = window_of(frame, region);
  const bool other_format = set_coefficients(frame);
  if (region.projected) {
    if (other_format) laid_window_ = {};  // its taps were not laid
    fill_pad(window, out);
    warp_into(frame, region, window, out);
    return true;
  }
  if (other_format || window != laid_window_ || frame.width != laid_width_ || frame.height != laid_height_)
    lay_taps(frame, window);
  fill_pad(window, out);
  const std::size_t plane = std::size_t{width_} * height_;
  if (spec_.resize != LEAT_RESIZE_linear) {
    float* to[3] = {};
    for (std::uint32_t c = 0; c < channel_count_; ++c)
      to[c] = out + c * plane + std::size_t{window.top} * width_ + window.left;
    resizer_.run(frame, colour_, to, width_);
    return true;
  }
  const bool chroma = subsampled(frame.format);
  const RowFunction row = row_function(arrangement_of(frame.format));
  RowJob job{.end = frame.planes[0] + frame.bytes,
             .columns = &columns_,
             .chroma_columns = &chroma_columns_,
             .colour = &colour_,
             .width = window.width,
             .channels = channel_count_};
  const std::uint32_t planes = shm::plane_count(frame.format);
  std::array<std::optional<Fetcher>, LEAT_MAX_PLANES> fetchers;
  for (std::uint32_t p = 0; p < planes; ++p)
    fetchers[p].emplace(frame.planes[p], frame.strides[p], p == 0 ? rows_ : chroma_rows_,
                        p == 0 ? columns_ : chroma_columns_, window.width);
  for (std::uint32_t y = 0; y < window.height; ++y) {
    for (std::uint32_t p = 0; p < planes; ++p) {
      if (y + kRowsAhead < window.height) fetchers[p]->fetch(y + kRowsAhead);
      const PixelTaps& taps = p == 0 ? rows_ : chroma_rows_;
      job.first[p] = frame.planes[p] + std::size_t{frame.strides[p]} * static_cast<std::size_t>(taps.offsets[y]);
      job.second[p] = job.first[p] + (taps.step != 0 ? frame.strides[p] : 0);
    }
    job.weight = rows_.weights[y];
    job.chroma_weight = chroma ? chroma_rows_.weights[y] : 0;
    for (std::uint32_t c = 0; c < channel_count_; ++c)
      job.out[c] = out + c * plane + std::size_t{window.top + y} * width_ + window.left;
    row(job);
  }
  return true;
}

}  // namespace leat::exec
