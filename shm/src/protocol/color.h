// The color range and matrix of a frame, from its descriptor to pre-processing: who says nothing gets what is said one
// level above (frame, stream, bitstream), and at the end the default rule of leat/frame_format.h. Values; any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "leat/frame_format.h"

namespace leat::shm {

struct alignas(2) Color {
  std::uint8_t range = LEAT_COLOR_RANGE_unspecified;    // leat_color_range
  std::uint8_t matrix = LEAT_COLOR_MATRIX_unspecified;  // leat_color_matrix
  bool operator==(const Color&) const = default;
};

inline constexpr std::uint32_t kDefaultBt709Lines = 720;  // frames of as many lines are BT.709 where nothing is stated

constexpr bool color_known(std::uint32_t range, std::uint32_t matrix) noexcept {
  return range <= LEAT_COLOR_RANGE_full && matrix <= LEAT_COLOR_MATRIX_bt2020;
}

// Of a plug-in's or a library's numbers: unknown ones are not stated.
constexpr Color color_from(std::uint32_t range, std::uint32_t matrix) noexcept {
  return color_known(range, matrix) ? Color{static_cast<std::uint8_t>(range), static_cast<std::uint8_t>(matrix)}
                                    : Color{};
}

// What `first` leaves unspecified is `second`'s.
constexpr Color color_or(Color first, Color second) noexcept {
  return {first.range != LEAT_COLOR_RANGE_unspecified ? first.range : second.range,
          first.matrix != LEAT_COLOR_MATRIX_unspecified ? first.matrix : second.matrix};
}

constexpr Color default_color(std::uint32_t format, std::uint32_t height) noexcept {
  return {format == LEAT_FORMAT_gray8 ? LEAT_COLOR_RANGE_full : LEAT_COLOR_RANGE_limited,
          height >= kDefaultBt709Lines ? LEAT_COLOR_MATRIX_bt709 : LEAT_COLOR_MATRIX_bt601};
}

// Never unspecified.
constexpr Color color_of(Color frame, Color stream, std::uint32_t format, std::uint32_t height) noexcept {
  return color_or(color_or(frame, stream), default_color(format, height));
}

// Whether pixels of the format mean different colors in different ranges, and by different matrices.
constexpr bool has_range(std::uint32_t format) noexcept {
  return format == LEAT_FORMAT_nv12 || format == LEAT_FORMAT_i420 || format == LEAT_FORMAT_gray8;
}
constexpr bool has_matrix(std::uint32_t format) noexcept {
  return format == LEAT_FORMAT_nv12 || format == LEAT_FORMAT_i420;
}

// Values of H.273 (H.264's and HEVC's VUI, AV1's and VP9's color configuration, FFmpeg's AVColorSpace).
constexpr std::uint8_t matrix_of_h273(unsigned code) noexcept {
  switch (code) {
    case 1:
      return LEAT_COLOR_MATRIX_bt709;
    case 4:  // FCC: within .004 of BT.601
    case 5:
    case 6:
      return LEAT_COLOR_MATRIX_bt601;
    case 9:
    case 10:  // constant luminance, read as the other: exact for gray alone
      return LEAT_COLOR_MATRIX_bt2020;
    default:
      return LEAT_COLOR_MATRIX_unspecified;
  }
}

constexpr std::string_view range_name(std::uint32_t range) noexcept {
  switch (range) {
#define X(name, value, text) \
  case value:                \
    return #name;
    LEAT_COLOR_RANGES(X)
#undef X
  }
  return "unknown";
}
constexpr std::string_view matrix_name(std::uint32_t matrix) noexcept {
  switch (matrix) {
#define X(name, value, text) \
  case value:                \
    return #name;
    LEAT_COLOR_MATRICES(X)
#undef X
  }
  return "unknown";
}

}  // namespace leat::shm
