// The DAG of one request: which modules are complete, how many tasks the next ones get, when the request is done.
//
// A module starts when all its predecessors are complete. A module that fans out (fan_out_cap > 1) gets one task per
// sub-request that its predecessors made, up to the cap; none means that it is complete at once. Other modules get one task.
// A module all of whose predecessors were skipped is skipped. Branches taken by chance: a module with items_per_request below
// its predecessors' is taken with that ratio; siblings share one draw and lie side by side on it, so that "one of two" is exact.
#include "engine/core/state.h"

namespace leat::core {
namespace {

std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 33;
  x *= 0xFF51AFD7ED558CCDu;
  x ^= x >> 33;
  x *= 0xC4CEB9FE1A85EC53u;
  return x ^ (x >> 33);
}

}  // namespace

Progress& Scheduler::State::progress(std::uint32_t request, ModuleId module) noexcept {
  return progress_of[std::size_t{request} * progress_stride + modules[module].local];
}

void Scheduler::State::begin(std::uint32_t request) noexcept {
  const ApplicationSpec& app = topology.applications[streams[requests[request].stream].config.application];
  requests[request].modules_left = static_cast<std::uint16_t>(app.modules.size());
  for (ModuleId m : app.modules) {
    Progress& p = progress(request, m);
    p = Progress{};
    p.before_left = static_cast<std::uint16_t>(topology.modules[m].before.size());
  }
  const std::uint32_t generation = requests.generation(request);
  for (ModuleId m : app.modules) {
    if (!topology.modules[m].before.empty()) continue;
    activate(request, m);
    if (!requests.valid(request, generation)) return;  // no room for its tasks: answered
  }
}

bool Scheduler::State::branch_taken(const Request& r, ModuleId module) const noexcept {
  if (modules[module].branch_permille >= 1000 || r.branch_draw == 0) return true;
  const ModuleId parent = topology.modules[module].before.front();
  std::uint32_t start = 0;
  for (ModuleId sibling : topology.modules[parent].after) {
    if (sibling == module) break;
    if (modules[sibling].branch_permille < 1000) start += modules[sibling].branch_permille;
  }
  const auto draw = static_cast<std::uint32_t>(mix(r.branch_draw + parent) % 1000);
  return (draw + 1000 - start % 1000) % 1000 < modules[module].branch_permille;
}

void Scheduler::State::activate(std::uint32_t request, ModuleId module) noexcept {
  Request& r = requests[request];
  const ModuleSpec& spec = topology.modules[module];
  Progress& p = progress(request, module);
  std::uint32_t n = 1;
  if (!spec.before.empty()) {
    if (!p.fed) {
      n = 0;
    } else if (spec.fan_out_cap > 1) {
      n = p.offered < spec.fan_out_cap ? p.offered : spec.fan_out_cap;
    } else if (!branch_taken(r, module)) {
      n = 0;
    }
  }
  if (n == 0) {
    complete_module(request, module, false);
    return;
  }
  if (spec.before.empty() && r.items > modules[module].max_items) {
    drop_request(request, Outcome::rejected, Reason::unschedulable, module);
    return;
  }
  if (tasks.left() < n) {
    drop_request(request, Outcome::dropped, Reason::queue_full, module);
    return;
  }
  p.tasks_left = static_cast<std::uint16_t>(n);
  const Stream& stream = streams[r.stream];
  for (std::uint32_t i = 0; i < n; ++i) {
    const TaskId id = tasks.take();
    Task& t = tasks[id];
    t.deadline_ns = r.deadline_ns;
    t.give_up_ns = r.give_up_ns;
    t.queued_ns = now;
    t.request = request;
    t.module = module;
    t.item = static_cast<std::uint16_t>(i);
    t.items = spec.before.empty() ? r.items : 1;
    t.priority = priority_of(stream);
    t.retries = 0;
    t.batch = kNone;
    t.previous_of_request = kNone;
    t.next_of_request = r.tasks;
    if (r.tasks != kNone) tasks[r.tasks].previous_of_request = id;
    r.tasks = id;
    enqueue(id);
  }
  counters.modules[module].tasks += n;
}

void Scheduler::State::complete_module(std::uint32_t request, ModuleId module, bool ran) noexcept {
  // Skipped modules complete their successors at once, so this goes on until a task exists or the request is done. A work
  // list instead of recursion: its depth is bounded by the application's modules.
  struct Done {
    ModuleId module;
    bool ran;
  };
  std::array<Done, kMaxModulesPerApplication> list;  // only what was pushed is read
  std::size_t count = 0;
  list[count++] = {module, ran};
  const std::uint32_t generation = requests.generation(request);
  while (count > 0) {
    const Done done = list[--count];
    --requests[request].modules_left;
    const Progress& from = progress(request, done.module);
    for (ModuleId next : topology.modules[done.module].after) {
      Progress& p = progress(request, next);
      p.offered += from.made;
      p.fed = p.fed || done.ran;
      if (--p.before_left > 0) continue;
      const bool skipped = !p.fed || (topology.modules[next].fan_out_cap > 1 ? p.offered == 0 : !branch_taken(requests[request], next));
      if (skipped) {
        list[count++] = {next, false};
      } else {
        activate(request, next);
        if (!requests.valid(request, generation)) return;
      }
    }
  }
}

}  // namespace leat::core
