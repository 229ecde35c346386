// Streams, submission, answers and the ledger.
#include "engine/core/state.h"

namespace leat::core {

StreamId Scheduler::State::open_stream(const StreamConfig& config) noexcept {
  if (config.application >= topology.applications.size()) return kNone;
  for (StreamId id = 0; id < streams.size(); ++id) {
    Stream& s = streams[id];
    if (s.open || s.live != 0) continue;
    s = Stream{};
    s.config = config;
    if (s.config.slo_ns <= 0) s.config.slo_ns = topology.applications[config.application].slo_ns;
    // An answer older than max_age is worthless, so the deadline is never later: deadline <= give_up for every task.
    if (s.config.max_age_ns > 0 && s.config.max_age_ns < s.config.slo_ns) s.config.slo_ns = s.config.max_age_ns;
    s.open = true;
    counters.streams[id] = {};
    return id;
  }
  return kNone;
}

void Scheduler::State::close_stream(StreamId id, Reason reason) noexcept {
  if (id >= streams.size() || !streams[id].open) {
    ++counters.stale_events;
    return;
  }
  streams[id].open = false;
  std::erase(periodic, id);
  for (std::uint32_t r = streams[id].first; r != kNone;) {
    const std::uint32_t next = requests[r].next;
    drop_request(r, Outcome::dropped, reason, kNone);
    r = next;
  }
}

RequestHandle Scheduler::State::submit(const Submission& s) noexcept {
  if (s.stream >= streams.size() || !streams[s.stream].open) {
    ++counters.stale_events;
    return {};
  }
  Stream& stream = streams[s.stream];
  for (RequestCounters* c : {&counters.total, &counters.streams[s.stream]}) {
    ++c->submitted;
    ++c->in_flight;
  }
  const TimeNs capture = s.capture_ns > now || s.capture_ns <= 0 ? now : s.capture_ns;
  expect_next(s.stream, capture);
  if (!make_room(s.stream, s, capture)) return {};
  if (!admitted(stream.config.application)) {
    answer_now(s, Outcome::rejected, Reason::overload);
    return {};
  }
  const std::uint32_t id = requests.take();
  if (id == kNone) {
    answer_now(s, Outcome::rejected, Reason::queue_full);
    return {};
  }
  Request& r = requests[id];
  r = Request{};
  r.stream = s.stream;
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
    r.give_up_ns = policy.drop == Drop::none ? kNever : r.deadline_ns;
  }
  r.items = s.items > 0 ? s.items : 1;
  r.key = s.key;
  r.previous = stream.last;
  (stream.last == kNone ? stream.first : requests[stream.last].next) = id;
  stream.last = id;
  ++stream.live;
  const RequestHandle handle{id, requests.generation(id)};
  begin(id);
  return requests.valid(id, handle.generation) ? handle : RequestHandle{};
}

void Scheduler::State::drop_request(std::uint32_t request, Outcome outcome, Reason reason, ModuleId where) noexcept {
  Request& r = requests[request];
  if (r.doom == Outcome::pending) {
    r.doom = outcome;
    r.doom_reason = reason;
    r.doom_where = where;
  }
  for (TaskId t = r.tasks; t != kNone;) {
    const TaskId next = tasks[t].next_of_request;
    if (tasks[t].state != TaskState::placed) release(t);
    t = next;
  }
  settle(request);
}

void Scheduler::State::settle(std::uint32_t request) noexcept {
  Request& r = requests[request];
  if (r.placed > 0) return;
  if (r.doom != Outcome::pending) {
    answer(request, r.doom, r.doom_reason, r.doom_where);
  } else if (r.modules_left == 0) {
    answer(request, now <= r.deadline_ns ? Outcome::completed : Outcome::late, Reason::none, kNone);
  }
}

void Scheduler::State::count(StreamId stream, Outcome outcome, Reason reason) noexcept {
  for (RequestCounters* c : {&counters.total, &counters.streams[stream]}) {
    --c->in_flight;
    ++c->answered[static_cast<std::size_t>(outcome)];
    if (outcome != Outcome::completed && outcome != Outcome::late) ++c->reasons[static_cast<std::size_t>(reason)];
    insist(c->balanced(), "ledger");
  }
}

void Scheduler::State::answer(std::uint32_t request, Outcome outcome, Reason reason, ModuleId where) noexcept {
  Request& r = requests[request];
  insist(r.tasks == kNone && r.placed == 0, "a request is answered while tasks of it live");
  Stream& stream = streams[r.stream];
  (r.previous == kNone ? stream.first : requests[r.previous].next) = r.next;
  (r.next == kNone ? stream.last : requests[r.next].previous) = r.previous;
  --stream.live;
  count(r.stream, outcome, reason);
  if (where != kNone && outcome == Outcome::dropped) ++counters.modules[where].dropped_here;
  record_miss(stream, outcome != Outcome::completed);
  if (outcome == Outcome::completed || outcome == Outcome::late) delivered(stream, r.capture_ns);
  Action a;
  a.kind = ActionKind::answer;
  a.request = {request, requests.generation(request)};
  a.token = r.token;
  a.stream = r.stream;
  a.outcome = outcome;
  a.reason = reason;
  a.where = where;
  push(a);
  requests.give(request);
}

void Scheduler::State::answer_now(const Submission& s, Outcome outcome, Reason reason) noexcept {
  count(s.stream, outcome, reason);
  record_miss(streams[s.stream], true);
  Action a;
  a.kind = ActionKind::answer;
  a.token = s.token;
  a.stream = s.stream;
  a.outcome = outcome;
  a.reason = reason;
  push(a);
}

}  // namespace leat::core
