// How hot the GPUs are, from a child (`leat-gpu watch`) that loads the driver in its own process: neither the screen
// nor leatd waits for a driver that hangs. Nothing here blocks. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/base/subprocess/process.h"
#include "tools/base/text/fd.h"
#include "tools/leat/top/facts/figures.h"

namespace leat::tools::top {

class GpuWatcher {
 public:
  // Starts the child where there is none, and reads what it has said. Empty: it has said nothing of late.
  std::vector<HeatFigures> look(std::int64_t now_ns);

 private:
  void start(std::int64_t now_ns);
  void read(std::int64_t now_ns);

  subprocess::Process child_;
  Fd input_, output_;  // its standard input, which ends it, and what it says
  std::string text_;
  std::vector<HeatFigures> newest_;
  std::int64_t newest_ns_ = 0, start_again_ns_ = 0;
};

}  // namespace leat::tools::top
