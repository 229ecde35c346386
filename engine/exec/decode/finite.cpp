#include "engine/exec/decode/finite.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace leat::exec {
namespace {

// What is not finite has every bit of the exponent set. Blocks without a branch, so that they are done several values
// at a time, and an end at the first that has one.
template <class Bits>
bool none_has_all(const void* data, std::size_t count, Bits exponent) noexcept {
  constexpr std::size_t kBlock = 1024;
  const auto* const bytes = static_cast<const std::byte*>(data);
  for (std::size_t first = 0; first < count; first += kBlock) {
    const std::size_t end = std::min(count, first + kBlock);
    Bits found = 0;
    for (std::size_t i = first; i < end; ++i) {
      Bits value;
      std::memcpy(&value, bytes + i * sizeof value, sizeof value);
      found = static_cast<Bits>(found | static_cast<Bits>((value & exponent) == exponent ? 1 : 0));
    }
    if (found != 0) return false;
  }
  return true;
}

}  // namespace

bool all_finite(const ItemTensor& item) noexcept {
  if (item.data == nullptr) return true;
  switch (item.dtype) {
    case LEAT_F32:
      return none_has_all<std::uint32_t>(item.data, item.count(), 0x7f800000U);
    case LEAT_F64:
      return none_has_all<std::uint64_t>(item.data, item.count(), 0x7ff0000000000000U);
    case LEAT_F16:
      return none_has_all<std::uint16_t>(item.data, item.count(), 0x7c00U);
    case LEAT_BF16:
      return none_has_all<std::uint16_t>(item.data, item.count(), 0x7f80U);
    default:
      return true;
  }
}

}  // namespace leat::exec
