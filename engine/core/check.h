// A broken invariant of our own: always on, ends the process.
#pragma once

namespace leat::core {

[[noreturn]] void broken(const char* what) noexcept;
inline void check(bool holds, const char* what) noexcept {
  if (!holds) [[unlikely]]
    broken(what);
}

}  // namespace leat::core
