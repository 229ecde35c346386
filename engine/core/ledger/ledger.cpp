#include "engine/core/ledger/ledger.h"

#include <bit>

namespace leat::core {

Ledger::Ledger(const Limits& limits, const Topology& topology, Actions& actions)
    : actions_(actions), streams_(limits.streams), requests_(limits.requests) {
  for (const ApplicationSpec& app : topology.applications)
    stride_ = std::max(stride_, static_cast<std::uint32_t>(app.modules.size()));
  if (limits.applications > topology.applications.size()) stride_ = kMaxModulesPerApplication;  // of those to come
  in_flight_.resize(std::max<std::size_t>(limits.applications, topology.applications.size()));
  progress_.resize(std::size_t{limits.requests} * stride_);
  periodic_.reserve(limits.streams);
  counters_.streams.resize(limits.streams);
  counters_.modules.resize(std::max<std::size_t>(limits.modules, topology.modules.size()));
  counters_.partitions.resize(topology.partitions.size());
}

// ---- streams ----

StreamId Ledger::open_stream(const StreamConfig& config, const ApplicationSpec& application) noexcept {
  for (StreamId id = 0; id < streams_.size(); ++id) {
    Stream& s = streams_[id];
    if (s.open || s.live != 0) continue;
    s = Stream{};
    s.config = config;
    if (s.config.slo_ns <= 0) s.config.slo_ns = application.slo_ns;
    // An answer older than max_age is worthless, so the deadline is never later: deadline <= give_up for every task.
    if (s.config.max_age_ns > 0 && s.config.max_age_ns < s.config.slo_ns) s.config.slo_ns = s.config.max_age_ns;
    s.open = true;
    counters_.streams[id] = {};
    return id;
  }
  return kNone;
}

void Ledger::close_stream(StreamId id) noexcept {
  streams_[id].open = false;
  if (std::erase(periodic_, id) > 0) ++periodic_version_;
}

void Ledger::expect_next(StreamId id, TimeNs capture, TimeNs now, bool plannable) noexcept {
  Stream& stream = streams_[id];
  if (stream.config.period_ns <= 0 || capture < stream.newest_capture_ns) return;
  if (stream.next_expected_ns == kNever) {
    if (plannable) {
      periodic_.push_back(id);
      ++periodic_version_;
    }
    stream.covered_ns = capture;
  }
  stream.newest_capture_ns = capture;
  const TimeNs transit = now - capture;
  stream.transit_ns = stream.next_expected_ns == kNever
                          ? transit
                          : std::min(transit, stream.transit_ns + stream.config.period_ns / 100);
  stream.next_expected_ns = capture + stream.config.period_ns + stream.transit_ns;
}

std::uint8_t Ledger::priority_of(const Stream& stream) const noexcept {
  auto priority = static_cast<std::uint8_t>(stream.config.priority);
  const std::uint32_t window = std::min(stream.config.miss_window, 64u);
  if (window > 1) {
    const std::uint64_t mask = (std::uint64_t{1} << (window - 1)) - 1;  // this request is the window's last
    const auto misses = static_cast<std::uint32_t>(std::popcount(stream.misses & mask));
    if (misses >= stream.config.miss_allowed && priority + 1u < kPriorities) ++priority;
  }
  return priority;
}

// A result of that capture is delivered now: its window is covered, if it is still fresh.
void Ledger::delivered(Stream& stream, TimeNs capture, TimeNs now) noexcept {
  const TimeNs period = stream.config.period_ns;
  if (period <= 0 || stream.newest_capture_ns == INT64_MIN) return;
  const TimeNs max_age = stream.config.max_age_ns > 0 ? stream.config.max_age_ns : stream.config.slo_ns;
  if (now - capture > max_age) return;
  const TimeNs since = now - stream.newest_capture_ns;  // windows lie on the grid of the newest capture
  stream.covered_ns = std::max(stream.covered_ns, stream.newest_capture_ns + (since / period + 1) * period);
}

// ---- requests ----

void Ledger::submitted(StreamId stream) noexcept {
  for (RequestCounters* c : {&counters_.total, &counters_.streams[stream]}) {
    ++c->submitted;
    ++c->in_flight;
  }
}

std::uint32_t Ledger::accept(const Submission& s, TimeNs capture, bool keeps_late) noexcept {
  const std::uint32_t id = requests_.take();
  if (id == kNone) return kNone;
  Stream& stream = streams_[s.stream];
  Request& r = requests_[id];
  r = Request{};
  r.stream = s.stream;
  r.application = stream.config.application;
  ++in_flight_[r.application];
  r.token = s.token;
  r.branch_draw = s.branch_draw;
  r.capture_ns = capture;
  r.deadline_ns = capture + stream.config.slo_ns;
  if (s.deadline_ns > 0 && s.deadline_ns < r.deadline_ns) r.deadline_ns = s.deadline_ns;
  if (stream.config.supersede == Supersede::never_drop) {
    r.give_up_ns = kNever;
  } else if (stream.config.max_age_ns > 0) {
    r.give_up_ns = capture + stream.config.max_age_ns;
  } else {
    r.give_up_ns = keeps_late ? kNever : r.deadline_ns;
  }
  r.items = s.items > 0 ? s.items : 1;
  r.key = s.key;
  if (stream.accepted_capture_ns != INT64_MIN) stream.gap_ns = capture - stream.accepted_capture_ns;
  stream.accepted_capture_ns = capture;
  r.previous = stream.last;
  (stream.last == kNone ? stream.first : requests_[stream.last].next) = id;
  stream.last = id;
  ++stream.live;
  return id;
}

void Ledger::sent(std::uint32_t request) noexcept {
  Request& r = requests_[request];
  r.started = true;
  streams_[r.stream].served.sent(r.capture_ns);
}

TimeNs Ledger::turn_ns(std::uint32_t request) const noexcept {
  const Request& r = requests_[request];
  const Stream& stream = streams_[r.stream];
  if (stream.config.supersede != Supersede::latest || stream.gap_ns <= 0 ||
      r.capture_ns + stream.gap_ns >= r.deadline_ns)
    return 0;
  return std::max<TimeNs>(stream.served.worth_ns(r.capture_ns, 0), 1);
}

void Ledger::doom(std::uint32_t request, Outcome outcome, Reason reason, ModuleId where) noexcept {
  Request& r = requests_[request];
  if (r.doom != Outcome::pending) return;
  r.doom = outcome;
  r.doom_reason = reason;
  r.doom_where = where;
}

void Ledger::count(StreamId stream, Outcome outcome, Reason reason) noexcept {
  for (RequestCounters* c : {&counters_.total, &counters_.streams[stream]}) {
    --c->in_flight;
    ++c->answered[static_cast<std::size_t>(outcome)];
    if (outcome != Outcome::completed && outcome != Outcome::late) ++c->reasons[static_cast<std::size_t>(reason)];
    check(c->balanced(), "ledger");
  }
}

void Ledger::answer(std::uint32_t request, Outcome outcome, Reason reason, ModuleId where, TimeNs now) noexcept {
  Request& r = requests_[request];
  check(r.tasks == kNone && r.placed == 0, "a request is answered while tasks of it live");
  Stream& stream = streams_[r.stream];
  (r.previous == kNone ? stream.first : requests_[r.previous].next) = r.next;
  (r.next == kNone ? stream.last : requests_[r.next].previous) = r.previous;
  --stream.live;
  --in_flight_[r.application];
  count(r.stream, outcome, reason);
  if (where != kNone && outcome == Outcome::dropped) ++counters_.modules[where].dropped_here;
  record_miss(stream, outcome != Outcome::completed);
  if (outcome == Outcome::completed || outcome == Outcome::late) delivered(stream, r.capture_ns, now);
  Action a;
  a.kind = ActionKind::answer;
  a.request = handle(request);
  a.token = r.token;
  a.stream = r.stream;
  a.outcome = outcome;
  a.reason = reason;
  a.where = where;
  actions_.push(a);
  requests_.give(request);
}

void Ledger::refuse(const Submission& s, Outcome outcome, Reason reason) noexcept {
  count(s.stream, outcome, reason);
  record_miss(streams_[s.stream], true);
  Action a;
  a.kind = ActionKind::answer;
  a.token = s.token;
  a.stream = s.stream;
  a.outcome = outcome;
  a.reason = reason;
  actions_.push(a);
}

void Ledger::audit() const {
  std::uint64_t in_flight = 0;
  for (StreamId s = 0; s < streams_.size(); ++s) {
    std::uint32_t live = 0, previous = kNone;
    for (std::uint32_t r = streams_[s].first; r != kNone; previous = r, r = requests_[r].next, ++live)
      check(requests_[r].stream == s && requests_[r].previous == previous, "a stream's list of requests");
    check(live == streams_[s].live && live == counters_.streams[s].in_flight && counters_.streams[s].balanced(),
          "a stream's ledger");
    in_flight += live;
  }
  check(in_flight == counters_.total.in_flight && counters_.total.balanced(), "the ledger");
}

void Ledger::visit_state(Snapshot& state) {
  state.changed(streams_);
  state(periodic_, periodic_version_, requests_);
  requests_.each_taken([&](std::uint32_t r) {
    for (std::uint32_t m = 0; m < stride_; ++m) state(progress(r, m));
  });
  state(in_flight_, counters_);
}

}  // namespace leat::core
