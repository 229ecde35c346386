// What a frame's first byte asks of the costly executor (costly.cpp).
#pragma once

#include <cstdint>

namespace leat::test {

inline constexpr unsigned char kCostly = 1;
inline constexpr std::int64_t kCheapNs = 700'000;     // a batch
inline constexpr std::int64_t kCostlyNs = 4'300'000;  // and for each costly frame in it

}  // namespace leat::test
