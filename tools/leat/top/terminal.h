// The terminal: ncurses, in this file's .cpp and nowhere else. It is left as it was found, also by a fatal signal.
// Thread rule: one object at a time, one thread.
#pragma once

#include "leat/result.hpp"
#include "tools/leat/top/pages/canvas.h"
#include "tools/leat/top/pages/keys.h"

namespace leat::tools {

// What was typed or clicked.
struct Typed {
  top::Action action = top::Action::none;  // of a key without a letter
  char32_t letter = 0;                     // 0: none
  bool clicked = false;
  int row = 0, column = 0;  // of the click
};

class Terminal {
 public:
  struct Wishes {
    bool colours = true, mouse = true;
  };
  static Result<Terminal> open(const Wishes& wishes);
  Terminal(Terminal&& other) noexcept;
  Terminal& operator=(Terminal&&) = delete;
  ~Terminal();

  [[nodiscard]] int rows() const;
  [[nodiscard]] int columns() const;
  // Can it show more than ASCII, each sign in one cell? By the locale and TERM.
  [[nodiscard]] bool full_signs() const;
  // Sends what changed since the last one.
  void draw(const top::Canvas& canvas);
  // Waits for a key or a click, at most this long. A change of size comes back as nothing, at once.
  [[nodiscard]] Typed wait(int milliseconds);
  [[nodiscard]] static bool ended_by_signal();  // SIGTERM, SIGINT or SIGHUP came: leave in good order

 private:
  Terminal() = default;
  bool open_ = false;
};

}  // namespace leat::tools
