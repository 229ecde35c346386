#include "engine/core/policy/queues/queue_scheduler.h"

#include <algorithm>

#include "engine/core/policy/by_urgency.h"
#include "engine/core/policy/path.h"

namespace leat::core {

QueueScheduler::QueueScheduler(const Making& from)
    : ComponentScheduler(from.view, from.core, from.component),
      latency_share_permille_(from.policy.batch_latency_share_permille),
      variant_(from.policy.variant),
      periodic_(view_, core_, component_, from.policy),
      canaries_(view_, component_, from.policy),
      modules_(view_.model, component_),
      first_server_(static_cast<ServerId>(from.lanes.servers())),
      applications_(component_.applications.size()) {
  make_lanes(from.lanes);
  for (std::uint32_t a : component_.applications) plan_caps(a);
}

const QueueScheduler::ApplicationRules& QueueScheduler::rules_of(std::uint32_t application) const noexcept {
  const auto& list = component_.applications;
  return applications_[static_cast<std::size_t>(std::ranges::lower_bound(list, application) - list.begin())];
}

// One for each module; its servers slowest first (fit.cpp).
void QueueScheduler::make_lanes(Lanes& lanes) {
  const Topology& t = view_.topology();
  for (ModuleId id : component_.modules) {
    std::vector<Server> servers;
    for (RouteId route : t.modules[id].routes) {
      for (PartitionId p : t.routes[route].stages.front().pool) servers.push_back({.partition = p, .route = route});
    }
    const auto least_ns = [&](const Server& s) { return view_.model.run_ns(s.route)[1]; };
    if (variant_.fits) std::ranges::stable_sort(servers, std::greater{}, least_ns);
    for (const Server& s : servers) caps_.push_back(t.routes[s.route].batch);
    modules_[id].server_count = static_cast<std::int64_t>(servers.size());
    modules_[id].mixed = variant_.fits && least_ns(servers.front()) != least_ns(servers.back());
    lanes.add(view_.model, id, servers);
  }
}

// ---- partitions ask ----

void QueueScheduler::leftover(LaneId id, ServerId refused) noexcept {
  // `refused` leaves its partition idle, perhaps on purpose: another idle one may see it otherwise.
  const Lane& l = lane(id);
  if (refused == kNone || (!modules_[l.module].mixed && !periodic_.active())) return;
  for (ServerId s = l.first_server; s < l.first_server + l.servers && l.tasks > 0; ++s) {
    if (s != refused && view_.idle(server(s).partition)) (void)next(server(s).partition);
  }
}

bool QueueScheduler::next(PartitionId id) noexcept {
  if (!view_.idle(id) || view_.machine.batches_left() == 0) return false;
  if (periodic_.active()) {
    const Turn turn = periodic_.serve(id, *this);
    if (turn == Turn::idle && view_.machine.partition(id).deferred_until_ns == 0) return try_canary(id);
    if (turn != Turn::not_shared) return turn == Turn::started;
  }
  if (try_canary(id)) return true;
  return by_urgency(
      view_, id, [&](std::uint8_t level) { return periodic_.rank_of(level); },
      [&](ServerId s) { return try_server(s); });
}

bool QueueScheduler::try_server(ServerId id) noexcept {
  const Server& s = server(id);
  const Lane& l = lane(s.lane);
  if (l.tasks == 0) return false;
  const Partition& p = view_.machine.partition(s.partition);
  const TimeNs start = std::max(view_.now, p.held > 0 ? p.free_ns : view_.now);
  ModuleRules& m = modules_[l.module];
  ramp(fixed(l.module).application);
  const std::uint32_t target = variant_.one_request ? 1 : std::min(l.items, cap_of(id));
  m.after_ns = forecast(l.module, target, start - view_.now + paced(l.module, s.run_ns[std::min(target, cap_of(id))]));
  if (m.mixed || (variant_.fits && l.items > l.tasks)) {  // unequal partitions, or unequal requests
    form_fitting(l, id, start, target);
  } else {
    form(l, id, start, latency_share_permille_ > 0 ? shrink(l, id, start, target) : target);
  }
  if (l.forming.tasks == 0) return false;
  launch(s.lane, id, start);
  return true;
}

// Look-ahead has chosen: a batch that `lead` begins.
void QueueScheduler::start_chosen(ServerId id, TaskId lead, std::uint32_t requests) noexcept {
  const Server& s = server(id);
  const Lane& l = lane(s.lane);
  const std::uint32_t target = std::min(own_cap(id), std::max(requests, task(lead).items));
  modules_[l.module].after_ns = forecast(l.module, target, s.run_ns[target]);
  const TimeNs alone = s.run_ns[task(lead).items];
  const Reason reason = judge(task(lead), view_.now, alone);
  if (reason != Reason::none && !doubted(task(lead), view_.now, alone)) {
    if (!canaries_.tries(lead, s.partition)) return core_.drop(lead, reason);
    core_.take(lead);
    return launch(s.lane, id, view_.now, true);
  }
  core_.take(lead);
  if (l.forming.items < target) form(l, id, view_.now, target);
  launch(s.lane, id, view_.now);
}

void QueueScheduler::launch(LaneId lane_id, ServerId id, TimeNs start, bool canary) noexcept {
  const Server& s = server(id);
  const std::uint32_t items = lane(lane_id).forming.items;
  const std::uint32_t batch = core_.start(lane_id, id, start, choose_path(view_, s.route, s.partition, items, start));
  if (canary) {
    core_.canary(batch);
    canaries_.sent(batch);
  }
  periodic_.promised(id, items, start);
}

void QueueScheduler::started(std::uint32_t batch) noexcept {
  const Batch& b = view_.machine.batch(batch);
  if (class_of(b.level) == 0)
    periodic_.spend_background(view_.model.run_ns(b.route)[std::min(b.list.items, view_.route(b.route).batch)]);
}

void QueueScheduler::ended(std::uint32_t batch, TimeNs ran, bool usual) noexcept {
  periodic_.learn(view_.machine.batch(batch), ran, usual);
  canaries_.ended(batch, ran, usual);
}

}  // namespace leat::core
