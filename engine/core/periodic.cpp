// Partitions that periodic streams share with work of another class: what look_ahead.h needs to know, and what is made of its
// move. Among equals, and with more sources than it can weigh, the plain order of classes and queues decides (dispatch.cpp).
//
// Only streams of applications of one module are seen as periodic; whatever else waits for the partition is a single request of
// its lane's most urgent class.
#include <algorithm>
#include <bit>

#include "engine/core/look_ahead.h"
#include "engine/core/state.h"

namespace leat::core {

struct Scheduler::State::Known {
  LookAhead ask;
  std::array<LookAheadSource, kLookAheadSources> sources;
  std::array<TaskId, kLookAheadSources> task;
  std::array<ServerId, kLookAheadSources> server;  // of the partition that asks
  std::array<PartitionId, kLookAheadMachines> machine;
  std::size_t count = 0;
};

namespace {

constexpr TimeNs kSpreads = 3;      // standard deviations from an expected end to a promised one
constexpr std::uint32_t kOwed = 3;  // rank_of: background below its budget

// By rank: background, -, normal, background below its budget, high, -, protected.
double weight_of(std::uint32_t rank) noexcept {
  constexpr double kClass = 48;
  constexpr std::array<double, 7> kWeight = {1, 1, kClass, kClass * kClass / 8, kClass * kClass, kClass * kClass, kClass * kClass * kClass};
  return kWeight[std::min<std::size_t>(rank, kWeight.size() - 1)];
}

}  // namespace

// The stream as a source of the partition known.machine[0]; false: it has nothing to do with it.
bool Scheduler::State::add_stream(Known& known, StreamId id) noexcept {
  const Stream& stream = streams[id];
  const TimeNs period = stream.config.period_ns;
  const ModuleId entry = topology.applications[stream.config.application].modules.front();
  const Lane& lane = lanes[modules[entry].first_lane];
  ServerId mine = kNone;
  std::uint32_t reach = 0;
  for (ServerId s = lane.first_server; s < lane.first_server + lane.servers; ++s) {
    for (std::uint32_t m = 0; m < known.ask.machines; ++m) {
      if (servers[s].partition != known.machine[m]) continue;
      reach |= 1u << m;
      if (m == 0) mine = s;
    }
  }
  if (mine == kNone) return false;
  const TimeNs newest = stream.newest_capture_ns;
  LookAheadSource source{.period_ns = period, .transit_ns = stream.transit_ns, .slo_ns = stream.config.slo_ns, .run_ns = servers[mine].run_ns,
                         .safe_ns = servers[mine].safe_ns, .cap = servers[mine].cap, .group = modules[entry].first_lane, .machines = reach,
                         .latest = stream.config.supersede == Supersede::latest};
  source.max_age_ns = stream.config.max_age_ns > 0 ? stream.config.max_age_ns : stream.config.slo_ns;
  std::uint8_t priority = priority_of(stream);
  TimeNs covered = stream.covered_ns;
  known.task[known.count] = kNone;
  for (std::uint32_t r = stream.first; r != kNone; r = requests[r].next) {
    if (requests[r].doom != Outcome::pending) continue;
    const TaskId t = requests[r].tasks;
    if (t == kNone) continue;
    if (requests[r].started) {
      if (tasks[t].state != TaskState::placed) continue;
      const TimeNs end = std::max(now, batches[tasks[t].batch].expected_end_ns);
      if (end - requests[r].capture_ns <= source.max_age_ns) covered = std::max(covered, newest + ((end - newest) / period + 1) * period);
    } else if (known.task[known.count] == kNone && tasks[t].state == TaskState::queued) {
      known.task[known.count] = t;
      source.waiting_ns = requests[r].capture_ns;
      source.items = tasks[t].items;
      priority = tasks[t].priority;
    }
  }
  // What is overdue may come any moment, and counts no more after a period.
  if (stream.next_expected_ns >= now) {
    source.next_ns = std::max(stream.next_expected_ns, now + 1) - stream.transit_ns;
  } else if (stream.next_expected_ns + period >= now) {
    source.next_ns = now + period / 16 - stream.transit_ns;
  }
  if (source.waiting_ns == kNever && source.next_ns == kNever) return false;
  // The nearest edge on the grid of the newest capture; windows that have passed are lost.
  TimeNs edge = covered - newest + period / 2;
  edge = newest + (edge >= 0 ? edge / period : -((-edge + period - 1) / period)) * period;
  if (edge + period <= now) edge += (now - edge) / period * period;
  source.need_ns = edge;
  const std::uint32_t rank = rank_of(priority);
  if (rank == kOwed && source.waiting_ns != kNever) return false;  // add_others() sees to it
  source.weight = weight_of(rank);
  known.server[known.count] = mine;
  known.sources[known.count++] = source;
  return true;
}

// What else waits for the partition: of each lane the head of its most urgent class, when that is not a source already, and with it
// so many more as may ride in its batch. Background work that is owed some of its budget should have begun. False: there are more
// than can be weighed.
bool Scheduler::State::add_others(Known& known) noexcept {
  const std::size_t streams_known = known.count;
  for (ServerId s : partitions[known.machine[0]].servers) {
    const Lane& lane = lanes[servers[s].lane];
    if (lane.classes == 0) continue;
    const auto top = static_cast<std::size_t>(std::bit_width(lane.classes) - 1);
    const TaskId t = lane.queue[top].front();
    std::uint32_t others = lane.tasks;
    bool seen = false;
    for (std::size_t i = 0; i < streams_known; ++i) {
      if (known.task[i] == kNone || known.sources[i].group != servers[s].lane) continue;
      --others;
      seen = seen || known.task[i] == t;
    }
    if (seen) continue;
    if (known.count == kLookAheadSources) return false;
    const std::uint32_t rank = rank_of(static_cast<std::uint8_t>(top));
    const TimeNs soonest = now + servers[s].safe_ns[1] * margin_permille / 1000;
    known.task[known.count] = t;
    known.server[known.count] = s;
    known.sources[known.count++] = {.period_ns = 0,
                                    .deadline_ns = std::max(tasks[t].deadline_ns, soonest),
                                    .owed = rank == kOwed,
                                    .waiting_ns = requests[tasks[t].request].capture_ns,
                                    .waiting = others,
                                    .run_ns = servers[s].run_ns,
                                    .safe_ns = servers[s].safe_ns,
                                    .items = tasks[t].items,
                                    .cap = servers[s].cap,
                                    .group = servers[s].lane,
                                    .weight = weight_of(rank)};
  }
  return true;
}

// Partitions that serve the same lanes as the one that asks: the idle ones, or those at work.
void Scheduler::State::add_machines(Known& known, bool busy) noexcept {
  for (ServerId s : partitions[known.machine[0]].servers) {
    const Lane& lane = lanes[servers[s].lane];
    for (ServerId other = lane.first_server; other < lane.first_server + lane.servers && known.ask.machines < kLookAheadMachines; ++other) {
      const Partition& p = partitions[servers[other].partition];
      const auto end = known.machine.begin() + known.ask.machines;
      if (!p.up || (p.held > 0) != busy || std::find(known.machine.begin(), end, servers[other].partition) != end) continue;
      if (busy) {
        const TimeNs spread = std::max<TimeNs>(0, p.promised_ns - p.free_ns) / kSpreads;
        known.ask.free_ns[known.ask.machines] = std::max(now + spread / 2, p.free_ns);  // what is overdue may end soon
        known.ask.spread_ns[known.ask.machines] = spread;
      } else {
        known.ask.free_ns[known.ask.machines] = now;
      }
      known.machine[known.ask.machines++] = servers[other].partition;
    }
  }
}

Scheduler::State::Turn Scheduler::State::serve_periodic(PartitionId id) noexcept {
  Known known;
  known.machine[0] = id;
  known.ask.free_ns[0] = now;
  for (const bool busy : {false, true}) add_machines(known, busy);
  bool shared = false;
  for (StreamId stream : periodic) {
    if (known.count == kLookAheadSources) return Turn::not_shared;
    shared = add_stream(known, stream) || shared;
  }
  if (!shared || !add_others(known)) return Turn::not_shared;
  known.ask.sources = {known.sources.data(), known.count};
  const auto other = [&](const LookAheadSource& s) { return s.weight != known.sources[0].weight; };
  if (std::none_of(known.ask.sources.begin(), known.ask.sources.end(), other)) return Turn::not_shared;
  known.ask.horizon_ns = policy.look_ahead_ns;
  known.ask.margin_permille = margin_permille * 1000 / policy.margin_min_permille;
  const LookAheadMove move = known.ask.decide(now);
  if (move.source == kNone) {
    if (move.until_ns != kNever && move.until_ns > now) {
      partitions[id].deferred_until_ns = move.until_ns;
      want_timer(move.until_ns);
    }
    for (std::size_t i = 0; i < known.count; ++i) {
      if (known.task[i] == kNone) continue;
      ++counters.idled_on_purpose;
      break;
    }
    return Turn::idle;
  }
  partitions[id].deferred_until_ns = 0;
  start_chosen(known.server[move.source], known.task[move.source], move.requests);
  return Turn::started;
}

void Scheduler::State::start_chosen(ServerId id, TaskId lead, std::uint32_t requests_wanted) noexcept {
  const Server& server = servers[id];
  Lane& lane = lanes[server.lane];
  const std::uint32_t target = std::min(server.cap, std::max(requests_wanted, tasks[lead].items));
  if (policy.forecast) modules[lane.module].after_ns = forecast(lane.module, target, server.run_ns[target]);
  const Reason reason = verdict(tasks[lead], lane, now, server.run_ns[tasks[lead].items]);
  if (reason != Reason::none && !probe(tasks[lead], now, server.run_ns[tasks[lead].items])) {
    drop_request(tasks[lead].request, Outcome::dropped, reason, lane.module);
    return;
  }
  take(lane, lead);
  if (lane.forming.items < target) form(lane, server, now, target);
  launch(server.lane, server, now);
}

}  // namespace leat::core
