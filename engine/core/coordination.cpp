#include "engine/core/coordination.h"

#include <algorithm>
#include <utility>

namespace leat::core {

namespace {

constexpr std::uint32_t kMaxUnobserved = 4;  // answers that a client may still report on
constexpr std::uint32_t kAnswersAFar = 3;    // that must have come for each far report; a LookBack has as many

// An application's only module, by partition and batch; empty where it does not run. Nothing: it cannot be coordinated.
streams::BatchTimes batch_times(const Topology& t, const ApplicationSpec& application) {
  if (application.modules.size() != 1) return {};
  streams::BatchTimes times(t.partitions.size());
  std::size_t batch = SIZE_MAX;
  for (const RouteId id : t.modules[application.modules.front()].routes) {
    const RouteSpec& route = t.routes[id];
    if (route.stages.size() != 1) return {};
    const std::vector<TimeNs>& run = route.stages.front().latency.p50_ns;
    batch = std::min({batch, run.size(), std::size_t{route.batch}});
    for (const PartitionId p : route.stages.front().pool)
      if (times[p].empty()) times[p] = run;
  }
  if (batch == 0 || batch == SIZE_MAX) return {};
  for (auto& each : times) each.resize(std::min(batch, each.size()));
  return times;
}

// They have a partition in common.
bool meet(const streams::BatchTimes& a, const streams::BatchTimes& b) {
  for (std::size_t p = 0; p < a.size(); ++p)
    if (!a[p].empty() && !b[p].empty()) return true;
  return false;
}

}  // namespace

Coordination::Coordination(const Topology& topology, const Limits& limits)
    : place_(topology.applications.size()), seats_(limits.streams) {
  for (const ApplicationSpec& application : topology.applications) times_.push_back(batch_times(topology, application));
  const std::vector<streams::BatchTimes>& times = times_;
  std::size_t streams = 0;
  for (std::uint32_t first = 0; first < times.size(); ++first) {
    if (times[first].empty() || place_[first].plan != kNone) continue;
    // Who shares partitions with one of them belongs to them.
    std::vector<std::uint32_t> members = {first};
    const auto number = static_cast<std::uint32_t>(plans_.size());
    place_[first] = {.plan = number, .module = 0};
    for (std::size_t i = 0; i < members.size(); ++i) {
      for (std::uint32_t other = 0; other < times.size(); ++other) {
        if (times[other].empty() || place_[other].plan != kNone || !meet(times[members[i]], times[other])) continue;
        place_[other] = {.plan = number, .module = static_cast<std::uint32_t>(members.size())};
        members.push_back(other);
      }
    }
    std::vector<PartitionId> partitions;
    for (PartitionId p = 0; p < topology.partitions.size(); ++p)
      if (std::any_of(members.begin(), members.end(), [&](std::uint32_t m) { return !times[m][p].empty(); }))
        partitions.push_back(p);
    std::vector<streams::BatchTimes> batch_ns(members.size());
    for (std::size_t m = 0; m < members.size(); ++m)
      for (const PartitionId p : partitions) batch_ns[m].push_back(times[members[m]][p]);
    streams::CoordinatorSettings settings;
    settings.streams = limits.coordinated * static_cast<std::uint32_t>(members.size());
    streams += settings.streams;
    plans_.push_back(std::make_unique<Plan>(std::move(batch_ns), settings));
    Plan& plan = *plans_.back();
    plan.partitions = std::move(partitions);
    for (std::uint32_t p = 0; p < plan.partitions.size(); ++p)
      plan.coordinator.partition(p, false);  // until it is ready
    for (auto* gates : {&plan.gates, &plan.before}) gates->reserve(plan.coordinator.max_batches());
  }
  due_.reserve(streams * kHeld);
  changed_.reserve(streams);
}

bool Coordination::open(TimeNs now, StreamId stream, const StreamConfig& config) noexcept {
  return open(now, stream, config, 0);
}

bool Coordination::open(TimeNs now, StreamId stream, const StreamConfig& config, double prior_slope) noexcept {
  const Place& place = place_[config.application];
  Plan& plan = *plans_[place.plan];
  const Terms& terms = config.terms;
  const std::uint32_t number = plan.coordinator.open(now, {.sla_drop = terms.sla_drop,
                                                           .pace = {.period_ns = terms.period_ns},
                                                           .module = place.module,
                                                           .weight = terms.weight,
                                                           .max_share = terms.max_share,
                                                           .prior_slope = prior_slope,
                                                           .user = config.user,
                                                           .user_weight = 1e-3 * config.user_weight,
                                                           .group = terms.group,
                                                           .task_weight = terms.task_weight,
                                                           .local = terms.local});
  if (number == kNone) return false;
  plan.stream_of[number] = stream;
  seats_[stream] = {.plan = place.plan, .number = number, .period_ns = terms.period_ns};
  return true;
}

void Coordination::take_over(TimeNs now, StreamId stream, const StreamConfig& config,
                             const Coordination& from) noexcept {
  const Seat& old = from.seats_[stream];
  if (old.plan == kNone || !serves(config.application)) return;
  const streams::Coordinator& known = from.plans_[old.plan]->coordinator;
  if (!open(now, stream, config, known.view(old.number).slope)) return;
  Seat& seat = seats_[stream];
  seat.period_ns = old.period_ns;
  seat.capture_ns = old.capture_ns;
  seat.unobserved = old.unobserved;
  seat.since_far = old.since_far;
  if (old.capture_ns > 0) plans_[seat.plan]->coordinator.frame_clock(seat.number, seat.capture_ns, seat.period_ns);
}

void Coordination::close(TimeNs now, StreamId stream) noexcept {
  Seat& s = seats_[stream];
  if (s.plan == kNone) return;
  Plan& plan = *plans_[s.plan];
  plan.coordinator.close(now, s.number);
  plan.stream_of[s.number] = kNone;
  s = Seat{};
}

// ---- requests ----

Coordination::Way Coordination::arrived(TimeNs now, StreamId stream, TimeNs capture_ns, TaskId task) noexcept {
  Seat& s = seats_[stream];
  Plan& plan = *plans_[s.plan];
  plan.coordinator.spoke(now, s.number);
  if (capture_ns > s.capture_ns) plan.coordinator.frame_clock(s.number, s.capture_ns = capture_ns, s.period_ns);
  Entry* chosen = nullptr;
  for (Entry* e = s.entry.data(); e != s.entry.data() + s.entries; ++e) {
    // A client sends its frame when it has taken it, which is up to a period before the batch; the older one of a probe
    // up to two.
    const TimeNs lead = s.period_ns * (e->wanted > 1 ? 2 : 1) + s.period_ns / 4;
    if (now + lead < e->frame.at_ns) break;
    if (e->came >= e->wanted) continue;
    chosen = e;
    if (!plan.gates[e->gate].open) break;
  }
  // One that no plan asks for is its client's own, as far as it may ask; else it is no more than background work.
  if (chosen == nullptr) return plan.coordinator.asked(now, s.number) ? Way::queue : Way::background;
  Gate& g = plan.gates[chosen->gate];
  ++chosen->came;
  ++g.came;
  if (g.open || g.latest_ns <= now || s.holds == kHeld) return Way::queue;
  s.held[s.holds] = task;
  s.held_for[s.holds++] = chosen->gate;
  plan.next_gate_ns = std::min(plan.next_gate_ns, g.due_ns());
  return Way::hold;
}

void Coordination::withdrawn(StreamId stream, TaskId task) noexcept {
  Seat& s = seats_[stream];
  for (std::uint32_t i = 0; i < s.holds; ++i) {
    if (s.held[i] != task) continue;
    --s.holds;
    s.held[i] = s.held[s.holds];
    s.held_for[i] = s.held_for[s.holds];
    return;
  }
}

std::span<const TaskId> Coordination::due(TimeNs now) noexcept {
  due_.clear();
  for (const auto& each : plans_) {
    if (each->next_gate_ns > now) continue;
    Plan& plan = *each;
    plan.next_gate_ns = kNever;
    for (const StreamId stream : plan.stream_of) {
      if (stream == kNone) continue;
      Seat& s = seats_[stream];
      std::uint32_t kept = 0;
      for (std::uint32_t i = 0; i < s.holds; ++i) {
        Gate* g = s.held_for[i] == kNone ? nullptr : &plan.gates[s.held_for[i]];
        if (g == nullptr || g->open || g->due_ns() <= now) {
          if (g != nullptr) {
            g->open = true;
            plan.late_ns[g->partition] = std::max<TimeNs>(0, now - g->start_ns);
          }
          due_.push_back(s.held[i]);
          continue;
        }
        plan.next_gate_ns = std::min(plan.next_gate_ns, g->due_ns());
        s.held[kept] = s.held[i];
        s.held_for[kept++] = s.held_for[i];
      }
      s.holds = kept;
    }
  }
  return due_;
}

void Coordination::answered(TimeNs now, StreamId stream, TimeNs capture_ns) noexcept {
  Seat& s = seats_[stream];
  plans_[s.plan]->coordinator.answered(now, s.number, capture_ns);
  s.unobserved = std::min(s.unobserved + 1, kMaxUnobserved);
  s.since_far = std::min(s.since_far + 1, kAnswersAFar);
}

bool Coordination::observe(TimeNs now, StreamId stream, const Observation& seen) noexcept {
  if (stream >= seats_.size() || !has(stream)) return false;
  Seat& s = seats_[stream];
  if (seen.far ? s.since_far < kAnswersAFar : s.unobserved == 0) return false;
  if (seen.far)
    s.since_far = 0;
  else
    --s.unobserved;
  streams::Coordinator& c = plans_[s.plan]->coordinator;
  if (streams::Coordinator::period_ok(seen.period_ns)) {
    s.period_ns = seen.period_ns;
    c.frame_clock(s.number, s.capture_ns, s.period_ns);
  }
  return c.observe(now, s.number, seen.stride, seen.drop, seen.far, seen.expected);
}

void Coordination::partition(PartitionId partition, bool up) noexcept {
  for (const auto& plan : plans_) {
    for (std::uint32_t p = 0; p < plan->partitions.size(); ++p)
      if (plan->partitions[p] == partition) plan->coordinator.partition(p, up);
  }
}

void Coordination::ran(std::uint32_t application, PartitionId partition, std::uint32_t items, TimeNs run_ns) noexcept {
  if (!serves(application)) return;
  Plan& plan = *plans_[place_[application].plan];
  const auto at = std::find(plan.partitions.begin(), plan.partitions.end(), partition);
  if (at == plan.partitions.end()) return;
  const auto p = static_cast<PartitionId>(at - plan.partitions.begin());
  plan.coordinator.ran(place_[application].module, p, items, run_ns, std::exchange(plan.late_ns[p], 0));
}

// ---- plans ----

void Coordination::tick(TimeNs now) noexcept {
  changed_.clear();
  for (const auto& plan : plans_) {
    if (!plan->coordinator.any() || plan->coordinator.next_tick() > now) continue;
    plan->coordinator.tick(now);
    apply(now, *plan);
  }
}

// The plan's batches as gates, and each stream's part of them. What was kept of the plan before keeps who has come.
void Coordination::apply(TimeNs now, Plan& plan) noexcept {
  const streams::Coordinator& c = plan.coordinator;
  std::swap(plan.gates, plan.before);
  plan.gates.clear();
  for (Gate& g : plan.before) g.next = kNone;
  const TimeNs near = now + c.settings().overlap_ns;
  for (const streams::PlannedBatch& b : c.batches()) {
    const auto grace = static_cast<TimeNs>(c.grace(b.partition) * static_cast<double>(b.end_ns - b.start_ns));
    plan.gates.push_back(
        {.start_ns = b.start_ns, .latest_ns = b.start_ns + grace, .partition = b.partition, .wanted = b.count});
    if (b.start_ns >= near) continue;
    for (Gate& old : plan.before) {
      if (old.start_ns != b.start_ns || old.partition != b.partition) continue;
      old.next = static_cast<std::uint32_t>(plan.gates.size() - 1);
      plan.gates.back().came = old.came;
      plan.gates.back().open = old.open;
      break;
    }
  }
  plan.next_gate_ns = kNever;
  for (const StreamId stream : plan.stream_of) {
    if (stream == kNone) continue;
    Seat& s = seats_[stream];
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < s.entries; ++i) {
      const std::uint32_t gate = plan.before[s.entry[i].gate].next;
      if (gate == kNone || !c.admitted(s.number)) continue;
      s.entry[kept] = s.entry[i];
      s.entry[kept++].gate = gate;
    }
    s.entries = kept;
    for (std::uint32_t i = 0; i < s.holds; ++i) {
      if (s.held_for[i] != kNone) s.held_for[i] = plan.before[s.held_for[i]].next;
      plan.next_gate_ns =
          std::min(plan.next_gate_ns, s.held_for[i] == kNone ? now : plan.gates[s.held_for[i]].due_ns());
    }
    changed_.push_back(stream);
  }
  std::uint32_t gate = 0;
  for (const streams::PlannedBatch& b : c.batches()) {
    const std::uint32_t at = gate++;
    if (b.start_ns < near) continue;
    std::uint32_t before = kNone;
    for (const std::uint32_t number : c.members(b)) {
      Seat& s = seats_[plan.stream_of[number]];
      if (number == before) {
        if (s.entries > 0 && s.entry[s.entries - 1].gate == at) {
          s.entry[s.entries - 1].wanted = 2;
          s.entry[s.entries - 1].frame.probe = true;
        }
      } else if (s.entries < kScheduledFrames) {
        s.entry[s.entries++] = {.frame = {.at_ns = b.start_ns}, .gate = at};
      }
      before = number;
    }
  }
}

TimeNs Coordination::next_timer() const noexcept {
  TimeNs at = kNever;
  for (const auto& plan : plans_) {
    if (!plan->coordinator.any()) continue;
    at = std::min({at, plan->coordinator.next_tick(), plan->next_gate_ns});
  }
  return at;
}

StreamSchedule Coordination::schedule(StreamId stream) const noexcept {
  StreamSchedule out;
  if (stream >= seats_.size() || !has(stream)) return out;
  const Seat& s = seats_[stream];
  out.view = plans_[s.plan]->coordinator.view(s.number);
  for (; out.count < s.entries; ++out.count) out.frames[out.count] = s.entry[out.count].frame;
  return out;
}

}  // namespace leat::core
