// Streams whose answers age: supersede by capture time, when the next capture is expected and which windows are covered, a floor
// for background work, weakly hard windows, and promises that learn.
#include <algorithm>
#include <bit>
#include <cstdlib>

#include "engine/core/state.h"

namespace leat::core {
namespace {

constexpr std::int64_t kPaceBatches = 64;         // a module's pace forgets in so many batches
constexpr std::int64_t kPaceReplanned = 30;       // permille: reservations plan their batches again
constexpr std::int64_t kPaceIgnored = 20'000;     // ppm: so near to its profile it is taken at its word

}  // namespace

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
void Scheduler::State::expect_next(StreamId id, TimeNs capture) noexcept {
  Stream& stream = streams[id];
  if (stream.config.period_ns <= 0 || capture < stream.newest_capture_ns) return;
  if (stream.next_expected_ns == kNever) {
    // Look-ahead plans requests that end with their first module; a pipeline's are batched and ordered like any other's.
    if (topology.applications[stream.config.application].modules.size() == 1) periodic.push_back(id);
    stream.covered_ns = capture;
  }
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

// A result of that capture is delivered now: its window is covered, if it is still fresh.
void Scheduler::State::delivered(Stream& stream, TimeNs capture) noexcept {
  const TimeNs period = stream.config.period_ns;
  if (period <= 0 || stream.newest_capture_ns == INT64_MIN) return;
  const TimeNs max_age = stream.config.max_age_ns > 0 ? stream.config.max_age_ns : stream.config.slo_ns;
  if (now - capture > max_age) return;
  const TimeNs since = now - stream.newest_capture_ns;  // windows lie on the grid of the newest capture
  stream.covered_ns = std::max(stream.covered_ns, stream.newest_capture_ns + (since / period + 1) * period);
}

// Credit for background work flows in steadily, up to the budget of one window; what is started is paid at once, as planned.
void Scheduler::State::spend_background(TimeNs run) noexcept {
  const TimeNs budget = policy.background_budget_ns, window = std::max<TimeNs>(policy.background_window_ns, 1'000'000);
  if (budget == 0) return;
  const TimeNs credit = std::min(now - background_ns, 2 * window) / 1000 * budget / (window / 1000);
  if (credit > 0 || run != 0) {
    background_credit_ns = std::min(budget, background_credit_ns + credit) - run;
    background_ns = now;
  }
}

// Background work that is owed some of its budget stands between normal and high.
std::uint32_t Scheduler::State::rank_of(std::uint8_t priority) noexcept {
  if (priority == 0 && policy.background_budget_ns > 0) {
    spend_background(0);
    if (background_credit_ns > 0) return 3;
  }
  return 2u * priority;
}

void Scheduler::State::learn(const Batch& b, TimeNs ran) noexcept {
  const StageSpec& stage = topology.routes[b.route].stages[b.stage];
  if (b.priority == 0) spend_background(ran - stage.latency.p50_ns[b.list.items - 1]);
  if (policy.forecast) {
    ModuleState& m = modules[lanes[b.lane].module];
    const TimeNs planned = stage.latency.p50_ns[b.list.items - 1];
    m.pace_ppm += (std::clamp(ran, planned / 4, 4 * planned) * 1'000'000 / planned - m.pace_ppm) / kPaceBatches;
    m.pace_permille = std::abs(m.pace_ppm - 1'000'000) < kPaceIgnored ? 1000 : m.pace_ppm / 1000;
    const ModuleId id = lanes[b.lane].module;
    if (reservations != nullptr && std::abs(m.pace_permille - reservations->planned_pace[id]) >= kPaceReplanned) plan_growth(id);
  }
  const TimeNs promised = stage.latency.p99_ns[b.list.items - 1] * margin_permille / 1000;
  if (ran > promised) {
    margin_permille = std::min(margin_permille + policy.margin_up_permille, policy.margin_max_permille);
  } else {
    margin_permille = std::max(margin_permille - std::min(margin_permille, policy.margin_down_permille), policy.margin_min_permille);
  }
}

}  // namespace leat::core
