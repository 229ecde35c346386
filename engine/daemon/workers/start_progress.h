// How far leatd's start is, for people who wait: models are loaded and measured by workers, and a large one takes
// minutes. A bar where standard error is a terminal, else a line of the log now and then; nothing for a start that
// takes less than two seconds. Thread rule: the control thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/base/cli/progress.h"

namespace leat::daemon {

class Supervisor;

// A partition's worker on its way: it has `opened` of its modules, and loads or measures the next, `module`.
struct StartingWorker {
  std::string partition;
  std::uint32_t modules = 0, opened = 0;
  std::string module;                     // empty: it has not come to one
  std::uint32_t runs = 0, most_runs = 0;  // of measuring; most 0: it loads
};

// Of a hundred; a module counts half when it is loaded.
[[nodiscard]] std::uint32_t percent_of(const std::vector<StartingWorker>& workers);
// "cpu0 measures a/detect (3 of 50 runs), cpu1 loads a/read, and 2 more": those that are not ready, some of them by
// name.
[[nodiscard]] std::string text_of(const std::vector<StartingWorker>& workers, std::size_t named);

class StartProgress {
 public:
  // bar_fd: a terminal for the bar; -1: standard error, if it is one.
  explicit StartProgress(int bar_fd) : bar_fd_(bar_fd) {}
  void look(const Supervisor& supervisor, std::int64_t now_ns);
  void end();  // the bar is taken away; nothing is shown from now on
  [[nodiscard]] std::int64_t next_due() const noexcept { return due_ns_; }  // when to look again; INT64_MAX: never

 private:
  int bar_fd_;
  std::optional<cli::Progress> bar_;
  std::int64_t first_ns_ = 0, due_ns_ = 0, line_due_ns_ = 0;  // first 0: not looked at yet
};

}  // namespace leat::daemon
