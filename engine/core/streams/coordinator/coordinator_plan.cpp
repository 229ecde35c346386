// A plan: settings, simulate, adjust, verify (coordinator.h).
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/core/streams/coordinator/coordinator.h"

namespace leat::core::streams {
namespace {

// Of its margin: how far into it a plan may go at least that holds streams (kHold).
constexpr double kHoldShare = 0.2;

}  // namespace

const std::vector<TimeNs>& Coordinator::runs(const Stream& s) const noexcept {
  return times_.batch_ns[s.spec.module][s.partition == kNone ? times_.first[s.spec.module] : s.partition];
}

// What its present slope leaves it, on its partition.
void Coordinator::budget(std::uint32_t id) noexcept {
  Stream& s = streams_[id];
  s.reference = reference_mean(runs(s)[0], s.spec.pace, settings_.grace, curve_);
  s.max = s.sla_drop * (1 - margin_of(s)) / slope_of(s) - s.trim + s.reference;
}

Setting Coordinator::setting_of(const Stream& s, PartitionId partition, std::uint32_t batch) const noexcept {
  const std::vector<TimeNs>& batch_ns = times_.batch_ns[s.spec.module][partition];
  Pace pace = s.spec.pace;
  pace.any_phase = settings_.any_phase;
  const auto period = static_cast<double>(pace.period_ns);
  for (; batch > 0; --batch) {
    const double interval =
        fitting_interval(first_stride(batch_ns[batch - 1], pace, parts_[partition].grace), s.max, curve_);
    if (interval < 1) continue;
    const double each_ns = static_cast<double>(batch_ns[batch - 1]) * (1 + parts_[partition].grace) / batch;
    return {.interval = interval, .batch = batch, .load = each_ns / (interval * period)};
  }
  return best_setting(batch_ns, pace, parts_[partition].grace, s.max - s.reference, curve_);
}

// Downhill from what it was.
void Coordinator::choose_batch(std::uint32_t m, PartitionId p) noexcept {
  const auto load = [&](std::uint32_t batch) {
    double sum = 0;
    for (const std::uint32_t id : roster_.in) {
      const Stream& s = streams_[id];
      if (s.spec.module == m && s.partition == p) sum += setting_of(s, p, batch).load;
    }
    return sum;
  };
  std::uint32_t& batch = times_.common_batch[m][p];
  double min = load(batch);
  for (const std::int32_t step : {1, -1}) {
    while (batch + step >= 1 && batch + step <= times_.batch_ns[m][p].size()) {
      const double there = load(batch + step);
      if (there >= min) break;
      min = there;
      batch += step;
    }
  }
}

// Its setting, on its partition.
void Coordinator::choose(TimeNs now, std::uint32_t id) noexcept {
  Stream& s = streams_[id];
  const PartitionId p = s.partition == kNone ? times_.first[s.spec.module] : s.partition;
  Pace pace = s.spec.pace;
  pace.any_phase = settings_.any_phase;
  s.setting = settings_.common_batch ? setting_of(s, p, times_.common_batch[s.spec.module][p])
                                     : best_setting(runs(s), pace, parts_[p].grace, s.max - s.reference, curve_);
  if (asks(s)) charge(now, s);
  s.wants = std::min(s.setting.load, s.spec.max_share);
  const double max = std::min(s.spec.max_share, user_of(s).weight * parts_[p].level);
  s.spendthrift = s.setting.load > max;
  if (!s.spendthrift) return;
  const double longer = std::ceil(s.setting.interval * s.setting.load / max);
  s.setting.load *= s.setting.interval / longer;
  s.setting.interval = longer;
}

void Coordinator::add_up() noexcept {
  for (Partition& each : parts_) each.load = 0, each.streams = 0;
  for (const std::uint32_t id : roster_.in) {
    const Stream& s = streams_[id];
    if (s.partition == kNone) continue;
    parts_[s.partition].load += s.setting.load;
    ++parts_[s.partition].streams;
  }
}

// kNone: no partition that is up serves it.
PartitionId Coordinator::least_loaded(const Stream& s) const noexcept {
  PartitionId best = kNone;
  for (PartitionId p = times_.first[s.spec.module]; p < parts_.size(); ++p)
    if (parts_[p].up && serves(p, s) && (best == kNone || parts_[p].load < parts_[best].load)) best = p;
  return best;
}

// From partitions that are down, and from those that cannot carry theirs where another one can.
void Coordinator::move() noexcept {
  for (const std::uint32_t id : roster_.in)
    if (Stream& s = streams_[id]; s.partition != kNone && !parts_[s.partition].up) s.partition = kNone;
  add_up();
  for (const std::uint32_t id : roster_.in) {
    Stream& s = streams_[id];
    if (s.partition != kNone && parts_[s.partition].load <= 1) continue;
    const PartitionId target = least_loaded(s);
    if (target == kNone) continue;
    if (s.partition != kNone) {
      if (parts_[target].load + s.setting.load >= parts_[s.partition].load) continue;  // it would be no better there
      parts_[s.partition].load -= s.setting.load;
      --parts_[s.partition].streams;
    }
    s.partition = target;
    parts_[target].load += s.setting.load;
    ++parts_[target].streams;
  }
}

// What starts before now + overlap stays as it is; what has ended is forgotten.
void Coordinator::keep_near(TimeNs now) noexcept {
  const TimeNs until = now + settings_.overlap_ns;
  kept_.batches.clear();
  kept_.members.clear();
  for (const PlannedBatch& b : planned_.batches) {
    if (b.start_ns >= until) continue;
    PlannedBatch kept = b;
    kept.first = static_cast<std::uint32_t>(kept_.members.size());
    kept.count = 0;
    std::uint32_t before = kNone;
    for (const std::uint32_t id : members(b)) {
      if (!admitted(id)) continue;
      Stream& s = planned(id);
      if (id == before) s.probed_ns = std::max(s.probed_ns, b.start_ns);
      before = id;
      kept_.members.push_back(id);
      ++kept.count;
      if (streams_[id].lead != kNone) streams_[id].sent_ns = std::max(streams_[id].sent_ns, b.start_ns);
      if (b.start_ns > s.sent_ns) {
        s.sent_ns = b.start_ns;
        s.serves_ns = b.end_ns + s.spec.pace.path_ns;
      }
    }
    if (kept.count > 0 && b.end_ns > now) kept_.batches.push_back(kept);
  }
}

bool Coordinator::plan(TimeNs now, double slack, PartitionId only) noexcept {
  const auto here = [&](std::uint32_t id) { return only == kNone || streams_[id].partition == only; };
  for (const std::uint32_t id : roster_.in)
    if (here(id)) budget(id);
  for (std::uint32_t m = 0; settings_.common_batch && m < times_.common_batch.size(); ++m)
    for (PartitionId p = 0; p < parts_.size(); ++p)
      if ((only == kNone || p == only) && !times_.batch_ns[m][p].empty()) choose_batch(m, p);
  for (const std::uint32_t id : roster_.in)
    if (here(id)) choose(now, id);
  if (only == kNone) {
    move();
    planned_.batches.assign(kept_.batches.begin(), kept_.batches.end());
    planned_.members.assign(kept_.members.begin(), kept_.members.end());
  } else {
    add_up();
  }
  const std::size_t from = planned_.batches.size();
  for (PartitionId p = 0; p < parts_.size(); ++p)
    if ((only == kNone || p == only) && parts_[p].up) pack(now, p);
  return verify(now, slack, only, from);
}

void Coordinator::pack(TimeNs now, PartitionId p) noexcept {
  const TimeNs near = now + settings_.overlap_ns;
  TimeNs free = near;
  for (const PlannedBatch& b : kept_.batches)
    if (b.partition == p)
      free =
          std::max(free, b.end_ns + static_cast<TimeNs>(parts_[p].grace * static_cast<double>(b.end_ns - b.start_ns)));
  packer_.candidates.clear();
  for (const std::uint32_t id : roster_.in) {
    const Stream& s = streams_[id];
    if (s.partition != p) continue;
    // A lead has as many probes as its tasks would.
    const bool probe = settings_.probe_ns > 0 && now - s.probed_ns >= settings_.probe_ns / std::max(1u, s.tasks);
    const TimeNs interval = asks(s) ? latest_ns(s) : interval_ns(s);
    // One that asks might never come to a slot of its own, and so to no probe.
    const TimeNs first = probe ? std::min(interval, interval_ns(s)) : interval;
    const TimeNs next = s.sent_ns == INT64_MIN ? near : std::max(near, s.sent_ns + first);
    packer_.candidates.push_back({.stream = id,
                                  .next_ns = next,
                                  .interval_ns = interval,
                                  .batch = s.setting.batch,
                                  .probe = probe,
                                  .apart_ns = s.spec.pace.period_ns,
                                  .module = s.spec.module,
                                  .early = !asks(s)});
  }
  // While somebody waits partitions are never idle, and what is idle otherwise is shared out evenly.
  const auto comes_here = [&](std::uint32_t id) { return !rivals_.compete || serves(p, streams_[id]); };
  // What is idle is left to streams that ask, where there are any.
  const auto asks_here = [&](std::uint32_t id) { return streams_[id].partition == p && asks(streams_[id]); };
  const bool full = std::any_of(roster_.waiting.begin(), roster_.waiting.end(), comes_here) &&
                    std::none_of(roster_.in.begin(), roster_.in.end(), asks_here);
  const PackingRules rules{.partition = p,
                           .from_ns = free,
                           .until_ns = now + settings_.horizon_ns,
                           .grace = parts_[p].grace,
                           .reach = full ? std::numeric_limits<double>::infinity() : settings_.reach,
                           .even = full && settings_.even};
  packer_.packing.pack(packer_.candidates, times_.batch_ns, rules, planned_.batches, planned_.members);
}

// The mean drop that each stream's estimate gives the plan, from now + overlap until its last planned answer serves.
bool Coordinator::verify(TimeNs now, double slack, PartitionId only, std::size_t from) noexcept {
  const auto here = [&](const Stream& s) { return s.partition != kNone && (only == kNone || s.partition == only); };
  const auto frame_of = [](const Stream& s, TimeNs at) {
    return static_cast<double>(at - s.phase_ns) / static_cast<double>(s.spec.pace.period_ns);
  };
  const auto first_frame = [&](const Stream& s, TimeNs at) {
    return static_cast<std::int64_t>(std::ceil(frame_of(s, at) - 1e-6));
  };
  const auto newest_frame = [&](const Stream& s, TimeNs at) {
    return static_cast<std::int64_t>(std::floor(frame_of(s, at) + 1e-6));
  };
  for (const std::uint32_t id : roster_.in) {
    const Stream& s = streams_[id];
    if (!here(s)) continue;
    Tally& t = packer_.tallies[id] = {};
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
  for (std::size_t i = from; i < planned_.batches.size(); ++i) {
    const PlannedBatch& b = planned_.batches[i];
    for (const std::uint32_t id : members(b)) {
      const Stream& s = streams_[id];
      Tally& t = packer_.tallies[id];
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
  for (PartitionId p = 0; p < parts_.size(); ++p)
    if (only == kNone || p == only) parts_[p].holds = true;
  bool all = true;
  for (const std::uint32_t id : roster_.in) {
    Stream& s = streams_[id];
    if (!here(s)) continue;
    const Tally& t = packer_.tallies[id];
    s.over = 0;
    bool good = true;
    if (asks(s)) {  // it sees to itself, as long as there is room for what it asks for
      good = parts_[s.partition].load <= (slack > 0 ? 1 : 1 - settings_.admit_room);
      s.planned_drop = std::min(s.sla_drop, slope_of(s) * std::max(0.0, s.max - s.reference));
    } else if (t.frames == 0) {
      // Fewer than two frames within the horizon: right where its interval is nearly as long.
      good = 2 * interval_ns(s) >= settings_.horizon_ns;
    } else {
      // Where less than an interval was counted, that was the end of one, where most is lost: the rest of it is as its
      // setting has it.
      const double rest = std::max(0.0, s.setting.interval - t.frames);
      const double x = (t.x + rest * s.max) / (t.frames + rest);
      s.planned_drop = std::max(0.0, slope_of(s) * (x - s.reference));
      const double margin = margin_of(s);
      const double here_slack = search_.trial.user == kNone || search_.trial.user == s.user ? slack : kHold;
      const double into = here_slack > 0 ? std::min(margin, std::max(here_slack, kHoldShare * margin)) : 0;
      const double over = s.planned_drop - s.sla_drop * (1 - margin + into);
      good = over <= 0;
      if (!good && !s.spendthrift) s.over = over / slope_of(s);
    }
    good = good || s.spendthrift;
    if (!search_.trial.on)
      s.broken = !good;
    else if (search_.trial.user != kNone && search_.trial.user != s.user)
      good = good || s.broken || search_.trial.alone || user_of(s).load > user_of(s).weight * parts_[s.partition].level;
    if (good) continue;
    all = parts_[s.partition].holds = false;
  }
  return all;
}

}  // namespace leat::core::streams
