// What a batch of the burning executor takes of its core (burning.cpp): so much, and more for each frame.
#pragma once

#include <cstdint>

namespace leat::test {

inline constexpr std::int64_t kBurnBatchNs = 12'000'000, kBurnFrameNs = 1'000'000;

}  // namespace leat::test
