// A JPEG or PNG picture that a stranger sent, decoded: only those two decoders are ever opened, by the file's first
// bytes, and sides are bounded before anything is allocated for them. One that is cut short or damaged is refused as
// far as its format tells: every cut, every byte of a PNG, and of a JPEG what its decoder cannot read. Any thread.
// Errors: one line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "leat/result.hpp"
#include "tools/leat/feed/source/upright.h"

namespace leat::gateway {

inline constexpr std::uint32_t kMaxPictureSide = 8192;

// JPEG's 4:2:0 and grey keep their values, as i420 of full range by BT.601, which is what JPEG means. Everything else
// is rgb24: JPEG of more chroma, CMYK, PNG; transparency is left out, and of 16 bits the upper 8 stay.
struct DecodedPicture {
  std::uint32_t format = LEAT_FORMAT_i420;
  std::vector<std::uint8_t> pixels;  // as stored: three planes, or rows of three bytes a pixel
  std::uint32_t width = 0, height = 0;
  tools::Turn turn;  // how it is to be shown; rgb24 is turned already
  // Of the slot it is written into: turned, and of i420 each side even.
  [[nodiscard]] std::uint32_t shown_width() const noexcept { return shown(turn.swaps_sides() ? height : width); }
  [[nodiscard]] std::uint32_t shown_height() const noexcept { return shown(turn.swaps_sides() ? width : height); }
  void write(const leat_frame& slot) const;

 private:
  [[nodiscard]] std::uint32_t shown(std::uint32_t side) const noexcept {
    return format == LEAT_FORMAT_i420 ? side & ~1U : side;
  }
};
Result<DecodedPicture> decode_picture(std::span<const std::byte> file);

}  // namespace leat::gateway
