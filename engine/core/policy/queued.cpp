#include "engine/core/policy/queued.h"

#include <algorithm>
#include <bit>

#include "engine/core/policy/path.h"

namespace leat::core {

Queued::Queued(const View& view, Verbs& can, const Component& component, const Policy& policy, Lanes& lanes)
    : Discipline(view, can, component),
      policy_(policy),
      follows_load_(policy.order == Order::adaptive || policy.order == Order::instant ||
                    (policy.live_queues && !policy.forecast)),
      follows_delay_((policy.live_queues && !policy.forecast) || policy.drop == Drop::overload_control),
      periodic_(view_, can, component_, policy),
      canaries_(view_, component_, policy),
      modules_(view.model, component),
      lanes_(static_cast<LaneId>(lanes.size())),
      servers_(static_cast<ServerId>(lanes.servers())),
      applications_(component.applications.size()),
      random_(policy.seed) {
  for (ModuleId m : component.modules) {
    modules_[m].queue_delay = Window(policy_.window_ns);
    modules_[m].arrivals = Window(policy_.window_ns);
  }
  make_lanes(lanes);
  for (std::uint32_t a : component.applications) plan_caps(a);
  if (policy_.place == Place::tc && policy_.binding == Binding::early) plan_turns();
  if (policy_.place == Place::tc_rates && policy_.binding == Binding::early) plan_rates();
  for (std::uint32_t a : component.applications) update_downstream(a);
}

const Queued::ApplicationRules& Queued::rules_of(std::uint32_t application) const noexcept {
  const auto& list = component_.applications;
  return applications_[static_cast<std::size_t>(std::ranges::lower_bound(list, application) - list.begin())];
}

// Each module's servers, in order of preference, in one lane or in one each.
void Queued::make_lanes(Lanes& lanes) {
  const Topology& t = view_.topology();
  const bool early = policy_.binding == Binding::early, fitting = policy_.fit && !early;
  std::vector<ServerRules> rules;
  std::vector<LaneRules> lane_rules;
  for (ModuleId id : component_.modules) {
    struct Choice {
      Server server;
      std::int64_t ratio = 0;
      TimeNs least_ns = 0;
    };
    std::vector<Choice> list;
    for (RouteId route : t.modules[id].routes) {
      const RouteSpec& spec = t.routes[route];
      const TimeNs* run = view_.model.run_ns(route);
      for (PartitionId p : spec.stages.front().pool) {
        Choice& c = list.emplace_back(Choice{{.partition = p, .route = route}, 0, run[1]});
        // Throughput over price, scaled so that equal configurations compare equal.
        c.ratio =
            static_cast<std::int64_t>(static_cast<double>(spec.batch) * 1e15 / static_cast<double>(run[spec.batch]) /
                                      std::max(1e-9, t.partitions[p].price));
      }
    }
    const auto before = [&](const Choice& a, const Choice& b) {
      if (policy_.place == Place::elsa)
        return t.partitions[a.server.partition].size < t.partitions[b.server.partition].size;
      if (fitting) return a.least_ns > b.least_ns;
      if (policy_.place == Place::tc || policy_.place == Place::tc_rates || policy_.place == Place::rr)
        return a.ratio > b.ratio;
      return false;
    };
    std::stable_sort(list.begin(), list.end(), before);
    std::vector<Server> servers;
    bool mixed = false;
    for (std::size_t i = 0; i < list.size(); ++i) {
      rules.push_back({.cap = t.routes[list[i].server.route].batch, .ratio = list[i].ratio});
      mixed = mixed || (i > 0 && list[i].least_ns != list[i - 1].least_ns);
      servers.push_back(list[i].server);
      if (early) lanes.add(view_.model, id, {&servers.back(), 1});
      if (early) lane_rules.emplace_back();
    }
    if (early) continue;
    lanes.add(view_.model, id, servers);
    lane_rules.push_back({.mixed = fitting && mixed});
  }
  servers_.resize(rules.size());
  lanes_.resize(lane_rules.size());
  const auto first = static_cast<ServerId>(lanes.servers() - rules.size());
  for (ServerId s = 0; s < rules.size(); ++s) servers_[first + s] = rules[s];
  const auto first_lane = static_cast<LaneId>(lanes.size() - lane_rules.size());
  for (LaneId l = 0; l < lane_rules.size(); ++l) lanes_[first_lane + l] = lane_rules[l];
}

// ---- tasks come and go ----

LaneId Queued::enqueue(TaskId id) noexcept {
  const Task& t = task(id);
  ModuleRules& m = modules_[t.module];
  if (follows_load_) {
    if (m.arrivals.roll(view_.now)) update_load(t.module);
    m.arrivals.add(0, t.items);
  }
  const LaneId at = view_.lanes.count(t.module) == 1 ? view_.lanes.first(t.module) : holding(place(t.module, t), t);
  if (policy_.binding == Binding::early) {
    const Server& s = server(lane(at).first_server);
    lanes_[at].queued_run_ns += s.run_ns[std::min(t.items, room(s))];
  }
  return at;
}

void Queued::left(TaskId id) noexcept {
  if (policy_.binding != Binding::early) return;
  const Task& t = task(id);
  const Server& s = server(lane(t.lane).first_server);
  lanes_[t.lane].queued_run_ns -= s.run_ns[std::min(t.items, room(s))];
}

// ---- partitions ask ----

ServerId Queued::offer(LaneId id) noexcept {
  const Lane& l = lane(id);
  if (policy_.place != Place::random) return view_.lanes.idle_server(l);
  ServerId best = kNone;
  std::uint32_t n = 0;
  for (ServerId s = l.first_server; s < l.first_server + l.servers; ++s) {
    if (view_.idle(server(s).partition) && next_random(random_) % ++n == 0) best = s;
  }
  return best;
}

void Queued::leftover(LaneId id, ServerId refused) noexcept {
  // `refused` leaves its partition idle, perhaps on purpose: another idle one may see it otherwise.
  if (refused != kNone && (lanes_[id].mixed || periodic_.active())) {
    const Lane& l = lane(id);
    for (ServerId s = l.first_server; s < l.first_server + l.servers && l.tasks > 0; ++s) {
      if (s != refused && view_.idle(server(s).partition)) (void)next(server(s).partition);
    }
  }
  if (policy_.form_ahead && lane(id).tasks > 0) collect_ahead(id);
}

bool Queued::next(PartitionId id) noexcept {
  if (!view_.idle(id) || view_.machine.batches_left() == 0) return false;
  if (periodic_.active()) {
    const Turn turn = periodic_.serve(id, *this);
    if (turn == Turn::idle && view_.machine.partition(id).deferred_until_ns == 0) return try_canary(id);
    if (turn != Turn::not_shared) return turn == Turn::started;
  }
  return try_canary(id) || plain_next(id);
}

// The most urgent of the lanes that the partition serves, then the next.
bool Queued::plain_next(PartitionId id) noexcept {
  const std::vector<ServerId>& mine = view_.lanes.of_partition(id);
  if (mine.size() == 1) return try_server(mine.front());
  struct Rank {
    std::uint32_t priority;
    TimeNs deadline;
    ServerId server;
    bool operator>(const Rank& o) const {
      return priority != o.priority   ? priority > o.priority
             : deadline != o.deadline ? deadline < o.deadline
                                      : server < o.server;
    }
  };
  // In order of rank without sorting: each round takes the best below the one before. A partition serves few lanes.
  Rank last{UINT32_MAX, INT64_MIN, 0};
  for (;;) {
    Rank best{0, kNever, kNone};
    for (ServerId s : mine) {
      const Lane& l = lane(server(s).lane);
      Rank rank{0, view_.now, s};
      if (l.classes != 0) {
        const std::uint8_t top = view_.top_class(l);
        rank.priority = periodic_.rank_of(top);
        rank.deadline = task(l.queue[top].front()).deadline_ns;
      } else if (l.forming.tasks == 0) {
        continue;
      }
      if (last > rank && (best.server == kNone || rank > best)) best = rank;
    }
    if (best.server == kNone) return false;
    if (try_server(best.server)) return true;
    last = best;
  }
}

bool Queued::try_server(ServerId id) noexcept {
  const Server& s = server(id);
  const Lane& l = lane(s.lane);
  if (l.tasks == 0 && l.forming.tasks == 0) return false;
  const Partition& p = view_.machine.partition(s.partition);
  const TimeNs start = std::max(view_.now, p.held > 0 ? p.free_ns : view_.now);
  if (policy_.ramp && policy_.kappa_permille > 0) ramp(fixed(l.module).application);
  const std::uint32_t target = batch_target(s.lane, id, start);
  if (target == 0) return false;
  if (policy_.forecast)
    modules_[l.module].after_ns =
        forecast(l.module, target, start - view_.now + paced(l.module, s.run_ns[std::min(target, cap_of(id))]));
  if (lanes_[s.lane].mixed || (policy_.fit && l.items > l.tasks)) {  // unequal partitions, or unequal requests
    form_fitting(l, id, start, target);
  } else {
    const bool shrinks = policy_.kappa_permille > 0 && policy_.shrink_permille < 1000;
    form(l, id, start, shrinks ? shrink(l, id, start, target) : target);
  }
  if (l.forming.tasks == 0) return false;
  launch(s.lane, id, start);
  if (policy_.form_ahead && l.tasks > 0) collect_ahead(s.lane);
  return true;
}

// Look-ahead has chosen: a batch that `lead` begins.
void Queued::start_chosen(ServerId id, TaskId lead, std::uint32_t requests) noexcept {
  const Server& s = server(id);
  const Lane& l = lane(s.lane);
  const std::uint32_t target = std::min(servers_[id].cap, std::max(requests, task(lead).items));
  if (policy_.forecast) modules_[l.module].after_ns = forecast(l.module, target, s.run_ns[target]);
  const TimeNs alone = s.run_ns[task(lead).items];
  const Reason reason = judge(task(lead), view_.now, alone);
  if (reason != Reason::none && !doubted(task(lead), view_.now, alone)) {
    if (!canaries_.tries(lead, s.partition)) return can_.drop(lead, reason);
    can_.take(lead);
    return launch(s.lane, id, view_.now, true);
  }
  can_.take(lead);
  if (l.forming.items < target) form(l, id, view_.now, target);
  launch(s.lane, id, view_.now);
}

// PARD, figure 3b: while a batch runs, its worker already takes requests into the next one.
void Queued::collect_ahead(LaneId id) noexcept {
  const Lane& l = lane(id);
  const ServerId s = l.first_server;
  const Partition& p = view_.machine.partition(server(s).partition);
  if (!p.up || p.held == 0 || l.forming.items >= servers_[s].cap) return;
  form(l, s, std::max(view_.now, p.free_ns), servers_[s].cap);
}

void Queued::launch(LaneId lane_id, ServerId id, TimeNs start, bool canary) noexcept {
  const Server& s = server(id);
  const Lane& l = lane(lane_id);
  const std::uint32_t items = l.forming.items;
  const std::uint32_t batch = can_.start(lane_id, id, start, choose_path(view_, s.route, s.partition, items, start));
  if (canary) {
    can_.canary(batch);
    canaries_.sent(batch);
  }
  const bool by_batches = policy_.place == Place::tc || policy_.place == Place::tc_rates;
  if (by_batches && l.items == 0 && items < servers_[id].cap) {
    lanes_[lane_id].block_left = 0;  // sent short of its size: the next task begins another batch
    lanes_[lane_id].next_start_ns = view_.machine.partition(s.partition).free_ns;
  }
  periodic_.promised(id, items, start);
}

void Queued::started(std::uint32_t batch) noexcept {
  const Batch& b = view_.machine.batch(batch);
  if (follows_delay_) {
    Window& delay = modules_[b.module].queue_delay;
    delay.roll(view_.now);
    for (TaskId t = b.list.first; t != kNone; t = task(t).next_in_batch)
      delay.add(task(t).taken_ns - task(t).queued_ns);
  }
  if (class_of(b.level) == 0)
    periodic_.spend_background(view_.model.run_ns(b.route)[std::min(b.list.items, view_.route(b.route).batch)]);
}

void Queued::ended(std::uint32_t batch, TimeNs ran, bool usual) noexcept {
  periodic_.learn(view_.machine.batch(batch), ran, usual);
  canaries_.ended(batch, ran, usual);
}

void Queued::estimates(const Estimates& estimates) noexcept {
  for (ModuleId m : component_.modules) {
    if (m < estimates.modules.size()) modules_[m].estimate = estimates.modules[m];
  }
  for (std::uint32_t a : component_.applications) update_downstream(a);
}

}  // namespace leat::core
