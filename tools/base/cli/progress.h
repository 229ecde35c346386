// Progress of a piece of work that may take more than two seconds, on stderr: a bar redrawn in place where stderr is a
// terminal, else one line for every ten per cent. Nothing is shown for work that ends within half a second.
// Thread rule: one thread. It only writes; the caller's clock is not needed.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace leat::cli {

class Progress {
 public:
  // total 0: unknown; the bar then shows only a count. unit: "frames", "MB", "plans"; empty: done and total are no
  // numbers that mean something to people, and only their share is shown. `fd`: where, in the place of stderr.
  Progress(std::string label, std::uint64_t total, std::string unit, int fd = 2);
  ~Progress();  // ends the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void set(std::uint64_t done, std::string_view note = {});
  void add(std::uint64_t more) { set(done_ + more); }
  void erase();  // on a terminal: the bar is taken away until it is drawn again
  [[nodiscard]] bool on_terminal() const { return terminal_; }
  [[nodiscard]] bool shown() const { return shown_; }

 private:
  std::string label_, unit_;
  std::uint64_t total_, done_ = 0;
  int fd_;
  bool terminal_, shown_ = false;
  int last_tenth_ = 0;
  std::chrono::steady_clock::time_point start_, last_;
};

// The text of one bar, at most `columns` wide: a pure function, so that it can be tested.
[[nodiscard]] std::string progress_line(std::string_view label, std::uint64_t done, std::uint64_t total,
                                        std::string_view unit, double seconds, std::string_view note, unsigned columns);

}  // namespace leat::cli
