// The tick: who stays, who goes and who comes, partition by partition (coordinator.h).
#include <algorithm>
#include <utility>

#include "engine/core/streams/coordinator/coordinator.h"

namespace leat::core::streams {
namespace {

constexpr int kTrims = 2;
constexpr double kTrimKept = 0.9;  // from tick to tick
constexpr TimeNs kSteady = 10'000'000'000, kLongestWait = 60'000'000'000;

}  // namespace

bool Coordinator::may_try(std::size_t streams) const noexcept { return search_.tried + streams <= search_.limit; }

// What a partition's plan would be, behind the one that there is.
bool Coordinator::try_out(TimeNs now, double slack, PartitionId p) noexcept {
  const std::size_t batches = planned_.batches.size(), members = planned_.members.size();
  const bool holds = plan(now, slack, p);
  planned_.batches.resize(batches);
  planned_.members.resize(members);
  parts_[p].changed = true;
  search_.tried += parts_[p].streams;
  return holds;
}

// The partitions that trials have left different.
void Coordinator::settle(TimeNs now) noexcept {
  const auto kept = planned_.batches.begin() + static_cast<std::ptrdiff_t>(kept_.batches.size());
  planned_.batches.erase(
      std::remove_if(kept, planned_.batches.end(), [&](const PlannedBatch& b) { return parts_[b.partition].changed; }),
      planned_.batches.end());
  for (PartitionId p = 0; p < parts_.size(); ++p)
    if (std::exchange(parts_[p].changed, false)) static_cast<void>(plan(now, kHold, p));
}

std::size_t Coordinator::whole(std::span<const std::uint32_t> list, std::size_t end) const noexcept {
  const auto parted = [&] { return same_group(streams_[list[end - 1]], streams_[list[end]]); };
  while (end > 0 && end < list.size() && parted()) ++end;
  return end;
}

// A partition whose plan breaks an SLA. Where it has room, a stream over its SLA is asked for more frames.
void Coordinator::mend(TimeNs now, PartitionId p) noexcept {
  for (int round = 0; round < kTrims && parts_[p].load < 1 && may_try(parts_[p].streams); ++round) {
    for (const std::uint32_t id : roster_.in)
      if (streams_[id].partition == p) streams_[id].trim += 1.5 * streams_[id].over;
    if (try_out(now, kHold, p)) return;
  }
  evict(now, p);
}

void Coordinator::evict(TimeNs now, PartitionId p) noexcept {
  search_.order.clear();
  for (const std::uint32_t id : roster_.in) {
    if (streams_[id].partition != p) continue;
    double load = 0;
    each_lead(id, [&](std::uint32_t lead) {
      const Stream& s = streams_[lead];
      load += s.standing == Standing::admitted ? s.setting.load : 0;
    });
    streams_[id].cost = load / streams_[id].spec.weight;
    search_.order.push_back(id);
  }
  by_cost();
  // The fewest of the costliest without which the plan holds: by doubling, then halving.
  const auto without = [&](std::size_t n) {
    n = whole(search_.order, n);
    for (std::size_t i = 0; i < search_.order.size(); ++i) streams_[search_.order[i]].partition = i < n ? kNone : p;
    const bool holds = try_out(now, kHold, p);
    for (const std::uint32_t id : search_.order) streams_[id].partition = p;
    return holds;
  };
  // Never more than a quarter at once, and no fewer than whose load there is no room for.
  std::size_t max = (search_.order.size() + 3) / 4;
  if (rivals_.compete) {
    const std::size_t rich = std::min(max, blame(p, true));
    max = rich > 0 && may_try(search_.order.size()) && without(rich) ? rich : std::min(max, blame(p, false));
  }
  std::size_t low = 0, high = 1;
  double over = parts_[p].load - 1;
  for (std::size_t n = 0; n < max && over > 0; ++n) {
    over -= streams_[search_.order[n]].setting.load;
    low = n;
    high = n + 1;
  }
  const std::size_t min = low;
  bool enough = high >= max;
  while (!enough && high < max && may_try(search_.order.size())) {
    if ((enough = without(high))) break;
    low = high;
    high = std::min(max, high * 2);
  }
  // Where there was no time to find out, as many as are known not to be too many; the next tick goes on.
  if (!enough) high = std::max<std::size_t>(1, rivals_.compete ? min : low);
  while (high > low + 1 && may_try(search_.order.size())) {
    const std::size_t middle = (low + high) / 2;
    (without(middle) ? high : low) = middle;
  }
  high = std::min(high, search_.order.size());
  for (std::size_t n = 0; n < high; ++n) {
    Stream& s = streams_[search_.order[n]];
    user_of(s).evicted_ns = s.refused_ns = now;
    s.wait_ns = now - s.since_ns < kSteady ? std::min(2 * s.wait_ns, kLongestWait) : settings_.settle_ns;
  }
  send_away(high);
  parts_[p].evicted_ns = now;
}

// The first of search_.order, with all of their groups.
void Coordinator::send_away(std::size_t first) noexcept {
  for (std::size_t n = 0; n < first; ++n) {
    each_lead(search_.order[n], [&](std::uint32_t lead) {
      if (streams_[lead].standing != Standing::admitted) return;
      ++streams_[lead].evictions;
      parts_[streams_[lead].partition].changed = true;
      leave(lead, Standing::waiting);
    });
  }
}

bool Coordinator::settling(TimeNs now, const Stream& s) const noexcept {
  return rivals_.compete && (now - user_of(s).evicted_ns < settings_.settle_ns ||
                             now - s.refused_ns < std::max(s.wait_ns, settings_.settle_ns));
}

// The first of those that wait, as many at once as went well before, where there is most room; twice as many each time,
// until a partition does not hold them; and so on until none takes any more.
void Coordinator::admit(TimeNs now) noexcept {
  line_up();
  for (Partition& each : parts_)
    each.full = !each.up || (!rivals_.compete && now - each.evicted_ns < settings_.settle_ns) ||
                each.load > 1 - settings_.admit_room;
  const auto roomiest = [&](const Stream& s) {
    PartitionId best = kNone;
    for (PartitionId p = times_.first[s.spec.module]; p < parts_.size(); ++p)
      if (!parts_[p].full && serves(p, s) && (best == kNone || parts_[p].load < parts_[best].load)) best = p;
    return best;
  };
  for (std::size_t at = 0; at < roster_.waiting.size();) {
    const PartitionId p = roomiest(streams_[roster_.waiting[at]]);
    const std::size_t one = whole(roster_.waiting, at + 1);
    const std::uint32_t user = streams_[roster_.waiting[at]].user;
    if (p == kNone || users_[user].refused || settling(now, streams_[roster_.waiting[at]])) {
      at = one;
      continue;
    }
    std::size_t end = one;
    while (end < roster_.waiting.size() && end - at < parts_[p].admitting) {
      const std::size_t next = whole(roster_.waiting, end + 1);
      const auto here = [&](std::uint32_t id) { return serves(p, streams_[id]) && !settling(now, streams_[id]); };
      if (!std::all_of(roster_.waiting.begin() + static_cast<std::ptrdiff_t>(end),
                       roster_.waiting.begin() + static_cast<std::ptrdiff_t>(next), here))
        break;
      end = next;
    }
    if (search_.tried > 0 && !may_try(parts_[p].streams + end - at)) break;
    for (Partition& each : parts_) each.tried = false;
    const std::size_t before = roster_.in.size();
    bool placed = true;
    for (std::size_t n = at; n < end; ++n) {
      Stream& s = streams_[roster_.waiting[n]];
      // Of a group of several models, what p does not serve goes where there is room for it.
      const PartitionId there = serves(p, s) ? p : roomiest(s);
      if (!(placed = there != kNone)) break;
      s.partition = there;
      s.standing = Standing::admitted;
      s.sent_ns = INT64_MIN;
      s.since_ns = s.heard_ns = now;
      parts_[there].tried = true;
      roster_.in.push_back(roster_.waiting[n]);
    }
    PartitionId failed = kNone;
    search_.trial = {.on = rivals_.compete, .user = rivals_.compete && end == one ? user : kNone};
    if (rivals_.compete) add_up_users();
    for (PartitionId q = 0; q < parts_.size() && placed && failed == kNone; ++q)
      if (parts_[q].tried && !(try_out(now, kAdmit, q) && parts_[q].load <= 1 - settings_.admit_room)) failed = q;
    search_.trial = {};
    if (placed && failed == kNone) {
      std::erase_if(roster_.waiting, [&](std::uint32_t id) { return streams_[id].standing == Standing::admitted; });
      parts_[p].admitting = 2 * (end - at);
      continue;
    }
    for (std::size_t n = before; n < roster_.in.size(); ++n) {
      streams_[roster_.in[n]].standing = Standing::waiting;
      streams_[roster_.in[n]].partition = kNone;
    }
    roster_.in.resize(before);
    parts_[p].admitting = 1;
    if (!placed)
      at = one;  // a group whose other models have no room keeps nobody else waiting
    else if (end == one)
      (rivals_.compete ? users_[user].refused : parts_[failed].full) = true;
  }
}

void Coordinator::tick(TimeNs now) noexcept {
  next_tick_ns_ = now + settings_.tick_ns;
  search_.tried = 0;
  for (std::uint32_t m = 0; m < times_.usual.size(); ++m)
    for (PartitionId p = 0; p < parts_.size(); ++p)
      for (std::size_t b = 0; b < times_.batch_ns[m][p].size(); ++b)
        times_.batch_ns[m][p][b] =
            static_cast<TimeNs>(times_.usual[m][p].times * static_cast<double>(times_.profile_ns[m][p][b]));
  for (const auto* list : {&roster_.in, &roster_.waiting})
    for (const std::uint32_t id : *list)
      if (streams_[id].tasks > 0) sum_up(id);
  for (const auto* list : {&roster_.in, &roster_.waiting})
    for (const std::uint32_t id : *list)
      if (streams_[id].tasks > 0) share_sla(id);
  for (std::size_t n = roster_.in.size(); n-- > 0;)
    if (now - std::max(streams_[roster_.in[n]].heard_ns, streams_[roster_.in[n]].since_ns) > settings_.silent_ns)
      leave(roster_.in[n], Standing::silent);
  keep_near(now);
  if (std::none_of(parts_.begin(), parts_.end(), [](const Partition& each) { return each.up; })) {
    planned_.batches.clear();  // nothing can be planned, and nobody is to blame
    planned_.members.clear();
    return;
  }
  weigh();
  for (const std::uint32_t id : roster_.in) streams_[id].trim *= kTrimKept;
  const std::size_t all =
      rivals_.compete ? std::max(kMinTried, kTriedBeside - std::min(kTriedBeside, roster_.in.size())) : kTriedAtOnce;
  const std::size_t tries = rivals_.compete ? all - kKept : all;
  search_.limit = tries;
  if (!plan(now, kHold)) {
    auto left = static_cast<std::size_t>(std::ranges::count_if(parts_, [](const Partition& p) { return !p.holds; }));
    for (PartitionId p = 0; p < parts_.size(); ++p) {
      if (parts_[p].holds) continue;
      if (rivals_.compete)
        search_.limit =
            search_.tried + (tries - std::min(search_.tried, tries)) / left--;  // one cannot spend another's
      mend(now, p);
    }
  }
  search_.limit = tries;
  if (!roster_.waiting.empty()) admit(now);
  search_.limit = all;
  if (rivals_.compete) claim(now);
  settle(now);
  hand_out();
}

}  // namespace leat::core::streams
