#include "tools/base/cli/waiting.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <utility>

namespace leat::cli {

Waiting::Waiting(std::string what) : what_(std::move(what)) {
  if (::isatty(STDERR_FILENO) == 1) thread_ = std::thread([this] { draw(); });
}

Waiting::~Waiting() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void Waiting::draw() {
  constexpr int kQuietSeconds = 2;
  std::unique_lock lock(mutex_);
  int seconds = 0;
  while (!ended_.wait_for(lock, std::chrono::seconds(1), [this] { return end_; }))
    if (++seconds >= kQuietSeconds) ::dprintf(STDERR_FILENO, "\r\033[K%s, %d s so far", what_.c_str(), seconds);
  if (seconds >= kQuietSeconds) ::dprintf(STDERR_FILENO, "\r\033[K");
}

}  // namespace leat::cli
