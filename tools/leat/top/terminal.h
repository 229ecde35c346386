// The terminal: ncurses, in this file's .cpp and nowhere else. It is left as it was found, also by a fatal signal.
// Thread rule: one object at a time, one thread.
#pragma once

#include <span>

#include "leat/result.hpp"
#include "tools/leat/top/page.h"

namespace leat::tools {

class Terminal {
 public:
  static Result<Terminal> open(bool colours);
  Terminal(Terminal&& other) noexcept;
  Terminal& operator=(Terminal&&) = delete;
  ~Terminal();

  [[nodiscard]] int rows() const;
  [[nodiscard]] int columns() const;
  void draw(std::span<const Line> lines);
  // Waits for a key, at most this long. A change of size comes back as Key::none, at once.
  [[nodiscard]] Key wait_key(int milliseconds);
  [[nodiscard]] static bool ended_by_signal();  // SIGTERM, SIGINT or SIGHUP came: leave in good order

 private:
  Terminal() = default;
  bool open_ = false;
};

}  // namespace leat::tools
