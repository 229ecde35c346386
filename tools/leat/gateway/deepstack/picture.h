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

struct DecodedPicture {
  std::vector<std::uint8_t> pixels;  // 4:2:0 in three planes, as stored
  std::uint32_t width = 0, height = 0;
  tools::Turn turn;  // how it is to be shown
  // Of the slot it is written into: turned, each side even.
  [[nodiscard]] std::uint32_t shown_width() const noexcept { return (turn.swaps_sides() ? height : width) & ~1U; }
  [[nodiscard]] std::uint32_t shown_height() const noexcept { return (turn.swaps_sides() ? width : height) & ~1U; }
  [[nodiscard]] tools::StoredPicture stored() const noexcept;
};
Result<DecodedPicture> decode_picture(std::span<const std::byte> file);

}  // namespace leat::gateway
