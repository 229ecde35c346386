// Mixes a number into a hash.
#pragma once

#include <cstdint>

namespace leat::explore {

constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t with) noexcept {
  std::uint64_t x = hash ^ (with + 0x9e37'79b9'7f4a'7c15u + (hash << 6) + (hash >> 2));
  x = (x ^ x >> 30) * 0xbf58'476d'1ce4'e5b9u;
  x = (x ^ x >> 27) * 0x94d0'49bb'1331'11ebu;
  return x ^ x >> 31;
}

}  // namespace leat::explore
