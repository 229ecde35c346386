// When a waiting task is given up. Every test is made when the task is about to enter a batch; besides, what waits past the
// moment at which it is worthless is answered then, by a timer.
#include <algorithm>
#include <bit>

#include "engine/core/state.h"

namespace leat::core {

// Reason::none: keep. `start` is when its batch would start (t_e), `d` what the batch is expected to take.
Reason Scheduler::State::verdict(const Task& t, const Lane& lane, TimeNs start, TimeNs d) const noexcept {
  if (t.give_up_ns == kNever) return Reason::none;
  if (start >= t.give_up_ns) return Reason::expired;
  const ModuleState& m = modules[lane.module];
  const Reason late = t.give_up_ns > t.deadline_ns ? Reason::stale : Reason::unreachable;
  switch (policy.drop) {
    case Drop::none:
    case Drop::expired:
    case Drop::overload_control:
      return Reason::none;
    case Drop::split: {
      const TimeNs used = start - t.queued_ns + (policy.split_reading == SplitReading::elapsed_and_execution ? d : 0);
      return used > m.share_ns ? Reason::unreachable : Reason::none;
    }
    case Drop::dynamic_split:
      return start + d - t.queued_ns > m.share_ns ? Reason::unreachable : Reason::none;
    case Drop::window:
      return start + d > t.give_up_ns ? Reason::window : Reason::none;
    case Drop::proactive:
      // PARD eq. 3: L(k) = (t_e - t_s) + d_k + L_sub > SLO.
      return start + d + m.after_ns > t.give_up_ns ? late : Reason::none;
  }
  return Reason::none;
}

// Estimates that are too high would drop everything and never be corrected, since nothing flows. So a task that only the
// estimates condemn is let through now and then, when its module has nothing better to do.
bool Scheduler::State::probe(const Task& t, TimeNs start, TimeNs d) noexcept {
  constexpr TimeNs kProbeEvery = 100'000'000;
  ModuleState& m = modules[t.module];
  if (policy.drop != Drop::proactive || start > now || now - m.probe_ns < kProbeEvery) return false;
  if (start + d + m.after_least_ns > t.give_up_ns) return false;
  m.probe_ns = now;
  return true;
}

// Nexus: the first window of a batch's length, in arrival order, all of which ends in time; what is before it goes.
void Scheduler::State::slide_window(Lane& lane, const Server& server, TimeNs start) noexcept {
  if (lane.classes == 0) return;
  const auto top = static_cast<std::size_t>(std::bit_width(lane.classes) - 1);
  for (;;) {
    const std::uint32_t size = std::min(server.cap, lane.items);
    if (size == 0) return;
    const TimeNs end = start + server.run_ns[size];
    TaskId last_late = kNone;
    TaskId t = lane.arrivals[top].front();
    for (std::uint32_t items = 0; t != kNone && items < size; items += tasks[t].items, t = tasks[t].newer) {
      if (end > tasks[t].give_up_ns) last_late = t;
    }
    if (last_late == kNone) return;
    for (bool done = false; !done;) {
      const TaskId oldest = lane.arrivals[top].front();
      done = oldest == last_late;
      drop_request(tasks[oldest].request, Outcome::dropped, Reason::window, lane.module);
      if (lane.arrivals[top].front() == kNone) return;
    }
  }
}

// With the largest budget first, the hopeless ones gather at the other end, where nobody looks.
void Scheduler::State::purge_low_end(Lane& lane, TimeNs start, TimeNs d) noexcept {
  for (std::uint32_t left = lane.classes; left != 0; left &= left - 1) {
    const DeadlineQueue& queue = lane.queue[static_cast<std::size_t>(std::countr_zero(left))];
    while (!queue.empty()) {
      const Task& t = tasks[queue.front()];
      const Reason reason = verdict(t, lane, start, d);
      if (reason == Reason::none) break;
      drop_request(t.request, Outcome::dropped, reason, lane.module);
    }
  }
}

void Scheduler::State::expire(Lane& lane) noexcept {
  for (std::uint32_t left = lane.classes; left != 0; left &= left - 1) {
    const DeadlineQueue& queue = lane.queue[static_cast<std::size_t>(std::countr_zero(left))];
    for (TaskId t = queue.front(); t != kNone && tasks[t].deadline_ns <= now;) {
      if (tasks[t].give_up_ns > now) {
        t = tasks[t].after;
        continue;
      }
      bool up = false;
      for (std::uint32_t s = 0; s < lane.servers && !up; ++s) up = partitions[servers[lane.first_server + s].partition].up;
      const Reason late = tasks[t].give_up_ns > tasks[t].deadline_ns ? Reason::stale : Reason::expired;
      drop_request(tasks[t].request, Outcome::dropped, up ? late : Reason::no_partition, lane.module);
      t = queue.front();  // siblings may have gone with it
    }
  }
}

// PARD-oc (DAGOR): when a module's mean queueing delay exceeds the threshold, its application admits alpha less, ten times a
// second; below it, alpha more.
bool Scheduler::State::admitted(std::uint32_t application) noexcept {
  if (policy.drop != Drop::overload_control) return true;
  constexpr TimeNs kEvery = 100'000'000;
  ApplicationState& a = applications[application];
  if (now - a.controlled_ns >= kEvery) {
    a.controlled_ns = now;
    bool over = false;
    for (ModuleId m : topology.applications[application].modules) {
      modules[m].queue_delay.roll(now);
      over = over || modules[m].queue_delay.mean() > policy.oc_threshold_ns;
    }
    a.admit_permille = over ? a.admit_permille * (1000 - policy.oc_alpha_permille) / 1000
                            : std::min(1000u, a.admit_permille + policy.oc_alpha_permille);
    a.admit_permille = std::max(a.admit_permille, 10u);
  }
  a.admit_credit += a.admit_permille;
  if (a.admit_credit < 1000) return false;
  a.admit_credit -= 1000;
  return true;
}

}  // namespace leat::core
