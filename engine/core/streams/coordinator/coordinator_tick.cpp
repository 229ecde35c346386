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

bool Coordinator::may_try(std::size_t streams) const noexcept { return tried_ + streams <= tries_; }

// What a partition's plan would be, behind the one that there is.
bool Coordinator::try_out(TimeNs now, double slack, PartitionId p) noexcept {
  const std::size_t batches = batches_.size(), members = members_.size();
  const bool holds = plan(now, slack, p);
  batches_.resize(batches);
  members_.resize(members);
  parts_[p].changed = true;
  tried_ += parts_[p].streams;
  return holds;
}

// The partitions that trials have left different.
void Coordinator::settle(TimeNs now) noexcept {
  const auto kept = batches_.begin() + static_cast<std::ptrdiff_t>(kept_.size());
  batches_.erase(
      std::remove_if(kept, batches_.end(), [&](const PlannedBatch& b) { return parts_[b.partition].changed; }),
      batches_.end());
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
    for (const std::uint32_t id : in_)
      if (streams_[id].partition == p) streams_[id].trim += 1.5 * streams_[id].over;
    if (try_out(now, kHold, p)) return;
  }
  evict(now, p);
}

void Coordinator::evict(TimeNs now, PartitionId p) noexcept {
  order_.clear();
  for (const std::uint32_t id : in_) {
    if (streams_[id].partition != p) continue;
    double load = 0;
    each_lead(id, [&](std::uint32_t lead) {
      const Stream& s = streams_[lead];
      load += s.standing == Standing::admitted ? s.setting.load : 0;
    });
    streams_[id].cost = load / streams_[id].spec.weight;
    order_.push_back(id);
  }
  by_cost();
  // The fewest of the costliest without which the plan holds: by doubling, then halving.
  const auto without = [&](std::size_t n) {
    n = whole(order_, n);
    for (std::size_t i = 0; i < order_.size(); ++i) streams_[order_[i]].partition = i < n ? kNone : p;
    const bool holds = try_out(now, kHold, p);
    for (const std::uint32_t id : order_) streams_[id].partition = p;
    return holds;
  };
  // Never more than a quarter at once, and no fewer than whose load there is no room for.
  std::size_t max = (order_.size() + 3) / 4;
  if (compete_) {
    const std::size_t rich = std::min(max, blame(p, true));
    max = rich > 0 && may_try(order_.size()) && without(rich) ? rich : std::min(max, blame(p, false));
  }
  std::size_t low = 0, high = 1;
  double over = parts_[p].load - 1;
  for (std::size_t n = 0; n < max && over > 0; ++n) {
    over -= streams_[order_[n]].setting.load;
    low = n;
    high = n + 1;
  }
  const std::size_t min = low;
  bool enough = high >= max;
  while (!enough && high < max && may_try(order_.size())) {
    if ((enough = without(high))) break;
    low = high;
    high = std::min(max, high * 2);
  }
  // Where there was no time to find out, as many as are known not to be too many; the next tick goes on.
  if (!enough) high = std::max<std::size_t>(1, compete_ ? min : low);
  while (high > low + 1 && may_try(order_.size())) {
    const std::size_t middle = (low + high) / 2;
    (without(middle) ? high : low) = middle;
  }
  high = std::min(high, order_.size());
  for (std::size_t n = 0; n < high; ++n) {
    Stream& s = streams_[order_[n]];
    user_of(s).evicted_ns = s.refused_ns = now;
    s.wait_ns = now - s.since_ns < kSteady ? std::min(2 * s.wait_ns, kLongestWait) : settings_.settle_ns;
  }
  send_away(high);
  parts_[p].evicted_ns = now;
}

// The first of order_, with all of their groups.
void Coordinator::send_away(std::size_t first) noexcept {
  for (std::size_t n = 0; n < first; ++n) {
    each_lead(order_[n], [&](std::uint32_t lead) {
      if (streams_[lead].standing != Standing::admitted) return;
      ++streams_[lead].evictions;
      parts_[streams_[lead].partition].changed = true;
      leave(lead, Standing::waiting);
    });
  }
}

bool Coordinator::settling(TimeNs now, const Stream& s) const noexcept {
  return compete_ && (now - user_of(s).evicted_ns < settings_.settle_ns ||
                      now - s.refused_ns < std::max(s.wait_ns, settings_.settle_ns));
}

// The first of those that wait, as many at once as went well before, where there is most room; twice as many each time,
// until a partition does not hold them; and so on until none takes any more.
void Coordinator::admit(TimeNs now) noexcept {
  line_up();
  for (Partition& each : parts_)
    each.full =
        !each.up || (!compete_ && now - each.evicted_ns < settings_.settle_ns) || each.load > 1 - settings_.admit_room;
  const auto roomiest = [&](const Stream& s) {
    PartitionId best = kNone;
    for (PartitionId p = first_[s.spec.module]; p < parts_.size(); ++p)
      if (!parts_[p].full && serves(p, s) && (best == kNone || parts_[p].load < parts_[best].load)) best = p;
    return best;
  };
  for (std::size_t at = 0; at < waiting_.size();) {
    const PartitionId p = roomiest(streams_[waiting_[at]]);
    const std::size_t one = whole(waiting_, at + 1);
    const std::uint32_t user = streams_[waiting_[at]].user;
    if (p == kNone || users_[user].refused || settling(now, streams_[waiting_[at]])) {
      at = one;
      continue;
    }
    std::size_t end = one;
    while (end < waiting_.size() && end - at < parts_[p].admitting) {
      const std::size_t next = whole(waiting_, end + 1);
      const auto here = [&](std::uint32_t id) { return serves(p, streams_[id]) && !settling(now, streams_[id]); };
      if (!std::all_of(waiting_.begin() + static_cast<std::ptrdiff_t>(end),
                       waiting_.begin() + static_cast<std::ptrdiff_t>(next), here))
        break;
      end = next;
    }
    if (tried_ > 0 && !may_try(parts_[p].streams + end - at)) break;
    for (Partition& each : parts_) each.tried = false;
    const std::size_t before = in_.size();
    bool placed = true;
    for (std::size_t n = at; n < end; ++n) {
      Stream& s = streams_[waiting_[n]];
      // Of a group of several models, what p does not serve goes where there is room for it.
      const PartitionId there = serves(p, s) ? p : roomiest(s);
      if (!(placed = there != kNone)) break;
      s.partition = there;
      s.standing = Standing::admitted;
      s.sent_ns = INT64_MIN;
      s.since_ns = s.heard_ns = now;
      parts_[there].tried = true;
      in_.push_back(waiting_[n]);
    }
    PartitionId failed = kNone;
    trial_ = {.on = compete_, .user = compete_ && end == one ? user : kNone};
    if (compete_) add_up_users();
    for (PartitionId q = 0; q < parts_.size() && placed && failed == kNone; ++q)
      if (parts_[q].tried && !(try_out(now, kAdmit, q) && parts_[q].load <= 1 - settings_.admit_room)) failed = q;
    trial_ = {};
    if (placed && failed == kNone) {
      std::erase_if(waiting_, [&](std::uint32_t id) { return streams_[id].standing == Standing::admitted; });
      parts_[p].admitting = 2 * (end - at);
      continue;
    }
    for (std::size_t n = before; n < in_.size(); ++n) {
      streams_[in_[n]].standing = Standing::waiting;
      streams_[in_[n]].partition = kNone;
    }
    in_.resize(before);
    parts_[p].admitting = 1;
    if (!placed)
      at = one;  // a group whose other models have no room keeps nobody else waiting
    else if (end == one)
      (compete_ ? users_[user].refused : parts_[failed].full) = true;
  }
}

void Coordinator::tick(TimeNs now) noexcept {
  next_tick_ns_ = now + settings_.tick_ns;
  tried_ = 0;
  for (std::uint32_t m = 0; m < usual_.size(); ++m)
    for (PartitionId p = 0; p < parts_.size(); ++p)
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
  if (std::none_of(parts_.begin(), parts_.end(), [](const Partition& each) { return each.up; })) {
    batches_.clear();  // nothing can be planned, and nobody is to blame
    members_.clear();
    return;
  }
  weigh();
  for (const std::uint32_t id : in_) streams_[id].trim *= kTrimKept;
  const std::size_t all =
      compete_ ? std::max(kMinTried, kTriedBeside - std::min(kTriedBeside, in_.size())) : kTriedAtOnce;
  const std::size_t tries = compete_ ? all - kKept : all;
  tries_ = tries;
  if (!plan(now, kHold)) {
    auto left = static_cast<std::size_t>(std::ranges::count_if(parts_, [](const Partition& p) { return !p.holds; }));
    for (PartitionId p = 0; p < parts_.size(); ++p) {
      if (parts_[p].holds) continue;
      if (compete_) tries_ = tried_ + (tries - std::min(tried_, tries)) / left--;  // one cannot spend another's
      mend(now, p);
    }
  }
  tries_ = tries;
  if (!waiting_.empty()) admit(now);
  tries_ = all;
  if (compete_) claim(now);
  settle(now);
  hand_out();
}

}  // namespace leat::core::streams
