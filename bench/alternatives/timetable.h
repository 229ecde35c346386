// When pictures are due: every camera takes one each period, the cameras one after the other. Values; any thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace leat::bench::alternatives {

struct Timetable {
  std::uint32_t cameras = 1;
  std::uint64_t pictures = 0;  // of a camera, in the whole run
  std::int64_t period_ns = 1'000'000'000 / 30;
  std::int64_t start_ns = 0;               // the first camera's first picture
  std::int64_t from_ns = 0, until_ns = 0;  // pictures due in between are measured

  [[nodiscard]] std::int64_t due_ns(std::uint32_t camera, std::uint64_t picture) const {
    return start_ns + static_cast<std::int64_t>(picture) * period_ns + period_ns * camera / cameras;
  }
  // One behind the picture that was taken last; 0: none was yet.
  [[nodiscard]] std::uint64_t taken(std::uint32_t camera, std::int64_t now_ns) const {
    const std::int64_t since = now_ns - due_ns(camera, 0);
    if (since < 0) return 0;
    return std::min(static_cast<std::uint64_t>(since / period_ns) + 1, pictures);
  }
  [[nodiscard]] bool measured(std::uint32_t camera, std::uint64_t picture) const {
    const std::int64_t due = due_ns(camera, picture);
    return due >= from_ns && due < until_ns;
  }
};

}  // namespace leat::bench::alternatives
