// Streams whose answers age: supersede by capture time, look-ahead that idles on purpose, a floor for background work, weakly
// hard windows, and promises that learn.
#include <algorithm>
#include <bit>

#include "engine/core/state.h"

namespace leat::core {

// Applies the stream's overload rule to a new submission. False: the submission has been answered instead.
// Only requests of which nothing has been sent are superseded: what has started has had its share of the partitions.
bool Scheduler::State::make_room(StreamId id, const Submission& s, TimeNs capture) noexcept {
  Stream& stream = streams[id];
  const Supersede rule = stream.config.supersede;
  if (rule == Supersede::latest || rule == Supersede::latest_per_key) {
    for (std::uint32_t r = stream.first; r != kNone;) {
      const std::uint32_t next = requests[r].next;
      const bool same = rule == Supersede::latest || requests[r].key == s.key;
      if (same && requests[r].doom == Outcome::pending) {
        if (requests[r].capture_ns > capture) {  // a newer one came before it
          answer_now(s, Outcome::dropped, Reason::superseded);
          return false;
        }
        if (!requests[r].started) drop_request(r, Outcome::dropped, Reason::superseded, kNone);
      }
      r = next;
    }
  }
  if (stream.live < stream.config.depth) return true;
  answer_now(s, Outcome::rejected, Reason::queue_full);
  return false;
}

// A periodic stream's next request is due one period after the last capture, plus the least transit seen.
void Scheduler::State::expect_next(Stream& stream, TimeNs capture) noexcept {
  if (stream.config.period_ns <= 0 || capture < stream.newest_capture_ns) return;
  stream.newest_capture_ns = capture;
  const TimeNs transit = now - capture;
  stream.transit_ns = stream.next_expected_ns == kNever ? transit : std::min(transit, stream.transit_ns + stream.config.period_ns / 100);
  stream.next_expected_ns = capture + stream.config.period_ns + stream.transit_ns;
}

void Scheduler::State::record_miss(Stream& stream, bool missed) noexcept { stream.misses = stream.misses << 1 | (missed ? 1 : 0); }

// Weakly hard: a stream that may miss no more of its window goes one class up.
std::uint8_t Scheduler::State::priority_of(const Stream& stream) const noexcept {
  auto priority = static_cast<std::uint8_t>(stream.config.priority);
  const std::uint32_t window = std::min(stream.config.miss_window, 64u);
  if (window > 1) {
    const std::uint64_t mask = (std::uint64_t{1} << (window - 1)) - 1;  // this request is the window's last
    const auto misses = static_cast<std::uint32_t>(std::popcount(stream.misses & mask));
    if (misses >= stream.config.miss_allowed && priority + 1u < kPriorities) ++priority;
  }
  return priority;
}

// Background work that has not had its budget in the present window stands between normal and high.
std::uint32_t Scheduler::State::rank_of(std::uint8_t priority) const noexcept {
  if (priority == 0 && policy.background_budget_ns > 0 && background.total() < policy.background_budget_ns) return 3;
  return 2u * priority;
}

// Look-ahead: until when `server`'s partition should stay idle instead of starting `items` of `priority`; 0: start.
// The periodic streams of a higher class that this partition serves are laid one after another over the horizon, once from
// now and once from the candidate's end. A candidate that makes one of them late that would be in time without it is vetoed.
TimeNs Scheduler::State::deferred(const Server& server, std::uint32_t items, std::uint8_t priority) noexcept {
  const std::uint32_t rank = rank_of(priority);
  struct Due {
    TimeNs at, deadline, run, again;
  };
  std::array<Due, 32> due{};
  std::size_t n = 0;
  const auto promise = [&](TimeNs ns) { return ns * margin_permille / 1000; };
  const TimeNs end = now + promise(server.safe_ns[std::min(items, topology.routes[server.route].batch)]);
  for (const Stream& stream : streams) {
    if (!stream.open || stream.next_expected_ns == kNever || rank_of(static_cast<std::uint8_t>(stream.config.priority)) <= rank) continue;
    if (stream.next_expected_ns + stream.config.period_ns < now) continue;  // it has stopped
    const ModuleId entry = topology.applications[stream.config.application].modules.front();
    TimeNs run = kNever;
    bool elsewhere = false;
    for (const ModuleState& m = modules[entry]; LaneId l : {m.first_lane}) {
      for (ServerId v = lanes[l].first_server; v < lanes[l].first_server + lanes[l].servers; ++v) {
        const Partition& p = partitions[servers[v].partition];
        if (servers[v].partition == server.partition) {
          run = promise(servers[v].safe_ns[1]);
        } else if (p.up && p.held == 0) {
          elsewhere = true;  // another partition would take it
        }
      }
    }
    if (run == kNever || elsewhere) continue;
    for (TimeNs at = std::max(stream.next_expected_ns, now); at < std::min(now + policy.look_ahead_ns, end) && n < due.size();
         at += stream.config.period_ns) {
      due[n++] = {at, at + stream.config.slo_ns - stream.transit_ns, run, stream.config.period_ns / 16};
    }
  }
  std::sort(due.begin(), due.begin() + static_cast<std::ptrdiff_t>(n),
            [](const Due& a, const Due& b) { return a.deadline != b.deadline ? a.deadline < b.deadline : a.at < b.at; });
  TimeNs without = now, with = end;
  for (std::size_t i = 0; i < n; ++i) {
    without = std::max(without, due[i].at) + due[i].run;
    with = std::max(with, due[i].at) + due[i].run;
    if (without <= due[i].deadline && with > due[i].deadline) {
      // Its arrival is an event of its own. One that is overdue is asked for again now and then, not at every nanosecond.
      return due[i].at > now ? due[i].at : now + std::max<TimeNs>(due[i].again, 1);
    }
  }
  return 0;
}

void Scheduler::State::learn(const Batch& b, TimeNs ran) noexcept {
  if (b.priority == 0 && policy.background_budget_ns > 0) {
    background.roll(now);
    background.add(ran);
  }
  const StageSpec& stage = topology.routes[b.route].stages[b.stage];
  const TimeNs promised = stage.latency.p99_ns[b.list.items - 1] * margin_permille / 1000;
  if (ran > promised) {
    margin_permille = std::min(margin_permille + policy.margin_up_permille, policy.margin_max_permille);
  } else {
    margin_permille = std::max(margin_permille - std::min(margin_permille, policy.margin_down_permille), policy.margin_min_permille);
  }
}

}  // namespace leat::core
