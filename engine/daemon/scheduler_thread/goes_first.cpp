#include "engine/daemon/scheduler_thread/goes_first.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace leat::daemon {
namespace {

constexpr int kNice = -10;
constexpr std::uint64_t kSliceNs = 100'000;  // the least that Linux takes

// The first version of what sched_setattr() takes; older C libraries have no declaration of it.
struct Attributes {
  std::uint32_t size = sizeof(Attributes);
  std::uint32_t policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime_ns = 0;  // of a thread without a real-time policy: its slice
  std::uint64_t deadline_ns = 0;
  std::uint64_t period_ns = 0;
};
static_assert(sizeof(Attributes) == 48);

}  // namespace

void take_short_slices() noexcept {
  Attributes attributes;
  if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0 || attributes.policy != 0) return;
  attributes.runtime_ns = kSliceNs;
  (void)::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

void go_first() noexcept {
  const auto self = static_cast<id_t>(::gettid());
  if (::getpriority(PRIO_PROCESS, self) > kNice) (void)::setpriority(PRIO_PROCESS, self, kNice);
}

}  // namespace leat::daemon
