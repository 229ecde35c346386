#include "engine/exec/picture/resize.h"

#include <algorithm>
#include <span>

#include "engine/exec/picture/sizes.h"

namespace leat::exec {
namespace {

constexpr std::uint32_t kComponents = 3;
constexpr float kByte = 255;  // the largest value of a component

}  // namespace

void Resizer::open(std::uint32_t resize, std::uint32_t channels, std::uint32_t width, std::uint32_t height) {
  resize_ = resize, channels_ = channels;
  for (ColumnWeights* w : {&columns_, &half_columns_}) w->reserve(width, resize);
  for (RowWeights* w : {&rows_, &half_rows_}) w->reserve(height, resize);
  combined_.resize(std::size_t{kComponents} * kMaxSide + kSpare);
  across_.resize(std::size_t{kComponents} * width);
  if (overshoots(resize) && channels < kComponents) sums_.resize(std::size_t{kComponents} * width * height);
}

void Resizer::lay(const FrameView& frame, const Window& window) noexcept {
  window_ = window;
  source_count_ = 0;
  const auto add = [&](const Source& source) { sources_[source_count_++] = source; };
  const bool packed = frame.format == LEAT_FORMAT_rgb24 || frame.format == LEAT_FORMAT_bgr24;
  add({.plane = 0, .components = packed ? kComponents : 1});
  if (frame.format == LEAT_FORMAT_nv12) add({.plane = 1, .components = 2, .first = 1, .half = true});
  if (frame.format == LEAT_FORMAT_i420)
    for (const std::uint32_t plane : {1U, 2U}) add({.plane = plane, .first = plane, .half = true});
  components_ = frame.format == LEAT_FORMAT_gray8 ? 1 : kComponents;
  const bool two = enlarges(window.x0, window.x1, window.width) || enlarges(window.y0, window.y1, window.height);
  const Axis across{window.x0, window.x1, window.width, frame.width, resize_, two};
  const Axis down{window.y0, window.y1, window.height, frame.height, resize_, two};
  columns_.lay(across, window.width, false, kGroups[sources_[0].components - 1]);
  rows_.lay(down, window.height, false);
  if (source_count_ == 1) return;
  half_columns_.lay(across, window.width, true, kGroups[sources_[1].components - 1]);
  half_rows_.lay(down, window.height, true);
}

void Resizer::read_rows(const FrameView& frame, const Source& source, std::uint32_t first, std::uint32_t count,
                        const std::int16_t* weights, float low, float high) noexcept {
  const ColumnWeights& columns = source.half ? half_columns_ : columns_;
  const std::size_t stride = frame.strides[source.plane];
  passes().combine({.row = frame.planes[source.plane] + stride * first,
                    .stride = stride,
                    .count = count,
                    .weights = weights,
                    .begin = std::size_t{columns.begin} * source.components,
                    .end = std::size_t{columns.end} * source.components,
                    .out = combined_.data()});
  AcrossJob job{.row = combined_.data(), .columns = &columns, .width = window_.width, .low = low, .high = high};
  for (std::uint32_t c = 0; c < source.components; ++c)
    job.out[c] = across_.data() + std::size_t{source.first + c} * window_.width;
  passes().across[source.components - 1](job);
}

// Into the target rows from `target` on that it belongs to.
void Resizer::add_row(const Source& source, std::uint32_t row, std::uint32_t target, float* const sums[3],
                      std::uint32_t stride) const noexcept {
  const RowWeights& rows = rows_of(source);
  for (std::uint32_t t = target; t < window_.height && rows.first[t] <= row; ++t) {
    if (row >= rows.end[t]) continue;
    for (std::uint32_t c = source.first; c < source.first + source.components; ++c)
      passes().down(across_.data() + std::size_t{c} * window_.width, rows.weight(t, row), row == rows.first[t],
                    window_.width, sums[c] + std::size_t{t} * stride);
  }
}

void Resizer::run_down_first(const FrameView& frame, const Colour& colour, float* const out[3],
                             std::uint32_t stride) noexcept {
  const float* read[kComponents];
  for (std::uint32_t c = 0; c < kComponents; ++c) read[c] = across_.data() + std::size_t{c} * window_.width;
  for (std::uint32_t y = 0; y < window_.height; ++y) {
    for (const Source& s : std::span(sources_).first(source_count_)) {
      const RowWeights& rows = rows_of(s);
      read_rows(frame, s, rows.first[y], rows.end[y] - rows.first[y], rows.whole.data() + rows.at[y], 0, kByte);
    }
    float* to[kComponents] = {};
    for (std::uint32_t c = 0; c < channels_; ++c) to[c] = out[c] + std::size_t{y} * stride;
    passes().colour(read, components_, colour, channels_, window_.width, to);
  }
}

void Resizer::run_across_first(const FrameView& frame, const Colour& colour, float* const out[3],
                               std::uint32_t stride) noexcept {
  const bool in_place = channels_ == kComponents;
  const std::uint32_t sums_stride = in_place ? stride : window_.width;
  float* sums[kComponents] = {};
  for (std::uint32_t c = 0; c < kComponents; ++c)
    sums[c] = in_place ? out[c] : sums_.data() + std::size_t{c} * window_.width * window_.height;
  std::uint32_t next[kComponents] = {};  // row of each source
  for (std::uint32_t y = 0; y < window_.height; ++y) {
    for (std::uint32_t i = 0; i < source_count_; ++i) {
      const Source& s = sources_[i];
      const bool luma = source_count_ > 1 && !s.half;
      const float low = luma ? luma_at(colour.factors[0], colour.low[0]) : 0,
                  high = luma ? luma_at(colour.factors[0], colour.high[0]) : kByte;
      for (next[i] = std::max(next[i], rows_of(s).first[y]); next[i] < rows_of(s).end[y]; ++next[i]) {
        read_rows(frame, s, next[i], 1, nullptr, low, high);
        add_row(s, next[i], y, sums, sums_stride);
      }
    }
    const float* done[kComponents] = {};
    float* to[kComponents] = {};
    for (std::uint32_t c = 0; c < kComponents; ++c) {
      done[c] = sums[c] + std::size_t{y} * sums_stride;
      if (c < channels_) to[c] = out[c] + std::size_t{y} * stride;
    }
    passes().colour(done, components_, colour, channels_, window_.width, to);
  }
}

void Resizer::run(const FrameView& frame, const Colour& colour, float* const out[3], std::uint32_t stride) noexcept {
  if (overshoots(resize_))
    run_across_first(frame, colour, out, stride);
  else
    run_down_first(frame, colour, out, stride);
}

}  // namespace leat::exec
