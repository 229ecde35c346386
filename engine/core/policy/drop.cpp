// When a waiting task is given up. Every test is made when the task is about to enter a batch; besides, what waits past
// the moment at which it is worthless is answered then by the core.
#include <algorithm>
#include <bit>

#include "engine/core/policy/queued.h"

namespace leat::core {

// Reason::none: keep. `start` is when its batch would start (t_e), `d` what the batch is expected to take.
Reason Queued::judge(const Task& t, TimeNs start, TimeNs d) const noexcept {
  if (t.give_up_ns == kNever) return Reason::none;
  if (start >= t.give_up_ns) return Reason::expired;
  const ModuleRules& m = modules_[t.module];
  const Reason late = t.give_up_ns > t.deadline_ns ? Reason::stale : Reason::unreachable;
  switch (policy_.drop) {
    case Drop::none:
    case Drop::expired:
    case Drop::overload_control:
      return Reason::none;
    case Drop::split: {
      const TimeNs used = start - t.queued_ns + (policy_.split_reading == SplitReading::elapsed_and_execution ? d : 0);
      return used > m.share_ns ? Reason::unreachable : Reason::none;
    }
    case Drop::dynamic_split:
      return start + d - t.queued_ns > m.share_ns ? Reason::unreachable : Reason::none;
    case Drop::window:
    case Drop::window_local:
      return start + d > window_end(t) ? Reason::window : Reason::none;
    case Drop::proactive:
      // PARD eq. 3: L(k) = (t_e - t_s) + d_k + L_sub > SLO.
      return start + d + m.after_ns > t.give_up_ns ? late : Reason::none;
  }
  return Reason::none;
}

// A task that only the forecast of what comes after its module condemns is let through now and then, when its module
// has nothing better to do.
bool Queued::doubted(const Task& t, TimeNs start, TimeNs d) noexcept {
  if (policy_.drop != Drop::proactive || start > view_.now) return false;
  if (start + d + fixed(t.module).after_least_ns > t.give_up_ns) return false;
  return canaries_.doubt_forecast(t.module);
}

// By the estimates the task, alone on the fastest server of its lane, would not be in time.
bool Queued::late(ServerId id, TaskId t) noexcept {
  const Lane& l = lane(server(id).lane);
  const Server& s = server(lanes_[server(id).lane].mixed ? l.first_server + l.servers - 1 : id);
  const std::uint32_t items = std::min(task(t).items, room(s));
  const TimeNs d = paced(l.module, s.run_ns[items]);
  if (policy_.forecast) modules_[l.module].after_ns = forecast(l.module, items, d);
  return judge(task(t), view_.now, d) != Reason::none;
}

bool Queued::try_canary(PartitionId p) noexcept {
  const Canaries::Found found = canaries_.on(p, [this](ServerId s, TaskId t) { return late(s, t); });
  if (found.task == kNone) return false;
  can_.take(found.task);
  launch(server(found.server).lane, found.server, view_.now, true);
  return true;
}

// By when Nexus wants a task to leave its module: by its deadline, or within the module's own latency budget
// (section 5.1 of PARD speaks of the current module's).
TimeNs Queued::window_end(const Task& t) const noexcept {
  if (policy_.drop != Drop::window_local) return t.give_up_ns;
  return std::min(t.give_up_ns, t.queued_ns + modules_[t.module].share_ns);
}

// Nexus: the first window of a batch's length, in arrival order, all of which ends in time; what is before it goes.
void Queued::slide_window(const Lane& l, ServerId s, TimeNs start) noexcept {
  if (l.classes == 0) return;
  const std::uint8_t top = view_.top_class(l);
  for (;;) {
    const std::uint32_t size = std::min(servers_[s].cap, l.items);
    if (size == 0) return;
    const TimeNs end = start + server(s).run_ns[size];
    TaskId last_late = kNone;
    TaskId t = l.arrivals[top].front();
    for (std::uint32_t items = 0; t != kNone && items < size; items += task(t).items, t = task(t).newer) {
      if (end > window_end(task(t))) last_late = t;
    }
    if (last_late == kNone) return;
    for (bool done = false; !done;) {
      const TaskId oldest = l.arrivals[top].front();
      done = oldest == last_late;
      can_.drop(oldest, Reason::window);
      if (l.arrivals[top].front() == kNone) return;
    }
  }
}

// With the largest budget first, the hopeless ones gather at the other end, where nobody looks.
void Queued::purge_low_end(const Lane& l, TimeNs start, TimeNs d) noexcept {
  for (std::uint32_t left = l.classes; left != 0; left &= left - 1) {
    const DeadlineQueue& queue = l.queue[static_cast<std::size_t>(std::countr_zero(left))];
    while (!queue.empty()) {
      const Reason reason = judge(task(queue.front()), start, d);
      if (reason == Reason::none) break;
      can_.drop(queue.front(), reason);
    }
  }
}

// PARD-oc (DAGOR): when a module's mean queueing delay exceeds the threshold, its application admits alpha less, ten
// times a second; below it, alpha more.
bool Queued::admit(std::uint32_t application) noexcept {
  if (policy_.drop != Drop::overload_control) return true;
  constexpr TimeNs kEvery = 100'000'000;
  ApplicationRules& a = rules_of(application);
  if (view_.now - a.controlled_ns >= kEvery) {
    a.controlled_ns = view_.now;
    bool over = false;
    for (ModuleId m : view_.topology().applications[application].modules) {
      modules_[m].queue_delay.roll(view_.now);
      over = over || modules_[m].queue_delay.mean() > policy_.oc_threshold_ns;
    }
    a.admit_permille = over ? a.admit_permille * (1000 - policy_.oc_alpha_permille) / 1000
                            : std::min(1000u, a.admit_permille + policy_.oc_alpha_permille);
    a.admit_permille = std::max(a.admit_permille, 10u);
  }
  a.admit_credit += a.admit_permille;
  if (a.admit_credit < 1000) return false;
  a.admit_credit -= 1000;
  return true;
}

}  // namespace leat::core
