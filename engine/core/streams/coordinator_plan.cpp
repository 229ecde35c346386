// The tick: settings, simulate, adjust, verify, apply (coordinator.h).
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/core/streams/coordinator.h"

namespace leat::core::streams {
namespace {

// Of the SLA: how far into its margin a plan may go that holds streams, so that who was admitted just so may stay. As a
// share of the margin, and at least so much where the margin is large enough.
constexpr double kAdmit = 0, kHold = 0.08, kHoldShare = 0.2;
constexpr int kTrims = 2;
constexpr double kDown = 1e6;                 // load of a partition that is not up
constexpr std::size_t kPlannedAtOnce = 1200;  // streams, over all plans of a tick that it need not make
constexpr double kTrimKept = 0.9;             // from tick to tick

}  // namespace

const std::vector<TimeNs>& Coordinator::runs(const Stream& s) const noexcept {
  return batch_ns_[s.spec.module][s.partition == kNone ? first_[s.spec.module] : s.partition];
}

// What its present slope leaves it, on its partition.
void Coordinator::budget(std::uint32_t id) noexcept {
  Stream& s = streams_[id];
  s.reference = reference_mean(runs(s)[0], s.spec.pace, settings_.grace, curve_);
  s.most = s.sla_drop * (1 - margin_of(s)) / slope_of(s) - s.trim + s.reference;
}

Setting Coordinator::setting_of(const Stream& s, PartitionId partition, std::uint32_t batch) const noexcept {
  const std::vector<TimeNs>& batch_ns = batch_ns_[s.spec.module][partition];
  Pace pace = s.spec.pace;
  pace.any_phase = settings_.any_phase;
  const auto period = static_cast<double>(pace.period_ns);
  for (; batch > 0; --batch) {
    const double interval =
        fitting_interval(first_stride(batch_ns[batch - 1], pace, grace_[partition]), s.most, curve_);
    if (interval < 1) continue;
    const double each_ns = static_cast<double>(batch_ns[batch - 1]) * (1 + grace_[partition]) / batch;
    return {.interval = interval, .batch = batch, .load = each_ns / (interval * period)};
  }
  return best_setting(batch_ns, pace, grace_[partition], s.most - s.reference, curve_);
}

// Downhill from what it was.
void Coordinator::choose_batch(std::uint32_t m, PartitionId p) noexcept {
  const auto load = [&](std::uint32_t batch) {
    double sum = 0;
    for (const std::uint32_t id : in_) {
      const Stream& s = streams_[id];
      if (s.spec.module == m && (s.partition == p || (s.partition == kNone && p == first_[m])))
        sum += setting_of(s, p, batch).load;
    }
    return sum;
  };
  std::uint32_t& batch = batch_[m][p];
  double least = load(batch);
  for (const std::int32_t step : {1, -1}) {
    while (batch + step >= 1 && batch + step <= batch_ns_[m][p].size()) {
      const double there = load(batch + step);
      if (there >= least) break;
      least = there;
      batch += step;
    }
  }
}

// Its setting, on its partition.
void Coordinator::choose(std::uint32_t id) noexcept {
  Stream& s = streams_[id];
  const PartitionId p = s.partition == kNone ? first_[s.spec.module] : s.partition;
  Pace pace = s.spec.pace;
  pace.any_phase = settings_.any_phase;
  s.setting = settings_.common_batch ? setting_of(s, p, batch_[s.spec.module][p])
                                     : best_setting(runs(s), pace, grace_[p], s.most - s.reference, curve_);
  s.spendthrift = s.setting.load > s.spec.max_share;
  if (!s.spendthrift) return;
  const double longer = std::ceil(s.setting.interval * s.setting.load / s.spec.max_share);
  s.setting.load *= s.setting.interval / longer;
  s.setting.interval = longer;
}

// First-fit by load, those that have a place first.
void Coordinator::place_all() noexcept {
  for (PartitionId p = 0; p < load_.size(); ++p) load_[p] = up_[p] != 0 ? 0 : kDown;
  for (const std::uint32_t id : in_) {
    Stream& s = streams_[id];
    if (s.partition != kNone && up_[s.partition] == 0) s.partition = kNone;
    if (s.partition != kNone) load_[s.partition] += s.setting.load;
  }
  for (const std::uint32_t id : in_) {
    Stream& s = streams_[id];
    if (s.partition != kNone && load_[s.partition] <= 1) continue;
    PartitionId least = first_[s.spec.module];
    for (PartitionId p = least + 1; p < load_.size(); ++p)
      if (serves(p, s) && load_[p] < load_[least]) least = p;
    if (s.partition != kNone) {
      if (load_[least] + s.setting.load >= load_[s.partition]) continue;  // it would be no better there
      load_[s.partition] -= s.setting.load;
    }
    s.partition = least;
    load_[least] += s.setting.load;
  }
}

double Coordinator::spare() const noexcept {
  double spare = 0;
  for (const double each : load_) spare += each < kDown ? 1 - each : 0;
  return spare;
}

// What starts before now + overlap stays as it is; what has ended is forgotten.
void Coordinator::keep_near(TimeNs now) noexcept {
  const TimeNs until = now + settings_.overlap_ns;
  kept_.clear();
  kept_members_.clear();
  for (const PlannedBatch& b : batches_) {
    if (b.start_ns >= until) continue;
    PlannedBatch kept = b;
    kept.first = static_cast<std::uint32_t>(kept_members_.size());
    kept.count = 0;
    std::uint32_t before = kNone;
    for (const std::uint32_t id : members(b)) {
      if (!admitted(id)) continue;
      Stream& s = planned(id);
      if (id == before) s.probed_ns = std::max(s.probed_ns, b.start_ns);
      before = id;
      kept_members_.push_back(id);
      ++kept.count;
      if (streams_[id].lead != kNone) streams_[id].sent_ns = std::max(streams_[id].sent_ns, b.start_ns);
      if (b.start_ns > s.sent_ns) {
        s.sent_ns = b.start_ns;
        s.serves_ns = b.end_ns + s.spec.pace.path_ns;
      }
    }
    if (kept.count > 0 && b.end_ns > now) kept_.push_back(kept);
  }
}

bool Coordinator::may_plan() const noexcept { return planned_ + 2 * in_.size() <= kPlannedAtOnce; }

bool Coordinator::plan(TimeNs now, double slack) noexcept {
  planned_ += in_.size();
  const TimeNs near = now + settings_.overlap_ns;
  for (const std::uint32_t id : in_) budget(id);
  if (settings_.common_batch)
    for (std::uint32_t m = 0; m < batch_.size(); ++m)
      for (PartitionId p = 0; p < batch_[m].size(); ++p)
        if (!batch_ns_[m][p].empty()) choose_batch(m, p);
  for (const std::uint32_t id : in_) choose(id);
  place_all();
  batches_.assign(kept_.begin(), kept_.end());
  members_.assign(kept_members_.begin(), kept_members_.end());
  std::fill(free_ns_.begin(), free_ns_.end(), near);
  for (const PlannedBatch& b : kept_) {
    const TimeNs free =
        b.end_ns + static_cast<TimeNs>(grace_[b.partition] * static_cast<double>(b.end_ns - b.start_ns));
    free_ns_[b.partition] = std::max(free_ns_[b.partition], free);
  }
  for (PartitionId p = 0; p < up_.size(); ++p) {
    if (up_[p] == 0) continue;
    candidates_.clear();
    for (const std::uint32_t id : in_) {
      const Stream& s = streams_[id];
      if (s.partition != p) continue;
      const TimeNs interval = interval_ns(s);
      const TimeNs next = s.sent_ns == INT64_MIN ? near : std::max(near, s.sent_ns + interval);
      // A lead has as many probes as its tasks would.
      const bool probe = settings_.probe_ns > 0 && now - s.probed_ns >= settings_.probe_ns / std::max(1u, s.tasks);
      candidates_.push_back({.stream = id,
                             .next_ns = next,
                             .interval_ns = interval,
                             .batch = s.setting.batch,
                             .probe = probe,
                             .apart_ns = s.spec.pace.period_ns,
                             .module = s.spec.module});
    }
    // While somebody waits partitions are never idle, and what is idle otherwise is shared out evenly.
    const bool full = !waiting_.empty();
    packing_.pack(candidates_, batch_ns_, p, free_ns_[p], now + settings_.horizon_ns, grace_[p],
                  full ? std::numeric_limits<double>::infinity() : settings_.reach, full && settings_.even, batches_,
                  members_);
  }
  return verify(now, slack);
}

// The mean drop that each stream's estimate gives the plan, from now + overlap until its last planned answer serves.
bool Coordinator::verify(TimeNs now, double slack) noexcept {
  const auto frame_of = [](const Stream& s, TimeNs at) {
    return static_cast<double>(at - s.phase_ns) / static_cast<double>(s.spec.pace.period_ns);
  };
  const auto first_frame = [&](const Stream& s, TimeNs at) {
    return static_cast<std::int64_t>(std::ceil(frame_of(s, at) - 1e-6));
  };
  const auto newest_frame = [&](const Stream& s, TimeNs at) {
    return static_cast<std::int64_t>(std::floor(frame_of(s, at) + 1e-6));
  };
  for (const std::uint32_t id : in_) {
    const Stream& s = streams_[id];
    Tally& t = tallies_[id] = {};
    if (s.sent_ns == INT64_MIN) {  // it has nothing to track yet; its first answer begins the count
      t.source = INT64_MIN;
      continue;
    }
    t.source = newest_frame(s, s.sent_ns);
    // Counted from where the next answer would serve if its frame came at its time: what is lost until then is past
    // help, what is lost from then on because the partition is busy is the plan's.
    const TimeNs run = runs(s)[s.setting.batch - 1];
    const TimeNs next = std::max(now + settings_.overlap_ns, s.sent_ns + interval_ns(s));
    t.shown = first_frame(s, next + run + s.spec.pace.path_ns);
  }
  for (std::size_t i = kept_.size(); i < batches_.size(); ++i) {
    const PlannedBatch& b = batches_[i];
    for (const std::uint32_t id : members(b)) {
      const Stream& s = streams_[id];
      Tally& t = tallies_[id];
      const std::int64_t shown = first_frame(s, b.end_ns + s.spec.pace.path_ns);
      if (t.source != INT64_MIN && shown > t.shown) {
        t.x += curve_.sum(static_cast<std::uint32_t>(std::max<std::int64_t>(0, t.shown - t.source)),
                          static_cast<std::uint32_t>(shown - 1 - t.source));
        t.frames += static_cast<std::uint32_t>(shown - t.shown);
      }
      t.source = newest_frame(s, b.start_ns);
      t.shown = shown;
    }
  }
  bool good = true;
  for (const std::uint32_t id : in_) {
    Stream& s = streams_[id];
    const Tally& t = tallies_[id];
    s.over = 0;
    if (up_[s.partition] == 0) continue;  // none that serves it is
    if (t.frames == 0) {
      // Fewer than two frames within the horizon: right where its interval is nearly as long.
      good = good && (2 * interval_ns(s) >= settings_.horizon_ns || s.spendthrift);
      continue;
    }
    s.planned_drop = std::max(0.0, slope_of(s) * (t.x / t.frames - s.reference));
    const double margin = margin_of(s);
    const double into = slack > 0 ? std::min(margin, std::max(slack, kHoldShare * margin)) : 0;
    const double over = s.planned_drop - s.sla_drop * (1 - margin + into);
    if (over <= 0 || s.spendthrift) continue;
    good = false;
    s.over = over / slope_of(s);
  }
  return good;
}

std::size_t Coordinator::whole(std::span<const std::uint32_t> list, std::size_t end) const noexcept {
  const auto parted = [&] {
    const Stream &a = streams_[list[end - 1]], &b = streams_[list[end]];
    return a.tasks > 0 && b.tasks > 0 && a.spec.group == b.spec.group;
  };
  while (end > 0 && end < list.size() && parted()) ++end;
  return end;
}

void Coordinator::evict(TimeNs now) noexcept {
  order_.assign(in_.begin(), in_.end());
  for (const std::uint32_t id : order_) {
    double load = 0;
    each_lead(id, [&](std::uint32_t lead) {
      const Stream& s = streams_[lead];
      load += s.standing == Standing::admitted ? s.setting.load : 0;
    });
    streams_[id].cost = load / streams_[id].spec.weight;
  }
  std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
    const Stream &x = streams_[a], &y = streams_[b];
    return x.cost != y.cost ? x.cost > y.cost : x.turn > y.turn;
  });
  // The fewest of the costliest without which the plan holds: by doubling, then halving.
  const auto without = [&](std::size_t n) {
    in_.assign(order_.begin() + static_cast<std::ptrdiff_t>(whole(order_, n)), order_.end());
    return plan(now, kHold);
  };
  // Never more than a quarter at once, and no fewer than whose load there is no room for.
  const std::size_t most = (order_.size() + 3) / 4;
  std::size_t low = 0, high = 1;
  double over = -spare();
  for (std::size_t n = 0; n < most && over > 0; ++n) {
    over -= streams_[order_[n]].setting.load;
    low = n;
    high = n + 1;
  }
  bool enough = high >= most;
  while (!enough && high < most && may_plan()) {
    if ((enough = without(high))) break;
    low = high;
    high = std::min(most, high * 2);
  }
  // Where there was no time to find out, as many as are known not to be too many; the next tick goes on.
  if (!enough) high = std::max<std::size_t>(1, low);
  while (high > low + 1 && may_plan()) {
    const std::size_t middle = (low + high) / 2;
    (without(middle) ? high : low) = middle;
  }
  in_.assign(order_.begin(), order_.end());
  high = whole(order_, high);
  for (std::size_t n = 0; n < high; ++n) {
    ++streams_[order_[n]].evictions;
    leave(order_[n], Standing::waiting);
  }
  evicted_ns_ = now;
  static_cast<void>(plan(now, kHold));
}

void Coordinator::admit(TimeNs now) noexcept {
  std::sort(waiting_.begin(), waiting_.end(), [this](std::uint32_t a, std::uint32_t b) {
    const Stream &x = streams_[a], &y = streams_[b];
    return x.spec.weight != y.spec.weight ? x.spec.weight > y.spec.weight : x.turn < y.turn;
  });
  // As many of the first as the plan holds: twice as many each time, until it does not; where this tick has no time for
  // more, the next one goes on. One try is always made.
  bool stale = false;
  for (bool first = true; !waiting_.empty() && (first || may_plan()); first = false) {
    const std::size_t before = in_.size();
    const bool least = admitting_ == 1;
    const std::size_t tried = whole(waiting_, std::min(admitting_, waiting_.size()));
    for (std::size_t n = 0; n < tried; ++n) {
      Stream& s = streams_[waiting_[n]];
      s.standing = Standing::admitted;
      s.sent_ns = INT64_MIN;
      s.since_ns = s.heard_ns = now;
      in_.push_back(waiting_[n]);
    }
    bool holds = plan(now, kAdmit);
    holds = holds && spare() >= settings_.admit_room * static_cast<double>(load_.size());
    if (holds) {
      waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(tried));
      admitting_ = 2 * tried;
      stale = false;
      continue;
    }
    stale = true;
    admitting_ = 1;
    for (std::size_t n = before; n < in_.size(); ++n) {
      streams_[in_[n]].standing = Standing::waiting;
      streams_[in_[n]].partition = kNone;
    }
    in_.resize(before);
    if (least) break;
  }
  if (stale) static_cast<void>(plan(now, kHold));
}

void Coordinator::tick(TimeNs now) noexcept {
  next_tick_ns_ = now + settings_.tick_ns;
  planned_ = 0;
  for (std::uint32_t m = 0; m < usual_.size(); ++m)
    for (PartitionId p = 0; p < up_.size(); ++p)
      for (std::size_t b = 0; b < batch_ns_[m][p].size(); ++b)
        batch_ns_[m][p][b] = static_cast<TimeNs>(usual_[m][p].times * static_cast<double>(profile_ns_[m][p][b]));
  for (const auto* list : {&in_, &waiting_})
    for (const std::uint32_t id : *list)
      if (streams_[id].tasks > 0) sum_up(id);
  for (const auto* list : {&in_, &waiting_})
    for (const std::uint32_t id : *list)
      if (streams_[id].tasks > 0) share_sla(id);
  for (std::size_t n = in_.size(); n-- > 0;)
    if (now - std::max(streams_[in_[n]].heard_ns, streams_[in_[n]].since_ns) > settings_.silent_ns)
      leave(in_[n], Standing::silent);
  keep_near(now);
  if (std::find(up_.begin(), up_.end(), 1) == up_.end()) {  // nothing can be planned, and nobody is to blame
    batches_.clear();
    members_.clear();
    return;
  }
  for (const std::uint32_t id : in_) streams_[id].trim *= kTrimKept;
  bool holds = plan(now, kHold);
  // Where there is room, a stream over its SLA is asked for more frames.
  for (int round = 0; !holds && round < kTrims && spare() > 0 && may_plan(); ++round) {
    for (const std::uint32_t id : in_) streams_[id].trim += 1.5 * streams_[id].over;
    holds = plan(now, kHold);
  }
  if (!holds) {
    evict(now);
  } else if (!waiting_.empty() && now - evicted_ns_ >= settings_.settle_ns) {
    admit(now);
  }
  hand_out();
}

}  // namespace leat::core::streams
