// Which segments a record has, and a copy of those of its file that belong together, though leatd may be writing it.
//
// Thread rule: functions of their arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/record/layout.h"
#include "leat/result.hpp"

namespace leat::record {

inline constexpr std::int64_t kLatestNs = std::int64_t{1} << 60;  // 36 years of a clock that counts from the start

inline constexpr char kEmpty[] = "nothing was recorded in it";

// How long each segment is, by the first header of a record of so many bytes. Error: it is none, nothing is in it, or
// another release wrote it.
[[nodiscard]] Result<std::uint64_t> segment_bytes_of(const SegmentHeader& first, std::uint64_t bytes);

// Whether it is one, with numbers that can be.
[[nodiscard]] bool usable(const SegmentHeader& header, std::uint64_t segment_bytes) noexcept;

// The newest segments of the file that follow one another, the oldest first, each as it was when the newest was read.
// Record::read takes them; written into a file they are a record. Error: one line, without the path.
[[nodiscard]] Result<std::vector<std::byte>> read_segments(const std::string& path);

}  // namespace leat::record
