#include "engine/core/look_ahead.h"

#include <algorithm>
#include <cmath>

namespace leat::core {
namespace {

// How the moves are weighed. Found by trying; docs/policies.md has the effects.
constexpr double kSafe = 2.9;              // standard deviations from the median to the safe bound (2.33 would be its 99th percentile)
constexpr double kGuard = 2;               // standard deviations kept from the begin of a window, at most a quarter of it
constexpr double kSure = 2;                // standard deviations that a batch keeps to its first edge
constexpr double kRoom = 4;                // standard deviations that the rule keeps free for a heavier job
constexpr double kLateShare = 1.0 / 1000;  // of a window: fresh, but after its deadline, or in a window that is covered already
constexpr TimeNs kPeriods = 4;             // the horizon is no longer than so many of the shortest periods
constexpr std::uint32_t kMaxJobs = 128;    // played per move

// Of a normal variable: the chance to exceed x standard deviations, in steps of a quarter.
double exceeds(double x) noexcept {
  constexpr std::array<double, 18> kTail = {.5,     .401294, .308538, .226627, .158655, .105650, .066807, .040059, .022750,
                                            .012224, .006210, .002980, .001350, .000577, .000233, .000088, .000032, 0};
  const double steps = (x < 0 ? -x : x) * 4;
  double tail = 0;
  if (steps < 17) {
    const auto i = static_cast<std::size_t>(steps);
    tail = kTail[i] + (kTail[i + 1] - kTail[i]) * (steps - static_cast<double>(i));
  }
  return x < 0 ? 1 - tail : tail;
}

struct Job {                 // the next one of a source
  TimeNs capture = kNever;   // kNever: none any more
  TimeNs arrival = 0;
  TimeNs need = 0;           // begin of the first window without a result
};

struct Machine {
  TimeNs free = 0;
  double variance = 0;       // of `free`
};

struct Ready {               // a job as the rule sees it at some moment
  TimeNs start = kNever, end = kNever;  // not to be started before; to have ended by
};

class Play {
 public:
  Play(const LookAhead& ask, TimeNs now, TimeNs horizon) noexcept : ask_(ask), now_(now), horizon_(horizon) {
    for (std::size_t i = 0; i < ask.sources.size(); ++i) {
      const LookAheadSource& s = ask.sources[i];
      jobs_[i].need = s.need_ns;
      if (s.waiting_ns != kNever) {
        jobs_[i].capture = s.waiting_ns;
        jobs_[i].arrival = now;
      } else {
        jobs_[i].capture = s.next_ns;
        jobs_[i].arrival = s.next_ns == kNever ? kNever : s.next_ns + s.transit_ns;
      }
    }
    for (std::uint32_t m = 0; m < ask.machines; ++m) machines_[m].free = std::max(ask.free_ns[m], now);
  }

  // Starts `lead` and the `more` that the rule would add to its batch, on machine m.
  void start(std::uint32_t m, std::uint32_t lead, TimeNs at, std::uint32_t requests) noexcept;
  void idle_until(TimeNs at) noexcept { machines_[0].free = std::max(machines_[0].free, at); }
  double finish() noexcept;  // plays on by the rule; the expected cost

  [[nodiscard]] std::uint32_t batch(std::uint32_t m, std::uint32_t lead, TimeNs at, std::uint32_t requests,
                                    std::array<std::uint32_t, kLookAheadSources>& members) const noexcept;
  [[nodiscard]] Ready ready(std::size_t i, TimeNs at) const noexcept;

 private:
  [[nodiscard]] double sigma(const LookAheadSource& s, std::uint32_t n) const noexcept {
    const auto safe = static_cast<double>(s.safe_ns[n]) * ask_.margin_permille / 1000;
    return std::max(0.0, safe - static_cast<double>(s.run_ns[n])) / kSafe;
  }
  [[nodiscard]] bool harms(std::uint32_t m, std::size_t j, TimeNs at) const noexcept;
  void account(std::size_t i, TimeNs end, double deviation, double own) noexcept;
  void lose(const LookAheadSource& s, Job& job, TimeNs until) noexcept;

  const LookAhead& ask_;
  TimeNs now_, horizon_;
  std::array<Job, kLookAheadSources> jobs_;
  std::array<Machine, kLookAheadMachines> machines_;
  double cost_ = 0;
};

Ready Play::ready(std::size_t i, TimeNs at) const noexcept {
  const LookAheadSource& s = ask_.sources[i];
  const Job& job = jobs_[i];
  if (job.capture == kNever) return {};
  const TimeNs run = s.run_ns[1];
  TimeNs start = std::max(at, job.arrival);
  if (s.period_ns == 0) return {start, start + run <= s.deadline_ns ? s.deadline_ns : kNever - 1};
  TimeNs begin = job.need;
  if (start + run >= begin + s.period_ns) begin += (start + run - begin) / s.period_ns * s.period_ns;
  // Not so early that it may end in the window before, which is covered.
  const auto guard = std::min(static_cast<TimeNs>(kGuard * sigma(s, 1)), s.period_ns / 4);
  start = std::max(start, begin + guard - run);
  return {start, begin + s.period_ns};
}

// Would j, started on machine m, make a heavier job late that is in time without it?
bool Play::harms(std::uint32_t m, std::size_t j, TimeNs at) const noexcept {
  const TimeNs end = at + ask_.sources[j].run_ns[1];
  for (std::size_t i = 0; i < ask_.sources.size(); ++i) {
    const LookAheadSource& s = ask_.sources[i];
    if (s.weight <= ask_.sources[j].weight || (s.machines >> m & 1) == 0) continue;
    const Ready r = ready(i, at);
    const TimeNs need = s.run_ns[1] + static_cast<TimeNs>(kRoom * sigma(s, 1));
    if (r.start == kNever || r.end == kNever - 1 || std::max(end, r.start) + need <= r.end) continue;
    bool elsewhere = false;
    for (std::uint32_t other = 0; other < ask_.machines && !elsewhere; ++other) {
      elsewhere = other != m && (s.machines >> other & 1) != 0 && std::max(machines_[other].free, r.start) + need <= r.end;
    }
    if (!elsewhere) return true;
  }
  return false;
}

// The members of a batch that `lead` begins at `at`: others of its group that are there, as long as each still ends in its window.
std::uint32_t Play::batch(std::uint32_t m, std::uint32_t lead, TimeNs at, std::uint32_t requests,
                          std::array<std::uint32_t, kLookAheadSources>& members) const noexcept {
  const LookAheadSource& l = ask_.sources[lead];
  members[0] = lead;
  std::uint32_t n = 1;
  TimeNs end = ready(lead, at).end;
  const std::uint32_t most = std::min(requests, l.cap);
  while (n < most) {
    std::uint32_t best = kNone;
    TimeNs best_end = kNever;
    for (std::uint32_t i = 0; i < ask_.sources.size(); ++i) {
      const LookAheadSource& s = ask_.sources[i];
      if (s.group != l.group || (s.machines >> m & 1) == 0 || jobs_[i].capture == kNever || jobs_[i].arrival > at) continue;
      if (std::find(members.begin(), members.begin() + n, i) != members.begin() + n) continue;
      const Ready r = ready(i, at);
      const bool first = best == kNone || s.weight > ask_.sources[best].weight || (s.weight == ask_.sources[best].weight && r.end < best_end);
      if (first) {
        best = i;
        best_end = r.end;
      }
    }
    if (best == kNone || at + l.run_ns[n + 1] + static_cast<TimeNs>(kSure * sigma(l, n + 1)) > std::min(end, best_end)) return n;
    end = std::min(end, best_end);
    members[n++] = best;
  }
  return n;
}

void Play::start(std::uint32_t m, std::uint32_t lead, TimeNs at, std::uint32_t requests) noexcept {
  std::array<std::uint32_t, kLookAheadSources> members;
  const std::uint32_t n = batch(m, lead, at, requests, members);
  const LookAheadSource& l = ask_.sources[lead];
  Machine& machine = machines_[m];
  // A gap before the start takes up what came before.
  if (static_cast<double>(at - machine.free) > kGuard * std::sqrt(machine.variance)) machine.variance = 0;
  const double own = sigma(l, n);
  machine.variance += own * own;
  machine.free = at + l.run_ns[n];
  const double deviation = std::sqrt(machine.variance);
  for (std::uint32_t k = 0; k < n; ++k) {
    const std::uint32_t i = members[k];
    const LookAheadSource& s = ask_.sources[i];
    Job& job = jobs_[i];
    const TimeNs newer = job.capture == s.waiting_ns ? s.next_ns : job.capture + s.period_ns;
    if (s.latest && s.period_ns > 0 && newer != kNever && newer + s.transit_ns <= at) {  // by then it has taken its place
      job.capture = newer + (at - newer - s.transit_ns) / s.period_ns * s.period_ns;
    }
    account(i, machine.free, deviation, own);
  }
}

// Windows that end by `until` without a result.
void Play::lose(const LookAheadSource& s, Job& job, TimeNs until) noexcept {
  const TimeNs upto = std::min(until, horizon_);
  if (upto < job.need + s.period_ns) return;
  const TimeNs lost = (upto - job.need) / s.period_ns;
  cost_ += s.weight * static_cast<double>(lost * s.period_ns);
  job.need += lost * s.period_ns;
}

void Play::account(std::size_t i, TimeNs end, double deviation, double own) noexcept {
  const LookAheadSource& s = ask_.sources[i];
  Job& job = jobs_[i];
  const auto chance = [&](TimeNs room) {  // to end later than `room` after `end`
    return deviation > 0 ? exceeds(static_cast<double>(room) / deviation) : room < 0 ? 1.0 : 0.0;
  };
  if (s.period_ns == 0) {
    if (s.deadline_ns <= horizon_) cost_ += s.weight * static_cast<double>(s.run_ns[1]) * chance(s.deadline_ns - end);
    job.capture = kNever;
    return;
  }
  const TimeNs capture = job.capture;
  const bool waited = capture == s.waiting_ns;
  job.capture = waited && s.next_ns != kNever ? s.next_ns : capture + s.period_ns;
  job.arrival = job.capture + s.transit_ns;
  if (end - capture > s.max_age_ns) return;  // stale on delivery
  lose(s, job, end);
  const double window = s.weight * static_cast<double>(s.period_ns);
  if (end < job.need) {  // covered already
    if (job.need <= horizon_) cost_ += window * kLateShare;
    return;
  }
  if (end >= job.need + s.period_ns) return;  // beyond the horizon
  if (job.need + s.period_ns <= horizon_) {
    cost_ += window * chance(job.need + s.period_ns - end);
    // The other edge. When the time comes, the start can still be put off: only its own run time is uncertain then.
    if (own > 0) cost_ += window * exceeds(static_cast<double>(end - job.need) / own);
    if (end > capture + s.slo_ns) cost_ += window * kLateShare;
  }
  job.need += s.period_ns;
}

double Play::finish() noexcept {
  for (std::uint32_t played = 0; played < kMaxJobs; ++played) {
    std::uint32_t m = 0;
    for (std::uint32_t k = 1; k < ask_.machines; ++k) {
      if (machines_[k].free < machines_[m].free) m = k;
    }
    const TimeNs at = machines_[m].free;
    if (at >= horizon_) break;
    std::uint32_t best = kNone;
    TimeNs best_end = kNever, soonest = kNever;
    for (std::uint32_t i = 0; i < ask_.sources.size(); ++i) {
      if ((ask_.sources[i].machines >> m & 1) == 0) continue;
      const Ready r = ready(i, at);
      if (r.start == kNever) continue;
      if (r.start > at) {
        soonest = std::min(soonest, r.start);
      } else if ((best == kNone || r.end < best_end) && !harms(m, i, at)) {
        best = i;
        best_end = r.end;
      }
    }
    if (best != kNone) {
      start(m, best, at, ask_.sources[best].cap);
    } else if (soonest == kNever) {
      machines_[m].free = horizon_;
    } else {
      machines_[m].free = std::max(soonest, at + 1);
    }
  }
  for (std::size_t i = 0; i < ask_.sources.size(); ++i) {
    const LookAheadSource& s = ask_.sources[i];
    if (s.period_ns > 0) {
      lose(s, jobs_[i], horizon_);
    } else if (jobs_[i].capture != kNever && s.deadline_ns <= horizon_) {
      cost_ += s.weight * static_cast<double>(s.run_ns[1]);
    }
  }
  return cost_;
}

}  // namespace

LookAheadMove LookAhead::decide(TimeNs now) const noexcept {
  TimeNs longest = 0, ahead = horizon_ns;
  for (const LookAheadSource& s : sources) {
    if (s.period_ns > 0) ahead = std::min(ahead, kPeriods * s.period_ns);
    if (s.waiting_ns != kNever) longest = std::max(longest, s.run_ns[1]);
  }
  const TimeNs horizon = now + ahead + longest;
  LookAheadMove best;
  double least = 0;
  TimeNs best_end = kNever, soonest = kNever;
  bool any = false;
  const Play fresh(*this, now, horizon);
  for (std::uint32_t i = 0; i < sources.size(); ++i) {
    if ((sources[i].machines & 1) == 0) continue;
    const Ready r = fresh.ready(i, now);
    if (r.start > now && r.start != kNever) soonest = std::min(soonest, r.start);
    if (sources[i].waiting_ns == kNever) continue;
    std::array<std::uint32_t, kLookAheadSources> members;
    const std::uint32_t most = fresh.batch(0, i, now, sources[i].cap, members);
    for (std::uint32_t n = 1; n <= most; ++n) {
      Play play = fresh;
      play.start(0, i, now, n);
      const double cost = play.finish();
      const bool better = !any || cost < least || (cost == least && (r.end < best_end || (best.source == i && n > best.requests)));
      if (!better) continue;
      any = true;
      least = cost;
      best = {.source = i, .requests = n, .until_ns = kNever};
      best_end = r.end;
    }
  }
  if (soonest == kNever) return best;
  Play play = fresh;
  play.idle_until(soonest);
  if (!any || play.finish() < least) return {.source = kNone, .requests = 0, .until_ns = soonest};
  return best;
}

}  // namespace leat::core
