#include "engine/daemon/metrics/turn_meter.h"

#include <algorithm>

namespace leat::daemon {

using shm::DaemonCounter;

void TurnMeter::begin(std::int64_t now) noexcept {
  checked_ns_ = now;
  own_at_check_ns_ = own_cpu_ns();
  shm::Record daemon = metrics_.daemon();
  for (const auto gauge : {DaemonCounter::loop_ns_max, DaemonCounter::loop_own_ns_max}) daemon.set(gauge, 0);
}

void TurnMeter::turned(std::int64_t from_ns, std::int64_t to_ns, bool worked) noexcept {
  const std::int64_t took = to_ns - from_ns;
  shm::Record daemon = metrics_.daemon();
  daemon.add(DaemonCounter::loops);
  if (worked) {
    daemon.add(DaemonCounter::loops_with_work);
    daemon.observe(shm::Which::first, took);
  }
  if (took > longest_ns_) daemon.set(DaemonCounter::loop_ns_max, static_cast<std::uint64_t>(longest_ns_ = took));
  if (took <= longest_own_ns_ && took <= kStallNs && to_ns - checked_ns_ < kCheckpointNs) return;
  const std::int64_t own_now = own_cpu_ns(), own = std::min(took, own_now - own_at_check_ns_);
  checked_ns_ = to_ns;
  own_at_check_ns_ = own_now;
  if (own > longest_own_ns_)
    daemon.set(DaemonCounter::loop_own_ns_max, static_cast<std::uint64_t>(longest_own_ns_ = own));
  if (took <= kStallNs) return;
  daemon.add(DaemonCounter::stalls);
  if (own > kStallNs) daemon.add(DaemonCounter::own_stalls);
  metrics_.event(shm::EventKind::stall, to_ns, UINT32_MAX, 0, 0, 0, static_cast<std::uint64_t>(took));
}

}  // namespace leat::daemon
