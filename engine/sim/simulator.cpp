#include "engine/sim/simulator.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "engine/core/policy/registry.h"
#include "engine/sim/comings.h"
#include "engine/sim/event.h"
#include "engine/sim/flight.h"
#include "engine/sim/host_links.h"
#include "engine/sim/thread_clock.h"
#include "engine/sim/workload/random.h"

namespace leat::sim {
namespace {

using core::kNever;
using core::kNone;
using core::PartitionId;

[[noreturn]] void unsafe(const char* what, TimeNs at) {
  std::fprintf(stderr, "leat: simulator: %s at %lld ns\n", what, static_cast<long long>(at));
  std::abort();
}

constexpr std::uint64_t kSampleEvery = 1024;  // events; far more often than the core's ring of samples can fill

class Run final : private core::TaskSizes, private core::Offers {
 public:
  explicit Run(const Scenario& s);
  Outcomes execute();

 private:
  void plan(TimeNs at, EventKind kind, std::uint32_t batch, std::uint32_t life) {
    events_.heap.push_back({.at = at, .serial = ++events_.serial, .kind = kind, .batch = batch, .life = life});
    std::push_heap(events_.heap.begin(), events_.heap.end(), Later{});
  }
  void note(std::uint64_t what, std::uint64_t a, std::uint64_t b) {
    trace_.hash = (trace_.hash ^ mix(static_cast<std::uint64_t>(now_) + (what << 56) + (a << 20) + b)) * 0x100000001B3u;
  }
  [[nodiscard]] TimeNs clock() const { return now_ + events_.step_ns; }
  void find_fan_outs(const core::Topology& t);
  void open(std::size_t stream);
  void come_or_go(const Coming& c);
  void arrive(std::size_t arrival);
  void submit(std::size_t arrival);
  void send_frame();
  void scheduled(core::StreamId stream);
  [[nodiscard]] const Arrival& arrival(std::size_t i) const {
    return i < scenario_.arrivals.size() ? scenario_.arrivals[i] : cameras_.sent[i - scenario_.arrivals.size()];
  }
  void handle(const Event& e);
  void fault(const Fault& f);
  [[nodiscard]] bool replace(const Replacement& r);  // false: too many are under way
  void drain();
  void sent(const core::Action& a);
  void transfer(const core::Action& a);
  [[nodiscard]] TimeNs startable(const SimBatch& b) const;
  void answered(const core::Action& a);
  void reach(std::uint32_t batch);
  void begin(PartitionId partition);
  void end(std::uint32_t batch);
  void start(PartitionId partition, std::uint32_t batch);
  [[nodiscard]] bool goes_on(const SimBatch& b);
  void estimate();
  void take_samples();
  [[nodiscard]] TimeNs duration(const SimBatch& b, PartitionId partition);
  [[nodiscard]] std::span<const core::TaskResult> results(const SimBatch& b);
  [[nodiscard]] std::uint32_t units(std::uint64_t token, core::ModuleId module,
                                    std::uint32_t item) const noexcept override {
    return scenario_.size(static_cast<std::size_t>(token), module, item);
  }
  [[nodiscard]] std::optional<TimeNs> picture_ns(core::StreamId s) const noexcept override {
    if (!producers_.offers(s)) return std::nullopt;
    const std::size_t i = producers_.picture(s);
    return i == Producers::kNoPicture ? 0 : capture_ns(arrival(i)) + events_.step_ns;
  }
  [[nodiscard]] static TimeNs capture_ns(const Arrival& a) { return a.capture_ns > 0 ? a.capture_ns : a.at_ns; }

  struct Filmed {
    Cameras world;
    std::vector<Arrival> sent = {};             // by cameras
    std::vector<Cameras::Sent> frames = {};     // the same
    std::vector<std::uint32_t> of_stream = {};  // kNone: none
  };
  struct Events {
    std::vector<Event> heap;
    std::uint64_t serial = 0;
    TimeNs step_ns = 0;  // the scheduler's clock is so far ahead
  };
  struct Machine {
    explicit Machine(const core::Topology& t) : units(t.partitions.size()), links(t) {}

    std::vector<Unit> units;
    HostLinks links;
  };
  struct Trace {
    std::uint64_t hash = 0xCBF29CE484222325u, executions = 0;
  };

  const Scenario& scenario_;
  const core::Topology* plan_;  // in force
  record::RecordedCore core_;
  std::unique_ptr<core::Estimator> estimator_;  // nullptr: the policy looks at no estimates
  Filmed cameras_;
  Producers producers_;
  std::vector<core::StreamId> streams_;  // kNone: not there yet
  std::vector<TimeNs> slo_;              // by stream
  const std::vector<Coming> comings_;
  Events events_;
  SimFlights flights_;
  Machine machine_;
  SimArrivals seen_;
  std::vector<std::uint8_t> fans_out_;  // by module
  SimScratch scratch_;
  TimeNs now_ = 0;
  Trace trace_;
  Outcomes out_;
};

Run::Run(const Scenario& s)
    : scenario_(s),
      plan_(&s.topology),
      core_(s.topology, s.policy, s.limits, s.names),
      estimator_(core::make_estimator(s.policy, s.topology, s.estimate_draws, s.seed)),
      cameras_{.world = Cameras(s.cameras, periods_of(s.cameras, s.streams))},
      producers_(s.limits.streams, s.write),
      streams_(s.streams.size(), kNone),
      slo_(s.streams.size(), 0),
      comings_(comings_of(s)),
      flights_(s.limits.batches),
      machine_(s.topology),
      seen_(s.arrivals.size()),
      fans_out_(std::max<std::size_t>(s.topology.modules.size(), s.limits.modules), 0) {
  if (s.size) core_.measure_tasks(*this);
  core_.watch_offers(*this);
  core_.record(s.record, 0);
  find_fan_outs(s.topology);
  for (PartitionId p = 0; p < machine_.units.size(); ++p) core_.partition_ready(0, p);
  for (std::size_t i = 0; i < s.streams.size(); ++i)
    if (i >= s.lives.size() || s.lives[i].opened_ns <= 0) open(i);
  cameras_.of_stream.resize(s.limits.streams, kNone);
  for (std::uint32_t c = 0; c < s.cameras.size(); ++c) cameras_.of_stream[streams_[s.cameras[c].stream]] = c;
  if (estimator_ != nullptr) plan(s.estimate_every_ns, EventKind::estimate, 0, 0);
}

void Run::find_fan_outs(const core::Topology& t) {
  std::ranges::fill(fans_out_, std::uint8_t{0});
  for (const core::ModuleSpec& m : t.modules) {
    if (m.fan_out_cap <= 1) continue;
    for (core::ModuleId before : m.before) fans_out_[before] = 1;
  }
}

void Run::open(std::size_t i) {
  const core::StreamConfig& config = scenario_.streams[i];
  streams_[i] = core_.open_stream(clock(), config);
  if (streams_[i] == kNone) unsafe("a stream cannot be opened", now_);
  slo_[i] = config.slo_ns > 0 ? config.slo_ns : plan_->applications[config.application].slo_ns;
  if (config.waits_for_grants)
    producers_.open(streams_[i], i < scenario_.producers.size() ? scenario_.producers[i] : Producer{});
}

void Run::come_or_go(const Coming& c) {
  if (!c.goes) return open(c.stream);
  if (producers_.has(streams_[c.stream])) producers_.close(streams_[c.stream]);
  core_.close_stream(clock(), streams_[c.stream], Reason::stream_closed);
}

Outcomes Run::execute() {
  const double started = cpu_seconds();
  std::size_t next = 0, next_fault = 0, next_plan = 0, next_coming = 0;
  TimeNs again_ns = 0;  // a plan waits for earlier ones to be over until then
  const std::vector<Arrival>& arrivals = scenario_.arrivals;
  const TimeNs last_arrival = arrivals.empty() ? 0 : arrivals.back().at_ns;
  for (;;) {
    const TimeNs at_arrival = next < arrivals.size() ? arrivals[next].at_ns : kNever;
    const TimeNs at_event = events_.heap.empty() ? kNever : events_.heap.front().at;
    const TimeNs at_fault = next_fault < scenario_.faults.size() ? scenario_.faults[next_fault].at_ns : kNever;
    const TimeNs timer = core_.next_timer();
    const TimeNs at_timer = timer == kNever ? kNever : std::max(now_, timer - events_.step_ns);
    const auto& plans = scenario_.replacements;
    const TimeNs at_plan = next_plan < plans.size() ? std::max({now_, again_ns, plans[next_plan].at_ns}) : kNever;
    const TimeNs at_coming = next_coming < comings_.size() ? comings_[next_coming].at_ns : kNever;
    const bool filming = !scenario_.cameras.empty() && now_ < scenario_.cameras_until_ns;
    const TimeNs at_frame =
        filming && cameras_.world.next() < scenario_.cameras_until_ns ? cameras_.world.next() : kNever;
    if (at_arrival == kNever && at_fault == kNever && core_.idle() && !filming && producers_.writing() == 0) break;
    const TimeNs at = std::min({at_arrival, at_event, at_fault, at_timer, at_plan, at_frame, at_coming});
    if (at == kNever || at > std::max(last_arrival, scenario_.cameras_until_ns) + scenario_.drain_ns) {
      out_.drained = core_.idle();
      break;
    }
    now_ = std::max(now_, at);
    if (at_event == at) {
      const Event e = events_.heap.front();
      std::pop_heap(events_.heap.begin(), events_.heap.end(), Later{});
      events_.heap.pop_back();
      handle(e);
    } else if (at_fault == at) {
      fault(scenario_.faults[next_fault++]);
    } else if (at_plan == at) {
      replace(plans[next_plan]) ? void(++next_plan) : void(again_ns = now_ + 1'000'000);
    } else if (at_coming == at) {
      come_or_go(comings_[next_coming++]);
    } else if (at_timer == at) {
      core_.advance(clock());
    } else if (at_frame == at) {
      send_frame();
    } else {
      arrive(next++);
    }
    drain();
    if (++out_.events % kSampleEvery == 0) take_samples();
    if (scenario_.check_every > 0 && out_.events % scenario_.check_every == 0) core_.core().audit();
  }
  take_samples();
  core_.core().audit();
  core_.record(nullptr, clock());
  out_.counters = core_.counters();
  out_.requests = arrivals.size() + cameras_.sent.size();
  out_.left_out = producers_.left_out();
  out_.trace_hash = trace_.hash;
  out_.first_ns = arrivals.empty() ? 0 : arrivals.front().at_ns;
  out_.cpu_seconds = cpu_seconds() - started;
  return std::move(out_);
}

void Run::send_frame() {
  cameras_.frames.push_back(cameras_.world.send());
  const Cameras::Sent& sent = cameras_.frames.back();
  cameras_.sent.push_back(
      {.at_ns = now_, .capture_ns = sent.capture_ns, .stream = scenario_.cameras[sent.camera].stream});
  for (auto* each : {&seen_.spent, &seen_.arrives, &seen_.deadline}) each->push_back(0);
  seen_.answered.push_back(0);
  submit(scenario_.arrivals.size() + cameras_.sent.size() - 1);
}

void Run::scheduled(core::StreamId stream) {
  if (producers_.has(stream)) {
    const core::StreamSchedule told = core_.schedule(stream);
    if (producers_.told(now_, stream, told.open, told.granted))
      plan(producers_.written_ns(stream), EventKind::written, stream, 0);
    return;
  }
  const std::uint32_t camera = cameras_.of_stream[stream];
  if (camera == kNone) return;
  core::StreamSchedule s = core_.schedule(stream);
  for (std::uint32_t i = 0; i < s.count; ++i) s.frames[i].at_ns -= events_.step_ns;
  if (scenario_.on_schedule) scenario_.on_schedule(now_, camera, s);
  cameras_.world.told(now_, camera, s);
}

// A picture is there; who waits for grants writes and submits it when it is wanted.
void Run::arrive(std::size_t i) {
  const core::StreamId stream = streams_[arrival(i).stream];
  if (!producers_.has(stream)) return submit(i);
  if (producers_.came(now_, stream, i)) plan(producers_.written_ns(stream), EventKind::written, stream, 0);
}

void Run::submit(std::size_t i) {
  const Arrival& a = arrival(i);
  note(1, a.stream, i);
  seen_.deadline[i] = capture_ns(a) + events_.step_ns + slo_[a.stream];
  (void)core_.submit(clock(), {.stream = streams_[a.stream],
                               .token = i,
                               .capture_ns = capture_ns(a) + events_.step_ns,
                               .deadline_ns = a.deadline_ns == 0 ? 0 : a.deadline_ns + events_.step_ns,
                               .items = a.items,
                               .key = a.key,
                               .branch_draw = a.branch_draw != 0 ? a.branch_draw : mix(scenario_.seed ^ mix(i)) | 1});
}

void Run::handle(const Event& e) {
  switch (e.kind) {
    case EventKind::stage_end:
      if (flights_.batches[e.batch].life == e.life && flights_.batches[e.batch].live) end(e.batch);
      return;
    case EventKind::reach:
      if (flights_.batches[e.batch].life == e.life && flights_.batches[e.batch].live) reach(e.batch);
      return;
    case EventKind::begin:
      return begin(e.batch);
    case EventKind::estimate:
      return estimate();
    case EventKind::written:
      if (const std::size_t i = producers_.take(now_, e.batch); i != Producers::kNoPicture) submit(i);
      return;
    case EventKind::transfer:
      seen_.arrives[e.life] = machine_.links.use(now_, e.batch, e.to, e.takes_ns);
      return;
  }
}

void Run::take_samples() {
  if (estimator_ == nullptr && !scenario_.on_sample) return;
  for (std::size_t n = core_.take_samples(scratch_.samples); n > 0; n = core_.take_samples(scratch_.samples)) {
    if (estimator_ != nullptr) estimator_->add({scratch_.samples.data(), n});
    if (!scenario_.on_sample) continue;
    for (std::size_t i = 0; i < n; ++i) scenario_.on_sample(scratch_.samples[i]);
  }
}

void Run::estimate() {
  take_samples();
  core_.set_estimates(clock(), estimator_->update(clock()));
  plan(now_ + scenario_.estimate_every_ns, EventKind::estimate, 0, 0);
}

// Plans that nothing uses any more are freed first, as a driver does on another thread.
bool Run::replace(const Replacement& r) {
  while (core_.take_retired() != nullptr) {
  }
  if (!core_.core().same_requests(r.topology)) unsafe("a plan takes over that has other requests", now_);
  record::PreparedPlan plan = core_.prepare(r.topology, scenario_.policy, scenario_.names);
  if (!core_.replace(clock(), plan, r.measured_anew)) return false;
  plan_ = &r.topology;
  find_fan_outs(*plan_);
  note(7, r.topology.routes.size(), 0);
  return true;
}

void Run::fault(const Fault& f) {
  note(2, static_cast<std::uint64_t>(f.kind), f.partition);
  switch (f.kind) {
    case FaultKind::lose: {
      Unit& u = machine_.units[f.partition];
      if (!u.up) return;
      u.up = false;
      u.running = u.first = u.last = kNone;
      u.held = 0;
      for (SimBatch& b : flights_.batches) {
        if (b.live && b.path[b.stage] == f.partition) b.live = false;
      }
      core_.partition_lost(clock(), f.partition);
      return;
    }
    case FaultKind::restore:
      if (machine_.units[f.partition].up) return;
      machine_.units[f.partition].up = true;
      core_.partition_ready(clock(), f.partition);
      return;
    case FaultKind::slow:
      machine_.units[f.partition].slow_permille = f.value;
      return;
    case FaultKind::clock_step:
      events_.step_ns += f.value;
      return;
  }
}

void Run::drain() {
  for (core::Action a; core_.next_action(a);) {
    if (a.kind == core::ActionKind::answer) {
      answered(a);
    } else if (a.kind == core::ActionKind::transfer) {
      transfer(a);
    } else if (a.kind == core::ActionKind::schedule) {
      scheduled(a.stream);
    } else {
      sent(a);
    }
  }
}

void Run::sent(const core::Action& a) {
  SimBatch& b = flights_.batches[a.batch.index];
  if (b.live) unsafe("a batch slot is used twice", now_);
  ++b.life;
  b.handle = a.batch;
  b.live = true;
  b.running = false;
  b.plan = plan_;
  b.route = a.route;
  b.then = a.then;
  b.went_on = a.went_on;
  b.goes_on = false;
  b.module = a.module;
  b.stage = a.first_stage;
  b.last_stage = a.first_stage + static_cast<std::uint32_t>(a.path.size()) - 1;
  b.start_ns = a.start_ns - events_.step_ns;
  b.items = 0;
  b.tasks = static_cast<std::uint32_t>(a.tasks.size());
  std::copy(a.path.begin(), a.path.end(), b.path.begin() + a.first_stage);
  for (std::size_t i = 0; i < a.tasks.size(); ++i) {
    flights_.arrival_of[std::size_t{a.batch.index} * core::kMaxBatch + i] =
        static_cast<std::uint32_t>(a.tasks[i].token);
    flights_.item_of[std::size_t{a.batch.index} * core::kMaxBatch + i] = a.tasks[i].item;
    b.items += a.tasks[i].units;
  }
  note(3, a.path[0], b.tasks);
  if (b.start_ns < now_) unsafe("a start is reserved in the past", now_);
  if (machine_.units[a.path[0]].held > scenario_.policy.queue_ahead)
    unsafe("a partition is given more batches than it may hold", now_);
  if (!a.went_on) return reach(a.batch.index);
  ++machine_.units[a.path[0]].held;
  start(a.path[0], a.batch.index);
}

// What runs from now on; the core knows of it.
void Run::start(PartitionId p, std::uint32_t id) {
  SimBatch& b = flights_.batches[id];
  machine_.units[p].running = id;
  b.running = true;
  b.began_ns = now_;
  b.goes_on = scenario_.goes_on && goes_on(b);
  plan(now_ + duration(b, p), EventKind::stage_end, id, b.life);
}

// Its results make no more tasks than one batch of what may follow takes, and some.
bool Run::goes_on(const SimBatch& b) {
  if (b.then == kNone) return false;
  const core::RouteSpec& route = b.plan->routes[b.then];
  const std::uint32_t cap = b.plan->modules[route.module].fan_out_cap;
  const std::span<const core::TaskResult> found = results(b);
  std::uint32_t tasks = 0;
  for (std::size_t i = 0; i < b.tasks; ++i) tasks += std::min(found.empty() ? 1 : found[i].fan_out, cap);
  return tasks > 0 && tasks <= route.batch;
}

// Features leave at the reserved time; the links serve transfers one after the other.
void Run::transfer(const core::Action& a) {
  const auto i = static_cast<std::uint32_t>(a.token);
  const std::int64_t bytes = plan_->routes[a.route].stages[a.first_stage].transfer_bytes * arrival(i).items;
  const TimeNs takes = machine_.links.takes_ns(bytes, a.from, a.to);
  const TimeNs at = std::max(now_, a.start_ns - events_.step_ns);
  note(6, a.from, a.to);
  seen_.arrives[i] = at + takes;
  if (takes == 0) return;
  events_.heap.push_back({.at = at,
                          .serial = ++events_.serial,
                          .kind = EventKind::transfer,
                          .batch = a.from,
                          .life = i,
                          .to = a.to,
                          .takes_ns = takes});
  std::push_heap(events_.heap.begin(), events_.heap.end(), Later{});
}

// Not before its reserved start, nor before its tasks' features are there.
TimeNs Run::startable(const SimBatch& b) const {
  const auto id = static_cast<std::size_t>(&b - flights_.batches.data());
  TimeNs at = b.start_ns;
  for (std::size_t i = 0; i < b.tasks; ++i)
    at = std::max(at, seen_.arrives[flights_.arrival_of[id * core::kMaxBatch + i]]);
  return at;
}

void Run::answered(const core::Action& a) {
  const auto i = static_cast<std::size_t>(a.token);
  note(4, i, static_cast<std::uint64_t>(a.outcome) * 32 + static_cast<std::uint64_t>(a.reason));
  if (seen_.answered[i] != 0) unsafe("a request is answered twice", now_);
  seen_.answered[i] = 1;
  if (a.outcome == Outcome::completed) {
    if (clock() > seen_.deadline[i]) unsafe("an answer after its deadline counts as completed", now_);
  } else {
    out_.invalid_ns += seen_.spent[i];
  }
  out_.run_ns += seen_.spent[i];
  out_.last_ns = now_;
  if (scenario_.on_answer) scenario_.on_answer({now_, i, a.outcome, a.reason, a.where});
  if (i < scenario_.arrivals.size() || (a.outcome != Outcome::completed && a.outcome != Outcome::late)) return;
  const Cameras::Sent& shown = cameras_.frames[i - scenario_.arrivals.size()];
  if (scenario_.on_shown) scenario_.on_shown({now_, shown.camera, shown.frame});
  const Cameras::Reports seen = cameras_.world.answered(shown.camera, shown.frame);
  if (seen.last) (void)core_.observe(clock(), a.stream, *seen.last);
  if (seen.far) (void)core_.observe(clock(), a.stream, *seen.far);
}

void Run::reach(std::uint32_t id) {
  SimBatch& b = flights_.batches[id];
  const PartitionId p = b.path[b.stage];
  Unit& u = machine_.units[p];
  if (!u.up) unsafe("a batch is sent to a partition that is down", now_);
  ++u.held;
  b.next = kNone;
  (u.last == kNone ? u.first : flights_.batches[u.last].next) = id;
  u.last = id;
  begin(p);
}

void Run::begin(PartitionId p) {
  Unit& u = machine_.units[p];
  if (!u.up || u.running != kNone || u.first == kNone) return;
  SimBatch& b = flights_.batches[u.first];
  if (const TimeNs at = startable(b); at > now_) {  // reserved for later
    plan(at, EventKind::begin, p, 0);
    return;
  }
  const std::uint32_t id = u.first;
  u.first = b.next;
  if (u.first == kNone) u.last = kNone;
  core_.stage_started(clock(), b.handle, b.stage);
  start(p, id);
}

TimeNs Run::duration(const SimBatch& b, PartitionId p) {
  const core::Topology& real = scenario_.reality != nullptr ? *scenario_.reality : *b.plan;
  const core::StageSpec& stage = real.routes[b.route].stages[b.stage];
  TimeNs d = stage.latency.p50_ns[b.items - 1];
  ++trace_.executions;
  if (scenario_.duration) {
    const auto id = static_cast<std::size_t>(&b - flights_.batches.data());
    for (std::size_t i = 0; i < b.tasks; ++i)
      scratch_.refs[i] = {.request = {}, .token = flights_.arrival_of[id * core::kMaxBatch + i]};
    d = scenario_.duration({.route = b.route,
                            .stage = b.stage,
                            .partition = p,
                            .items = b.items,
                            .at_ns = now_,
                            .planned_ns = d,
                            .serial = trace_.executions,
                            .tasks = {scratch_.refs.data(), b.tasks},
                            .plan = b.plan,
                            .went_on = b.went_on,
                            .goes_on = b.goes_on});
  } else if (scenario_.noise_permille > 0) {
    // Sum of four uniforms: near normal, bounded, and made of integers only.
    std::uint64_t bits = mix(scenario_.seed ^ mix(trace_.executions));
    std::int64_t sum = 0;
    for (int i = 0; i < 4; ++i, bits >>= 16) sum += static_cast<std::int64_t>(bits & 0xFFFF) - 32768;
    d += d / 1000 * scenario_.noise_permille * sum / 37837;  // 65536 / sqrt(3): its standard deviation
  }
  return std::max<TimeNs>(
      1, d / 1000 * machine_.units[p].slow_permille + d % 1000 * machine_.units[p].slow_permille / 1000);
}

std::span<const core::TaskResult> Run::results(const SimBatch& b) {
  if (fans_out_[b.module] == 0) return {};
  const core::Topology& t = *b.plan;
  const auto id = static_cast<std::size_t>(&b - flights_.batches.data());
  const auto task = [&](std::size_t i) { return id * core::kMaxBatch + i; };
  if (scenario_.fan_out) {
    for (std::size_t i = 0; i < b.tasks; ++i)
      scratch_.results[i] = {.fan_out =
                                 scenario_.fan_out(flights_.arrival_of[task(i)], b.module, flights_.item_of[task(i)])};
    return {scratch_.results.data(), b.tasks};
  }
  double mean = 1;
  std::uint32_t min = 0;  // a module beside those that fan out has a task of every request
  for (core::ModuleId next : t.modules[b.module].after) {
    if (t.modules[next].fan_out_cap > 1) {
      mean = t.modules[next].items_per_request / t.modules[b.module].items_per_request;
    } else {
      min = 1;
    }
  }
  for (std::size_t i = 0; i < b.tasks; ++i) {
    Random random(scenario_.seed ^ mix(flights_.arrival_of[task(i)] * 64ull + b.module));
    scratch_.results[i] = {.ok = true, .reason = Reason::none, .fan_out = std::max(min, random.poisson(mean))};
  }
  return {scratch_.results.data(), b.tasks};
}

void Run::end(std::uint32_t id) {
  SimBatch& b = flights_.batches[id];
  const PartitionId p = b.path[b.stage];
  Unit& u = machine_.units[p];
  const TimeNs ran = now_ - b.began_ns;
  for (std::size_t i = 0; i < b.tasks; ++i)
    seen_.spent[flights_.arrival_of[std::size_t{id} * core::kMaxBatch + i]] += ran / b.tasks;
  if (scenario_.on_run) {
    scenario_.on_run(
        {.start_ns = b.began_ns, .end_ns = now_, .partition = p, .route = b.route, .stage = b.stage, .items = b.items});
  }
  note(5, p, b.tasks);
  u.running = kNone;
  --u.held;
  const core::RouteSpec& route = b.plan->routes[b.route];
  const std::uint32_t stage = b.stage;
  const bool last = stage == b.last_stage;
  const core::BatchHandle handle = b.handle;
  const bool sequel = b.goes_on;
  b.live = !last;
  if (!last) ++b.stage;  // before the call: the core counts it there from now on
  const bool moves = core_.stage_finished(
      clock(), handle, stage, stage + 1 == route.stages.size() ? results(b) : std::span<const core::TaskResult>{},
      sequel ? clock() : 0);
  if (moves) {
    const PartitionId to = b.path[b.stage];
    const TimeNs takes = machine_.links.takes_ns(route.stages[stage].transfer_bytes * b.items, p, to);
    if (takes > 0) {
      plan(machine_.links.use(now_, p, to, takes), EventKind::reach, id, b.life);
    } else {
      reach(id);
    }
  } else {
    b.live = false;
  }
  if (sequel) drain();  // it comes first, and runs already
  begin(p);
}

}  // namespace

Outcomes run(const Scenario& scenario) { return Run(scenario).execute(); }

}  // namespace leat::sim
