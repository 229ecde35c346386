#include "engine/core/coordination.h"

#include <algorithm>

namespace leat::core {

namespace {

constexpr std::uint32_t kMostUnobserved = 4;  // answers that a client may still report on
constexpr std::uint32_t kAnswersAFar = 4;     // that must have come for each far report

// Of every partition that serves the module alone, batch by batch; empty: it cannot be coordinated.
std::vector<std::vector<TimeNs>> batch_times(const Topology& t, const ApplicationSpec& application,
                                             std::vector<PartitionId>& partitions) {
  std::vector<std::vector<TimeNs>> times;
  if (application.modules.size() != 1) return times;
  std::size_t batch = SIZE_MAX;
  for (const RouteId id : t.modules[application.modules.front()].routes) {
    const RouteSpec& route = t.routes[id];
    if (route.stages.size() != 1) return {};
    const std::vector<TimeNs>& run = route.stages.front().latency.p50_ns;
    batch = std::min({batch, run.size(), std::size_t{route.batch}});
    for (const PartitionId p : route.stages.front().pool) {
      if (std::find(partitions.begin(), partitions.end(), p) != partitions.end()) continue;
      partitions.push_back(p);
      times.push_back(run);
    }
  }
  for (auto& each : times) each.resize(batch);
  return times;
}

}  // namespace

Coordination::Coordination(const Topology& topology, const Limits& limits) : seats_(limits.streams) {
  streams::CoordinatorSettings settings;
  settings.streams = limits.coordinated;
  for (const ApplicationSpec& application : topology.applications) {
    std::vector<PartitionId> partitions;
    auto times = batch_times(topology, application, partitions);
    applications_.push_back(nullptr);
    if (times.empty()) continue;
    applications_.back() = std::make_unique<Application>(std::move(times), settings);
    Application& a = *applications_.back();
    a.partitions = std::move(partitions);
    for (std::uint32_t p = 0; p < a.partitions.size(); ++p) a.coordinator.partition(p, false);  // until it is ready
    for (auto* gates : {&a.gates, &a.before}) gates->reserve(a.coordinator.most_batches());
  }
  due_.reserve(std::size_t{limits.coordinated} * kHeld);
  changed_.reserve(std::size_t{limits.coordinated} * topology.applications.size());
}

bool Coordination::open(TimeNs now, StreamId stream, const StreamConfig& config) noexcept {
  Application& a = *applications_[config.application];
  const Terms& terms = config.terms;
  const std::uint32_t number = a.coordinator.open(now, {.sla_drop = terms.sla_drop,
                                                        .pace = {.period_ns = terms.period_ns},
                                                        .weight = terms.weight,
                                                        .max_share = terms.max_share,
                                                        .group = terms.group,
                                                        .task_weight = terms.task_weight,
                                                        .local = terms.local});
  if (number == kNone) return false;
  a.stream_of[number] = stream;
  seats_[stream] = {.application = config.application, .number = number, .period_ns = terms.period_ns};
  return true;
}

void Coordination::close(TimeNs now, StreamId stream) noexcept {
  Seat& s = seats_[stream];
  if (s.application == kNone) return;
  Application& a = *applications_[s.application];
  a.coordinator.close(now, s.number);
  a.stream_of[s.number] = kNone;
  s = Seat{};
}

// ---- requests ----

Coordination::Way Coordination::arrived(TimeNs now, StreamId stream, TimeNs capture_ns, TaskId task) noexcept {
  Seat& s = seats_[stream];
  Application& a = *applications_[s.application];
  a.coordinator.spoke(now, s.number);
  if (capture_ns > s.capture_ns) a.coordinator.frame_clock(s.number, s.capture_ns = capture_ns, s.period_ns);
  Entry* chosen = nullptr;
  for (Entry* e = s.entry.data(); e != s.entry.data() + s.entries; ++e) {
    // A client sends its frame when it has taken it, which is up to a period before the batch; the older one of a probe
    // up to two.
    const TimeNs lead = s.period_ns * (e->wanted > 1 ? 2 : 1) + s.period_ns / 4;
    if (now + lead < e->frame.at_ns) break;
    if (e->came >= e->wanted) continue;
    chosen = e;
    if (!a.gates[e->gate].open) break;
  }
  if (chosen == nullptr) return Way::background;
  Gate& g = a.gates[chosen->gate];
  ++chosen->came;
  ++g.came;
  if (g.open || g.latest_ns <= now || s.holds == kHeld) return Way::queue;
  s.held[s.holds] = task;
  s.held_for[s.holds++] = chosen->gate;
  a.next_gate_ns = std::min(a.next_gate_ns, g.due_ns());
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
  for (const auto& each : applications_) {
    if (each == nullptr || each->next_gate_ns > now) continue;
    Application& a = *each;
    a.next_gate_ns = kNever;
    for (const StreamId stream : a.stream_of) {
      if (stream == kNone) continue;
      Seat& s = seats_[stream];
      std::uint32_t kept = 0;
      for (std::uint32_t i = 0; i < s.holds; ++i) {
        Gate* g = s.held_for[i] == kNone ? nullptr : &a.gates[s.held_for[i]];
        if (g == nullptr || g->open || g->due_ns() <= now) {
          if (g != nullptr) g->open = true;
          due_.push_back(s.held[i]);
          continue;
        }
        a.next_gate_ns = std::min(a.next_gate_ns, g->due_ns());
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
  applications_[s.application]->coordinator.answered(now, s.number, capture_ns);
  s.unobserved = std::min(s.unobserved + 1, kMostUnobserved);
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
  streams::Coordinator& c = applications_[s.application]->coordinator;
  if (streams::Coordinator::period_ok(seen.period_ns)) {
    s.period_ns = seen.period_ns;
    c.frame_clock(s.number, s.capture_ns, s.period_ns);
  }
  return c.observe(now, s.number, seen.stride, seen.drop, seen.far);
}

void Coordination::partition(PartitionId partition, bool up) noexcept {
  for (const auto& a : applications_) {
    if (a == nullptr) continue;
    for (std::uint32_t p = 0; p < a->partitions.size(); ++p)
      if (a->partitions[p] == partition) a->coordinator.partition(p, up);
  }
}

void Coordination::ran(std::uint32_t application, PartitionId partition, std::uint32_t items, TimeNs run_ns) noexcept {
  if (!serves(application)) return;
  Application& a = *applications_[application];
  const auto at = std::find(a.partitions.begin(), a.partitions.end(), partition);
  if (at != a.partitions.end()) a.coordinator.ran(static_cast<PartitionId>(at - a.partitions.begin()), items, run_ns);
}

// ---- plans ----

void Coordination::tick(TimeNs now) noexcept {
  changed_.clear();
  for (const auto& a : applications_) {
    if (a == nullptr || !a->coordinator.any() || a->coordinator.next_tick() > now) continue;
    a->coordinator.tick(now);
    apply(now, *a);
  }
}

// The plan's batches as gates, and each stream's part of them. What was kept of the plan before keeps who has come.
void Coordination::apply(TimeNs now, Application& a) noexcept {
  const streams::Coordinator& c = a.coordinator;
  std::swap(a.gates, a.before);
  a.gates.clear();
  for (Gate& g : a.before) g.next = kNone;
  const TimeNs near = now + c.settings().overlap_ns;
  for (const streams::PlannedBatch& b : c.batches()) {
    const auto grace = static_cast<TimeNs>(c.settings().grace * static_cast<double>(b.end_ns - b.start_ns));
    a.gates.push_back(
        {.start_ns = b.start_ns, .latest_ns = b.start_ns + grace, .partition = b.partition, .wanted = b.count});
    if (b.start_ns >= near) continue;
    for (Gate& old : a.before) {
      if (old.start_ns != b.start_ns || old.partition != b.partition) continue;
      old.next = static_cast<std::uint32_t>(a.gates.size() - 1);
      a.gates.back().came = old.came;
      a.gates.back().open = old.open;
      break;
    }
  }
  a.next_gate_ns = kNever;
  for (const StreamId stream : a.stream_of) {
    if (stream == kNone) continue;
    Seat& s = seats_[stream];
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < s.entries; ++i) {
      const std::uint32_t gate = a.before[s.entry[i].gate].next;
      if (gate == kNone || !c.admitted(s.number)) continue;
      s.entry[kept] = s.entry[i];
      s.entry[kept++].gate = gate;
    }
    s.entries = kept;
    for (std::uint32_t i = 0; i < s.holds; ++i) {
      if (s.held_for[i] != kNone) s.held_for[i] = a.before[s.held_for[i]].next;
      a.next_gate_ns = std::min(a.next_gate_ns, s.held_for[i] == kNone ? now : a.gates[s.held_for[i]].due_ns());
    }
    changed_.push_back(stream);
  }
  std::uint32_t gate = 0;
  for (const streams::PlannedBatch& b : c.batches()) {
    const std::uint32_t at = gate++;
    if (b.start_ns < near) continue;
    std::uint32_t before = kNone;
    for (const std::uint32_t number : c.members(b)) {
      Seat& s = seats_[a.stream_of[number]];
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
  for (const auto& a : applications_) {
    if (a == nullptr || !a->coordinator.any()) continue;
    at = std::min({at, a->coordinator.next_tick(), a->next_gate_ns});
  }
  return at;
}

StreamSchedule Coordination::schedule(StreamId stream) const noexcept {
  StreamSchedule out;
  if (stream >= seats_.size() || !has(stream)) return out;
  const Seat& s = seats_[stream];
  out.view = applications_[s.application]->coordinator.view(s.number);
  for (; out.count < s.entries; ++out.count) out.frames[out.count] = s.entry[out.count].frame;
  return out;
}

}  // namespace leat::core
