// Where observations come from: a daemon, or a recording. Thread rule: one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "leat/result.hpp"
#include "tools/leat/top/facts/observation.h"

namespace leat::tools::top {

class Source {
 public:
  virtual ~Source() = default;
  // The next observation; empty: there is none (a recording has ended).
  virtual std::optional<Observation> look() = 0;
};

// Maps the daemon's counters. It is asked for its status where a worker ended, and at the start; where it is gone,
// it is looked for at its socket each time.
Result<std::unique_ptr<Source>> open_daemon(const std::string& socket);

}  // namespace leat::tools::top
