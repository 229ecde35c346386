// Whose tasks pass one at a time (ledger/quarantine.h, queue/gate.h, ComponentScheduler::books), and what else becomes
// of what they have waiting.
#include <algorithm>

#include "engine/core/core.h"

namespace leat::core {

void Scheduler::State::enter_gate(TaskId id) noexcept {
  if (!ledger.request(tasks[id].request).gated || users.gate.through() == id) return enqueue(id);
  tasks[id].serial = ++agenda.serial;
  users.gate.hold(tasks, id);
  if (tasks[id].give_up_ns != kNever) want_timer(std::max(tasks[id].deadline_ns, now));
}

// With one partition there is no other to keep for the others.
bool Scheduler::State::gate_opens(TaskId id) const noexcept {
  if (!users.quarantine.struck(user_of(ledger.request(tasks[id].request)), now)) return true;
  const Component& c = plan->model.components()[plan->model.component_of(tasks[id].module)];
  const auto up = std::ranges::count_if(c.partitions, [&](PartitionId p) { return machine.partition(p).up; });
  return up >= 2 || c.partitions.size() == 1;
}

bool Scheduler::State::open_gate() noexcept {
  const TaskId id = users.gate.next();
  if (id == kNone || !users.gate.free() || !gate_opens(id)) return false;
  users.gate.withdraw(tasks, id);
  users.gate.pass(id);
  enqueue(id);
  return true;
}

void Scheduler::State::expire_gate() noexcept {
  for (TaskId t = users.gate.front(); t != kNone && tasks[t].deadline_ns <= now;) {
    if (tasks[t].give_up_ns > now) {
      t = tasks[t].after;
      continue;
    }
    const bool stale = tasks[t].give_up_ns > tasks[t].deadline_ns;
    drop_request(tasks[t].request, Outcome::dropped, stale ? Reason::stale : Reason::expired, tasks[t].module);
    t = users.gate.front();  // siblings may have gone with it
  }
}

TimeNs Scheduler::State::gate_timer() const noexcept {
  TimeNs at = kNever;
  for (TaskId t = users.gate.front(); t != kNone; t = tasks[t].after) {
    if (tasks[t].give_up_ns == kNever) continue;
    if (tasks[t].deadline_ns > now) return std::min(at, tasks[t].deadline_ns);
    at = std::min(at, tasks[t].give_up_ns);
  }
  return at;
}

void Scheduler::State::drop_waiting(std::uint32_t user) noexcept {
  for (StreamId s = 0; s < ledger.streams(); ++s) {
    if (ledger.stream(s).config.user != user) continue;
    for (std::uint32_t r = ledger.stream(s).first; r != kNone;) {
      const std::uint32_t next = ledger.request(r).next;
      const Request& request = ledger.request(r);
      if (request.placed == 0 && request.doom == Outcome::pending)
        drop_request(r, Outcome::dropped, Reason::poison, kNone);
      r = next;
    }
  }
}

}  // namespace leat::core
