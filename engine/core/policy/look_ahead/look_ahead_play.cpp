#include "engine/core/policy/look_ahead/look_ahead_play.h"

#include <algorithm>
#include <cmath>

namespace leat::core::ahead {
namespace {

// The values below were chosen on the workloads of docs/research/studies.md, freshness.

// Run times: how much longer their upper tail is than a normal one's, per squared standard deviation.
constexpr double kTailSkew = .03;

// What is kept free, in standard deviations of a run time. A lone job can be put off, so it keeps least, from the begin
// of its window and at most a quarter of that; a batch puts all its members' windows at risk; and a heavier job's place
// is kept before it is known what its own start will be.
constexpr double kStartGuard = 2, kBatchGuard = 3, kHeavierGuard = 3.5;

// What is worth a little, so that it decides between moves that are else equal: a result that is fresh but after its
// deadline, or in a window that is covered already, as a share of the window; the delay of a single request that is not
// owed, as a share of its length.
constexpr double kLateResult = 1.0 / 1000, kDelay = 1.0 / 100;

// How far a move is played on: over so many of the shortest periods at most, and about so many jobs, of which so many
// are tried at each point. More jobs spread a decision's looks (kLooks) over moves too far away to be made.
constexpr TimeNs kHorizonPeriods = 4, kHorizonJobs = 40;
constexpr std::size_t kChoices = 6;

// The chance that a run time exceeds its median by x standard deviations.
double exceeds(double x) noexcept {
  // Of a normal one, by quarters of a deviation.
  constexpr std::array<double, 22> kTail = {.5,      .401294, .308538,  .226627, .158655,  .105650, .066807, .040059,
                                            .022750, .012224, .006210,  .002980, .001350,  .000577, .000233, .000088,
                                            .000032, .000011, .0000034, .000001, .0000003, 0};
  if (x > 8) return 0;
  if (x > 0) x -= kTailSkew * (x * x - kSafe * kSafe * std::min(1.0, x));  // exact at the 99th percentile
  const double steps = (x < 0 ? -x : x) * 4;
  double tail = 0;
  if (steps < kTail.size() - 1) {
    const auto i = static_cast<std::size_t>(steps);
    tail = kTail[i] + (kTail[i + 1] - kTail[i]) * (steps - static_cast<double>(i));
  }
  return x < 0 ? 1 - tail : tail;
}

}  // namespace

Table::Table(const LookAhead& a, TimeNs at) noexcept : ask(a), now(at) {
  TimeNs longest = 0, ahead = a.horizon_ns;
  for (const LookAheadSource& s : a.sources) {
    if (s.period_ns > 0) ahead = std::min(ahead, kHorizonPeriods * s.period_ns);
    if (s.waiting_ns != kNever) longest = std::max(longest, s.run_ns[1]);
  }
  TimeNs jobs = 0;
  for (std::size_t i = 0; i < a.sources.size(); ++i) {
    const LookAheadSource& s = a.sources[i];
    jobs += 1 + (s.period_ns > 0 ? ahead / s.period_ns : 0);
    heaviest = std::max(heaviest, s.weight);
    deviation[i] = sigma(s, 1);
    guard[i] = std::min(static_cast<TimeNs>(kStartGuard * deviation[i]), s.period_ns / 4);
    need[i] = s.run_ns[1] + static_cast<TimeNs>(kHeavierGuard * deviation[i]);
  }
  horizon = now + (jobs > kHorizonJobs ? ahead * kHorizonJobs / jobs : ahead) + longest;
}

Play::Play(Table& table) noexcept : t_(&table) {
  for (std::size_t i = 0; i < sources(); ++i) {
    const LookAheadSource& s = source(i);
    const bool waits = s.waiting_ns != kNever;
    jobs_[i] = {.capture = waits ? s.waiting_ns : s.next_ns, .arrival = t_->now, .need = s.need_ns, .left = s.waiting};
    if (!waits) jobs_[i].arrival = s.next_ns == kNever ? kNever : s.next_ns + s.transit_ns;
  }
  for (std::uint32_t m = 0; m < t_->ask.machines; ++m) {
    const auto spread = static_cast<double>(t_->ask.spread_ns[m]);
    machines_[m] = {
        .free = std::max(t_->ask.free_ns[m], t_->now), .variance = spread * spread, .committed = spread * spread};
  }
}

Slot Play::slot(std::size_t i, TimeNs at) const noexcept {
  const LookAheadSource& s = source(i);
  const Job& job = jobs_[i];
  if (job.capture == kNever) return {};
  const TimeNs run = s.run_ns[1];
  TimeNs start = std::max(at, job.arrival);
  if (s.period_ns == 0)
    return {start, s.owed ? t_->now + run : start + run <= s.deadline_ns ? s.deadline_ns : kNever - 1};
  TimeNs begin = job.need;
  if (start + run >= begin + s.period_ns) begin += (start + run - begin) / s.period_ns * s.period_ns;
  // Not so early that it may end in the window before, which is covered.
  start = std::max(start, begin + t_->guard[i] - run);
  return {start, begin + s.period_ns};
}

std::uint32_t Play::next_machine() const noexcept {
  std::uint32_t m = 0;
  for (std::uint32_t k = 1; k < t_->ask.machines; ++k) {
    if (machines_[k].free < machines_[m].free) m = k;
  }
  return m;
}

// Would work of that weight, on machine m from `at` to `end`, make a heavier job late that is in time without it?
bool Play::harms(std::uint32_t m, double weight, TimeNs at, TimeNs end, std::uint32_t members) const noexcept {
  if (weight >= t_->heaviest) return false;
  look();
  for (std::size_t i = 0; i < sources(); ++i) {
    const LookAheadSource& s = source(i);
    if (s.weight <= weight || (s.machines >> m & 1) == 0 || (members >> i & 1) != 0) continue;
    const Slot r = slot(i, at);
    const TimeNs need = t_->need[i];
    if (r.start == kNever || r.end == kNever - 1 || std::max(end, r.start) + need <= r.end) continue;
    bool elsewhere = false;
    for (std::uint32_t other = 0; other < t_->ask.machines && !elsewhere; ++other) {
      elsewhere =
          other != m && (s.machines >> other & 1) != 0 && std::max(machines_[other].free, r.start) + need <= r.end;
    }
    if (!elsewhere) return true;
  }
  return false;
}

// The members of a batch that `lead` begins at `at`: others of its group that are there, as long as each still ends in
// its window and, where `careful`, no heavier job is harmed.
std::uint32_t Play::batch(std::uint32_t m, std::uint32_t lead, TimeNs at, std::uint32_t requests, bool careful,
                          Members& members) const noexcept {
  const LookAheadSource& l = source(lead);
  members[0] = lead;
  if (l.period_ns == 0) {
    std::uint32_t n = std::max(1u, std::min({requests, l.cap, jobs_[lead].left}));
    while (careful && n > 1 && harms(m, l.weight, at, at + l.run_ns[n], 1u << lead)) n /= 2;
    return n;
  }
  std::uint32_t n = 1, taken = 1u << lead;
  const std::uint32_t max = std::min(requests, l.cap);
  if (max == 1) return 1;
  TimeNs end = slot(lead, at).end;
  while (n < max) {
    std::uint32_t best = kNone;
    TimeNs best_end = kNever;
    look();
    for (std::uint32_t i = 0; i < sources(); ++i) {
      const LookAheadSource& s = source(i);
      if (s.group != l.group || s.period_ns == 0 || (s.machines >> m & 1) == 0 || (taken >> i & 1) != 0) continue;
      const Slot r = slot(i, at);
      if (r.start > at) continue;
      if (best == kNone || s.weight > source(best).weight || (s.weight == source(best).weight && r.end < best_end)) {
        best = i;
        best_end = r.end;
      }
    }
    if (best == kNone ||
        at + l.run_ns[n + 1] + static_cast<TimeNs>(kBatchGuard * t_->sigma(l, n + 1)) > std::min(end, best_end))
      return n;
    if (careful && harms(m, l.weight, at, at + l.run_ns[n + 1], taken | 1u << best)) return n;
    end = std::min(end, best_end);
    taken |= 1u << best;
    members[n++] = best;
  }
  return n;
}

void Play::start(std::uint32_t m, std::uint32_t lead, TimeNs at, std::uint32_t requests, bool first) noexcept {
  Members members;
  const std::uint32_t n = batch(m, lead, at, requests, !first, members);
  const LookAheadSource& l = source(lead);
  Machine& machine = machines_[m];
  // A gap before the start takes up what came before.
  if (static_cast<double>(at - machine.free) > kStartGuard * std::sqrt(machine.variance))
    machine = {.free = machine.free};
  const double own = n == 1 ? t_->deviation[lead] : t_->sigma(l, n);
  // When what comes before takes longer, another machine may take this one.
  double variance = machine.variance, committed = machine.committed;
  if (t_->ask.machines > 1 && variance > 0) {
    const TimeNs last = slot(lead, at).end - l.run_ns[n];
    for (std::uint32_t k = 0; k < t_->ask.machines; ++k) {
      if (k == m || (l.machines >> k & 1) == 0 || machines_[k].free > last) continue;
      variance = std::min(variance, machines_[k].variance);
      committed = std::min(committed, machines_[k].committed);
    }
  }
  machine.variance += own * own;
  machine.free = at + l.run_ns[n];
  if (first) machine.committed = machine.variance;
  const double deviation = std::sqrt(variance + own * own), firm = std::sqrt(committed + own * own),
               spare = machine.spare;
  if (!first)
    machine.spare = std::min(spare, l.weight * static_cast<double>(l.period_ns > 0 ? l.period_ns : l.run_ns[1]));
  if (l.period_ns == 0) return account_single(lead, n, machine.free, deviation);
  for (std::uint32_t k = 0; k < n; ++k) {
    const std::uint32_t i = members[k];
    const LookAheadSource& s = source(i);
    Job& job = jobs_[i];
    const TimeNs newer = job.capture == s.waiting_ns ? s.next_ns : job.capture + s.period_ns;
    if (s.latest && newer != kNever && newer + s.transit_ns <= at) {  // by then it has taken its place
      job.capture = newer + (at - newer - s.transit_ns) / s.period_ns * s.period_ns;
    }
    account(i, machine.free, deviation, firm, own, spare);
  }
}

// Windows that end by `until` without a result.
void Play::lose(const LookAheadSource& s, Job& job, TimeNs until) noexcept {
  const TimeNs upto = std::min(until, t_->horizon);
  if (upto < job.need + s.period_ns) return;
  const TimeNs lost = (upto - job.need) / s.period_ns;
  cost_ += s.weight * static_cast<double>(lost * s.period_ns);
  job.need += lost * s.period_ns;
}

// Of each request its delay, and its run time where it ends too late.
void Play::account_single(std::size_t i, std::uint32_t requests, TimeNs end, double deviation) noexcept {
  const LookAheadSource& s = source(i);
  Job& job = jobs_[i];
  double cost = (s.owed ? 1 : kDelay) * static_cast<double>(end - s.run_ns[1] - t_->now);
  if (!s.owed && s.deadline_ns <= t_->horizon) {
    const auto room = static_cast<double>(s.deadline_ns - end);
    cost += static_cast<double>(s.run_ns[1]) * (deviation > 0 ? exceeds(room / deviation) : room < 0 ? 1 : 0);
  }
  cost_ += s.weight * requests * cost;
  job.left -= std::min(job.left, requests);
  if (job.left == 0) job.capture = kNever;
}

void Play::account(std::size_t i, TimeNs end, double deviation, double firm, double own, double spare) noexcept {
  const LookAheadSource& s = source(i);
  const TimeNs horizon = t_->horizon;
  Job& job = jobs_[i];
  const TimeNs capture = job.capture;
  job.capture = capture == s.waiting_ns && s.next_ns != kNever ? s.next_ns : capture + s.period_ns;
  job.arrival = job.capture + s.transit_ns;
  if (end - capture > s.max_age_ns) return;  // stale on delivery
  lose(s, job, end);
  const double window = s.weight * static_cast<double>(s.period_ns);
  if (end < job.need) {  // covered already
    if (job.need <= horizon) cost_ += window * kLateResult;
    return;
  }
  if (end >= job.need + s.period_ns) return;  // beyond the horizon
  if (job.need + s.period_ns <= horizon) {
    const auto room = static_cast<double>(job.need + s.period_ns - end);
    if (deviation > 0) {
      // Where what is only planned takes too long, the cheapest of it can be left out; what has been decided cannot.
      const double late = exceeds(room / deviation), sure = exceeds(room / firm);
      cost_ += spare >= window ? window * late : window * sure + spare * std::max(0.0, late - sure);
    }
    // The other edge. When the time comes, the start can still be put off: only its own run time is uncertain then.
    if (own > 0) cost_ += window * exceeds(static_cast<double>(end - job.need) / own);
    if (end > capture + s.slo_ns) cost_ += window * kLateResult;
  }
  job.need += s.period_ns;
}

double Play::finish(double bound) noexcept {
  for (;;) {
    if (cost_ >= bound) return cost_;
    const std::uint32_t m = next_machine();
    const TimeNs at = machines_[m].free;
    if (at >= t_->horizon) break;
    std::uint32_t best = kNone;
    TimeNs best_end = kNever, soonest = kNever;
    look();
    for (std::uint32_t i = 0; i < sources(); ++i) {
      const LookAheadSource& s = source(i);
      if ((s.machines >> m & 1) == 0) continue;
      const Slot r = slot(i, at);
      if (r.start > at) {
        soonest = std::min(soonest, r.start);
      } else if ((best == kNone || r.end < best_end) && !harms(m, s.weight, at, at + s.run_ns[1], 1u << i)) {
        best = i;
        best_end = r.end;
      }
    }
    if (best != kNone) {
      start(m, best, at, source(best).cap, false);
    } else {
      machines_[m].free = soonest == kNever ? t_->horizon : std::max(soonest, at + 1);
    }
  }
  for (std::size_t i = 0; i < sources(); ++i) {
    const LookAheadSource& s = source(i);
    if (s.period_ns > 0) {
      lose(s, jobs_[i], t_->horizon);
    } else if (jobs_[i].capture != kNever) {
      account_single(i, jobs_[i].left,
                     std::max(t_->horizon, s.deadline_ns <= t_->horizon ? s.deadline_ns + 1 : 0) + s.run_ns[1], 0);
    }
  }
  return cost_;
}

// Jobs that may be next on machine m, the earliest end of a window first. One that could wait for another to run before
// it is not next.
std::size_t Play::choices(std::uint32_t m, TimeNs at, Members& out) const noexcept {
  std::array<Slot, kLookAheadSources> slots;
  TimeNs first_end = kNever;
  std::size_t n = 0;
  look();
  for (std::uint32_t i = 0; i < sources(); ++i) {
    if ((source(i).machines >> m & 1) == 0) continue;
    slots[i] = slot(i, at);
    if (slots[i].start >= t_->horizon) continue;
    first_end = std::min(first_end, slots[i].start + source(i).run_ns[1]);
    out[n++] = i;
  }
  const auto end = std::remove_if(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(n),
                                  [&](std::uint32_t i) { return slots[i].start >= first_end; });
  std::sort(out.begin(), end, [&](std::uint32_t a, std::uint32_t b) {
    return slots[a].end != slots[b].end ? slots[a].end < slots[b].end : a < b;
  });
  return std::min(static_cast<std::size_t>(end - out.begin()), kChoices);
}

double Play::search(std::uint32_t depth, double bound) const noexcept {
  Play rule = *this;
  double best = std::min(bound, rule.finish(bound));
  const std::uint32_t m = next_machine();
  const TimeNs at = machines_[m].free;
  if (depth == 0 || cost_ >= best || at >= t_->horizon) return best;
  Members next;
  const std::size_t n = choices(m, at, next);
  for (std::size_t k = 0; k < n && t_->looks > 0; ++k) {
    Play play = *this;
    play.start(m, next[k], slot(next[k], at).start, source(next[k]).cap, false);
    best = std::min(best, play.search(depth - 1, best));
  }
  return best;
}

}  // namespace leat::core::ahead
