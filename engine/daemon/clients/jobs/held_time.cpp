#include "engine/daemon/clients/jobs/held_time.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "tools/base/text/fd.h"

namespace leat::daemon {

void HeldTime::begin(std::int64_t now_ns) noexcept {
  thread_ = ::gettid();
  (void)::pthread_getcpuclockid(::pthread_self(), &clock_);
  looked_ns_ = now_ns;
  cpu_ns_ = cpu_ns();
  held_ns_ = 0;
}

std::int64_t HeldTime::look(std::int64_t now_ns) noexcept {
  const std::int64_t passed_ns = std::clamp<std::int64_t>(now_ns - looked_ns_, 0, kMaxLookNs);
  const std::int64_t cpu = cpu_ns();
  held_ns_ += wants_a_core() ? std::clamp<std::int64_t>(cpu - cpu_ns_, 0, passed_ns) : passed_ns;
  looked_ns_ = now_ns;
  cpu_ns_ = cpu;
  return held_ns_;
}

std::int64_t HeldTime::cpu_ns() const noexcept {
  timespec t{};
  return ::clock_gettime(clock_, &t) == 0 ? t.tv_sec * 1'000'000'000LL + t.tv_nsec : cpu_ns_;
}

// On a core, or waiting for one. Where that cannot be read it counts as waiting in the kernel.
bool HeldTime::wants_a_core() const noexcept {
  const std::string path = "/proc/self/task/" + std::to_string(thread_) + "/stat";
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char line[128];  // the number, a name of 15 bytes at most, the state
  const ssize_t got = file.get() < 0 ? -1 : ::read(file.get(), line, sizeof line);
  if (got <= 0) return false;
  const std::string_view text(line, static_cast<std::size_t>(got));
  const std::size_t name_end = text.rfind(") ");
  return name_end != std::string_view::npos && name_end + 2 < text.size() && text[name_end + 2] == 'R';
}

}  // namespace leat::daemon
