#include "tools/base/cli/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace leat::cli {
namespace {

constexpr auto kQuietFor = std::chrono::milliseconds(500);
constexpr auto kRedrawEvery = std::chrono::milliseconds(100);

unsigned terminal_columns(int fd) {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80U;
}

std::string time_left(double seconds) {
  char text[32];
  if (seconds >= 3600) {
    std::snprintf(text, sizeof text, "%ld h %02ld min", static_cast<long>(seconds) / 3600,
                  static_cast<long>(seconds) % 3600 / 60);
  } else if (seconds >= 60) {
    std::snprintf(text, sizeof text, "%ld min %02ld s", static_cast<long>(seconds) / 60,
                  static_cast<long>(seconds) % 60);
  } else {
    std::snprintf(text, sizeof text, "%.0f s", seconds);
  }
  return text;
}

}  // namespace

std::string progress_line(std::string_view label, std::uint64_t done, std::uint64_t total, std::string_view unit,
                          double seconds, std::string_view note, unsigned columns) {
  std::string tail(1, ' ');
  tail += std::to_string(done);
  double part = 0;
  if (total > 0) {
    done = std::min(done, total);
    part = static_cast<double>(done) / static_cast<double>(total);
    char percent[16];
    std::snprintf(percent, sizeof percent, " %3d %%", static_cast<int>(part * 100));
    tail = percent;
    if (!unit.empty()) tail += "  " + std::to_string(done) + "/" + std::to_string(total) + " " + std::string(unit);
    if (part > 0 && part < 1 && seconds > 1) tail += ", " + time_left(seconds / part - seconds) + " left";
  } else {
    tail.append(" ").append(unit);
  }
  if (!note.empty()) tail.append("  ").append(note);
  std::string line(label);
  const std::size_t used = line.size() + tail.size() + 3;
  if (total > 0 && used + 10 <= columns) {
    const std::size_t room = std::min<std::size_t>(columns - used, 40);
    const auto full = static_cast<std::size_t>(part * static_cast<double>(room));
    line += " [" + std::string(full, '=') + std::string(room - full, ' ') + "]";
  }
  line += tail;
  if (line.size() > columns) line.resize(columns);
  return line;
}

Progress::Progress(std::string label, std::uint64_t total, std::string unit, int fd)
    : label_(std::move(label)),
      unit_(std::move(unit)),
      total_(total),
      fd_(fd),
      terminal_(::isatty(fd) == 1),
      start_(std::chrono::steady_clock::now()),
      last_(start_) {}

Progress::~Progress() {
  if (shown_ && terminal_) ::dprintf(fd_, "\n");
}

void Progress::erase() {
  if (shown_ && terminal_) ::dprintf(fd_, "\r\033[K");
  shown_ = false;
}

void Progress::set(std::uint64_t done, std::string_view note) {
  done_ = done;
  const auto now = std::chrono::steady_clock::now();
  const bool end = total_ > 0 && done >= total_;
  if (now - start_ < kQuietFor) return;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  if (terminal_) {
    if (!end && now - last_ < kRedrawEvery && shown_) return;
    ::dprintf(fd_, "\r\033[K%s",
              progress_line(label_, done, total_, unit_, seconds, note, terminal_columns(fd_)).c_str());
  } else {
    const int tenth = total_ > 0 ? static_cast<int>(done * 10 / total_) : 0;
    if (tenth <= last_tenth_) return;
    last_tenth_ = tenth;
    ::dprintf(fd_, "%s\n", progress_line(label_, done, total_, unit_, seconds, note, 200).c_str());
  }
  shown_ = true;
  last_ = now;
}

}  // namespace leat::cli
