// Tasks of one camera (leat feed --task): the parts of its picture that are looked at by themselves, each by an
// application of its own if it has one.
// Thread rule: values.
#pragma once

#include <cstdint>
#include <string>

#include "leat/leat.h"
#include "leat/result.hpp"
#include "tools/leat/feed/source/picture_source.h"
#include "tools/leat/feed/truth.h"

namespace leat::tools {

inline constexpr std::size_t kMaxTasks = 4;  // that leatd takes in a group

struct TaskPart {
  std::string name;                     // as it was asked for; empty: the only one
  std::uint32_t x = 0, y = 0;           // pixels of the picture, even
  std::uint32_t width = 0, height = 0;  // 0: all of it
  std::string application;              // empty: that of all others
  double weight = 1;                    // of what it loses

  [[nodiscard]] PictureFormat of(const PictureFormat& whole) const;
  [[nodiscard]] bool within(const PictureFormat& whole) const noexcept {
    return std::uint64_t{x} + width <= whole.width && std::uint64_t{y} + height <= whole.height;
  }
};

// "640x360+0+0", "all", each with "@APPLICATION" and then ":WEIGHT" or without. Errors: one line.
[[nodiscard]] Result<TaskPart> parse_task(const std::string& text);

// The part's pixels. Precondition: `to` is of the part's size, and it is within `from`.
void copy_part(const leat_frame& from, const TaskPart& part, const leat_frame& to);

// What is there of it. What is less than half inside counts neither as found nor as missed.
[[nodiscard]] Truth truth_of(const Truth& whole, const TaskPart& part);

}  // namespace leat::tools
