#include "cuda/decode/access_unit.h"

#include <cstddef>

#include "leat/frame_format.h"

namespace leat::cuda {
namespace {

// Of the first slice, by the first byte behind each start code (00 00 01).
template <class Judge>
UnitKind first_slice(std::span<const std::uint8_t> unit, Judge judge) noexcept {
  for (std::size_t i = 0; i + 3 < unit.size(); ++i) {
    if (unit[i] != 0 || unit[i + 1] != 0 || unit[i + 2] != 1) continue;
    if (const UnitKind kind = judge(unit[i + 3]); kind != UnitKind::none) return kind;
    i += 2;
  }
  return UnitKind::none;
}

UnitKind h264(std::uint8_t header) noexcept {
  constexpr unsigned kSlice = 1, kPartition = 2, kIdr = 5;
  const unsigned type = header & 31u;
  if (type == kIdr) return UnitKind::clean_key;
  return type == kSlice || type == kPartition ? UnitKind::other : UnitKind::none;
}

UnitKind hevc(std::uint8_t header) noexcept {
  constexpr unsigned kRaslN = 8, kRaslR = 9, kBla = 16, kIdrFirst = 19, kIdrLast = 20, kLastKey = 23, kLastSlice = 31;
  const unsigned type = header >> 1 & 63u;
  if (type > kLastSlice) return UnitKind::none;
  if (type == kRaslN || type == kRaslR) return UnitKind::leading;
  if (type < kBla || type > kLastKey) return UnitKind::other;
  return type == kIdrFirst || type == kIdrLast ? UnitKind::clean_key : UnitKind::key;
}

UnitKind av1(std::span<const std::uint8_t> unit) noexcept {
  constexpr unsigned kSequence = 1, kFrameHeader = 3, kFrame = 6;
  bool still = false;  // of a reduced header every frame is a key frame
  for (std::size_t at = 0; at < unit.size();) {
    const unsigned header = unit[at], type = header >> 3 & 15u;
    at += (header & 4u) != 0 ? 2 : 1;
    std::uint64_t bytes = unit.size() - at;
    if (at > unit.size()) return UnitKind::none;
    if ((header & 2u) != 0) {
      bytes = 0;
      unsigned shift = 0;
      for (bool more = true; more; shift += 7) {
        if (at == unit.size() || shift > 28) return UnitKind::none;
        bytes |= std::uint64_t{unit[at] & 127u} << shift;
        more = (unit[at++] & 128u) != 0;
      }
    }
    if (bytes > unit.size() - at) return UnitKind::none;
    if (type == kSequence && bytes != 0) still = (unit[at] & 8u) != 0;
    if ((type == kFrame || type == kFrameHeader) && bytes != 0) {
      const bool shows_existing = (unit[at] & 128u) != 0, key_frame = (unit[at] & 96u) == 0;
      return still || (!shows_existing && key_frame) ? UnitKind::clean_key : UnitKind::other;
    }
    at += bytes;
  }
  return UnitKind::none;
}

}  // namespace

UnitKind kind_of(std::uint32_t codec, std::span<const std::uint8_t> unit) noexcept {
  switch (codec) {
    case LEAT_CODEC_h264:
      return first_slice(unit, h264);
    case LEAT_CODEC_hevc:
      return first_slice(unit, hevc);
    case LEAT_CODEC_av1:
      return av1(unit);
    case LEAT_CODEC_jpeg:
      return unit.size() > 3 && unit[0] == 0xff && unit[1] == 0xd8 ? UnitKind::clean_key : UnitKind::none;
    default:
      return UnitKind::none;
  }
}

bool KeyPictures::decodable(UnitKind kind, bool gap) noexcept {
  waits_ = waits_ || gap;
  const bool key = kind == UnitKind::key || kind == UnitKind::clean_key;
  if (waits_ && !key) return false;
  if (waits_) {
    waits_ = false;
    ++runs_;
    skips_leading_ = kind == UnitKind::key;
    return true;
  }
  if (kind == UnitKind::other || key) skips_leading_ = false;
  return !(skips_leading_ && kind == UnitKind::leading);
}

}  // namespace leat::cuda
