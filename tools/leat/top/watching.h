// The ways to watch: on a terminal, into a recording, or one page printed. Each ends with one line of error or none.
#pragma once

#include <optional>
#include <string>

#include "leat/result.hpp"
#include "tools/leat/top/pages/view.h"

namespace leat::tools::top {

struct Watching {
  std::string socket, record, replay, at;  // replay empty: a daemon
  double delay = 1, speed = 1;
  std::optional<double> seconds;  // then it ends
  int columns = 80, rows = 24;    // of a shot
  std::optional<bool> ascii;      // empty: what the terminal can show
  bool svg = false, colours = true, mouse = true;
  View view;
};

Status watch(const Watching& wanted);
Status record(const Watching& wanted);  // without a terminal
Status shot(const Watching& wanted);

}  // namespace leat::tools::top
