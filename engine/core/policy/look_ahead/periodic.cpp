#include "engine/core/policy/look_ahead/periodic.h"

#include <algorithm>
#include <array>

namespace leat::core {
namespace {

constexpr TimeNs kHorizonNs =
    100'000'000;  // of look-ahead at most; found by trying on docs/research/studies.md's scenarios
// The margin of promises, permille: one broken costs a tenth, a hundred kept give it back.
constexpr std::uint32_t kMarginUp = 100, kMarginDown = 1, kMarginMax = 3000;
constexpr TimeNs kSpreads = 3;      // standard deviations from an expected end to a promised one
constexpr std::uint32_t kOwed = 3;  // rank_of: background below its budget

// By rank: background, -, normal, background below its budget, high, -, protected.
double weight_of(std::uint32_t rank) noexcept {
  constexpr double kClass = 48;
  constexpr std::array<double, 2 * kPriorities> kWeight = {1,
                                                           1,
                                                           kClass,
                                                           kClass * kClass / 8,
                                                           kClass * kClass,
                                                           kClass * kClass,
                                                           kClass * kClass * kClass,
                                                           kClass * kClass * kClass};
  return kWeight[rank % (2 * kPriorities)];
}

}  // namespace

struct Periodic::Known {
  LookAhead ask;
  std::array<LookAheadSource, kLookAheadSources> sources;
  std::array<TaskId, kLookAheadSources> task;
  std::array<ConsumerId, kLookAheadSources> consumer;  // of the partition that asks
  std::array<PartitionId, kLookAheadMachines> machine;
  std::size_t count = 0;
};

Periodic::Periodic(const StateView& view, Operations& core, const Component& component, const Policy& policy)
    : view_(view),
      core_(core),
      component_(component),
      promised_ns_(view.model, component),
      margin_permille_(kPromiseMarginPermille),
      look_ahead_(policy.look_ahead),
      window_ns_(std::max<TimeNs>(policy.background_window_ns, 1'000'000)),
      budget_ns_(policy.look_ahead ? policy.background_budget_ns : 0),
      background_credit_ns_(budget_ns_) {
  streams_.reserve(policy.look_ahead ? view.ledger.streams() : 0);
  if (!policy.look_ahead) return;
  const Topology& t = view.topology();
  scaled_.resize(t.routes.size());
  for (ModuleId m : component.modules) {
    for (RouteId r : t.modules[m].routes) {
      scaled_[r].run_ns.resize(t.routes[r].batch + 1);
      scaled_[r].safe_ns.resize(t.routes[r].batch + 1);
    }
  }
}

bool Periodic::active() noexcept {
  if (!look_ahead_) return false;
  if (seen_version_ != view_.ledger.periodic_version()) {
    seen_version_ = view_.ledger.periodic_version();
    streams_.clear();
    for (StreamId id : view_.ledger.periodic()) {
      if (std::ranges::binary_search(component_.applications, view_.ledger.stream(id).config.application))
        streams_.push_back(id);
    }
  }
  return !streams_.empty();
}

// ---- background work and promises ----

// Credit for background work flows in steadily, up to the budget of one window; what is started is paid at once, as
// planned.
void Periodic::spend_background(TimeNs run) noexcept {
  const TimeNs budget = budget_ns_, window = window_ns_;
  if (budget == 0) return;
  const TimeNs credit = std::min(view_.now - background_ns_, 2 * window) / 1000 * budget / (window / 1000);
  if (credit > 0 || run != 0) {
    background_credit_ns_ = std::min(budget, background_credit_ns_ + credit) - run;
    background_ns_ = view_.now;
  }
}

// Background work that is owed some of its budget stands between normal and high.
std::uint32_t Periodic::rank_of(std::uint8_t level) noexcept {
  const std::uint32_t share = level - class_of(level);
  if (class_of(level) == 0 && budget_ns_ > 0) {
    spend_background(0);
    if (background_credit_ns_ > 0) return 2 * share + kOwed;
  }
  return 2u * level;
}

void Periodic::promised(ConsumerId id, std::uint32_t items, TimeNs start) noexcept {
  const QueueConsumer& s = view_.queues.consumer(id);
  promised_ns_[s.partition] = start + s.safe_ns[std::min(items, view_.route(s.route).batch)] * margin_permille_ / 1000;
}

void Periodic::learn(const Batch& b, TimeNs ran, bool usual) noexcept {
  const StageSpec& stage = view_.route(b.route).stages[b.stage];
  if (class_of(b.level) == 0) spend_background(ran - stage.latency.p50_ns[b.list.items - 1]);
  if (!usual) return;
  const TimeNs promised = stage.latency.p99_ns[b.list.items - 1] * margin_permille_ / 1000;
  if (ran > promised) {
    margin_permille_ = std::min(margin_permille_ + kMarginUp, kMarginMax);
  } else {
    margin_permille_ = std::max(margin_permille_ - kMarginDown, kPromiseMarginPermille);
  }
}

// ---- what look-ahead is told ----

// A profile that is far too high would have every camera wait for a time that never comes.
Periodic::Tables Periodic::tables_of(const QueueConsumer& consumer) noexcept {
  const ModuleLoad& load = view_.load.module(view_.route(consumer.route).module);
  if (load.scale_permille >= 1000) return {consumer.run_ns, consumer.safe_ns};
  Scaled& scaled = scaled_[consumer.route];
  if (scaled.permille != load.scale_permille) {
    scaled.permille = load.scale_permille;
    for (std::size_t n = 0; n < scaled.run_ns.size(); ++n) {
      scaled.run_ns[n] = std::max<TimeNs>(1, load.scaled(consumer.run_ns[n]));
      scaled.safe_ns[n] = std::max<TimeNs>(1, load.scaled(consumer.safe_ns[n]));
    }
  }
  return {scaled.run_ns.data(), scaled.safe_ns.data()};
}

// The stream as a source of the partition known.machine[0]; false: it has nothing to do with it.
bool Periodic::add_stream(Known& known, StreamId id) noexcept {
  const Stream& stream = view_.ledger.stream(id);
  const TimeNs period = stream.config.period_ns, now = view_.now;
  const ModuleId entry = view_.topology().applications[stream.config.application].modules.front();
  const QueueId queue_id = view_.queues.first(entry);
  const TaskQueue& queue = view_.queues[queue_id];
  ConsumerId mine = kNone;
  std::uint32_t reach = 0;
  for (std::uint32_t m = 0; m < known.ask.machines; ++m) {
    for (ConsumerId s : view_.queues.of_partition(known.machine[m])) {
      if (s < queue.first_consumer || s >= queue.first_consumer + queue.consumers) continue;
      reach |= 1u << m;
      if (m == 0) mine = s;
    }
    if (m == 0 && mine == kNone) return false;
  }
  const QueueConsumer& consumer = view_.queues.consumer(mine);
  const Tables tables = tables_of(consumer);
  const TimeNs newest = stream.newest_capture_ns;
  LookAheadSource source{.period_ns = period,
                         .transit_ns = stream.transit_ns,
                         .slo_ns = stream.config.slo_ns,
                         .run_ns = tables.run_ns,
                         .safe_ns = tables.safe_ns,
                         .cap = starter_->cap_for(mine),
                         .group = queue_id,
                         .machines = reach,
                         .latest = stream.config.supersede == Supersede::latest};
  source.max_age_ns = stream.config.max_age_ns > 0 ? stream.config.max_age_ns : stream.config.slo_ns;
  std::uint8_t priority = view_.ledger.priority_of(stream);
  TimeNs covered = stream.covered_ns;
  known.task[known.count] = kNone;
  for (std::uint32_t r = stream.first; r != kNone; r = view_.ledger.request(r).next) {
    const Request& request = view_.ledger.request(r);
    if (request.doom != Outcome::pending || request.tasks == kNone) continue;
    const Task& task = view_.tasks[request.tasks];
    if (request.started) {
      if (task.state != TaskState::placed) continue;
      const TimeNs end = std::max(now, view_.machine.batch(task.batch).expected_end_ns);
      if (end - request.capture_ns <= source.max_age_ns)
        covered = std::max(covered, newest + ((end - newest) / period + 1) * period);
    } else if (known.task[known.count] == kNone && task.state == TaskState::queued) {
      known.task[known.count] = request.tasks;
      source.waiting_ns = request.capture_ns;
      source.items = task.items;
      priority = task.level;
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
  if (rank % (2 * kPriorities) == kOwed && source.waiting_ns != kNever) return false;  // add_others() sees to it
  source.weight = weight_of(rank);
  known.consumer[known.count] = mine;
  known.sources[known.count++] = source;
  return true;
}

// What else waits for the partition: of each queue the head of its most urgent class, when that is not a source
// already, and with it so many more as may ride in its batch. Background work that is owed some of its budget should
// have begun. False: there are more than can be weighed.
bool Periodic::add_others(Known& known) noexcept {
  const std::size_t streams_known = known.count;
  for (ConsumerId s : view_.queues.of_partition(known.machine[0])) {
    const QueueConsumer& consumer = view_.queues.consumer(s);
    const TaskQueue& queue = view_.queues[consumer.queue];
    if (queue.classes == 0) continue;
    const std::uint8_t top = view_.top_class(queue);
    const TaskId t = queue.by_deadline[top].front();
    std::uint32_t others = queue.tasks;
    bool seen = false;
    for (std::size_t i = 0; i < streams_known; ++i) {
      if (known.task[i] == kNone || known.sources[i].group != consumer.queue) continue;
      --others;
      seen = seen || known.task[i] == t;
    }
    if (seen) continue;
    if (known.count == kLookAheadSources) return false;
    const std::uint32_t rank = rank_of(top);
    const Tables tables = tables_of(consumer);
    const TimeNs soonest = view_.now + tables.safe_ns[1] * margin_permille_ / 1000;
    known.task[known.count] = t;
    known.consumer[known.count] = s;
    known.sources[known.count++] = {.period_ns = 0,
                                    .deadline_ns = std::max(view_.tasks[t].deadline_ns, soonest),
                                    .owed = rank % (2 * kPriorities) == kOwed,
                                    .waiting_ns = view_.ledger.request(view_.tasks[t].request).capture_ns,
                                    .waiting = others,
                                    .run_ns = tables.run_ns,
                                    .safe_ns = tables.safe_ns,
                                    .items = view_.tasks[t].items,
                                    .cap = starter_->cap_for(s),
                                    .group = consumer.queue,
                                    .weight = weight_of(rank)};
  }
  return true;
}

// Partitions that serve the same queues as the one that asks: the idle ones, or those at work.
void Periodic::add_machines(Known& known, bool busy) noexcept {
  const TimeNs now = view_.now;
  for (ConsumerId s : view_.queues.of_partition(known.machine[0])) {
    const TaskQueue& queue = view_.queues[view_.queues.consumer(s).queue];
    for (ConsumerId other = queue.first_consumer;
         other < queue.first_consumer + queue.consumers && known.ask.machines < kLookAheadMachines; ++other) {
      const PartitionId id = view_.queues.consumer(other).partition;
      const Partition& p = view_.machine.partition(id);
      const auto end = known.machine.begin() + known.ask.machines;
      if (!p.up || (p.held > 0) != busy || std::find(known.machine.begin(), end, id) != end) continue;
      if (busy) {
        const TimeNs spread = std::max<TimeNs>(0, promised_ns_[id] - p.free_ns) / kSpreads;
        known.ask.free_ns[known.ask.machines] = std::max(now + spread / 2, p.free_ns);  // what is overdue may end soon
        known.ask.spread_ns[known.ask.machines] = spread;
      } else {
        known.ask.free_ns[known.ask.machines] = now;
      }
      known.machine[known.ask.machines++] = id;
    }
  }
}

Turn Periodic::serve(PartitionId id, Starter& starter) noexcept {
  starter_ = &starter;
  Known known;
  known.machine[0] = id;
  known.ask.free_ns[0] = view_.now;
  for (const bool busy : {false, true}) add_machines(known, busy);
  bool shared = false;
  for (StreamId stream : streams_) {
    if (known.count == kLookAheadSources) return Turn::not_shared;
    shared = add_stream(known, stream) || shared;
  }
  if (!shared || !add_others(known)) return Turn::not_shared;
  known.ask.sources = {known.sources.data(), known.count};
  const auto other = [&](const LookAheadSource& s) { return s.weight != known.sources[0].weight; };
  if (std::none_of(known.ask.sources.begin(), known.ask.sources.end(), other)) return Turn::not_shared;
  known.ask.horizon_ns = kHorizonNs;
  known.ask.margin_permille = margin_permille_ * 1000 / kPromiseMarginPermille;
  const LookAheadMove move = known.ask.decide(view_.now);
  if (move.source == kNone) {
    if (move.until_ns != kNever && move.until_ns > view_.now) core_.keep_idle(id, move.until_ns);
    for (std::size_t i = 0; i < known.count; ++i) {
      if (known.task[i] == kNone) continue;
      core_.idled_on_purpose();
      break;
    }
    return Turn::idle;
  }
  const ConsumerId consumer = known.consumer[move.source];
  if (view_.tasks[known.task[move.source]].items > view_.route(view_.queues.consumer(consumer).route).batch)
    return Turn::not_shared;  // this partition cannot hold it
  core_.keep_idle(id, 0);
  starter.start_chosen(consumer, known.task[move.source], move.requests);
  return Turn::started;
}

}  // namespace leat::core
