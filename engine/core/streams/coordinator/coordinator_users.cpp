// Users who compete (coordinator.h): how much each may have, who is to blame for a plan that does not hold, and room
// for whoever has less than others at their cost. With one user none of this happens.
#include <algorithm>
#include <limits>

#include "engine/core/streams/coordinator/coordinator.h"

namespace leat::core::streams {
namespace {

constexpr double kNeedy =
    0.5;  // of his share: who has less gets it, even if that is more than the plan can hold of others
constexpr double kSurge = 1.5;   // times its usual load, from which on a stream is to blame
constexpr double kUsual = 0.02;  // that a tick adds to what is usual
constexpr int kClaims = 6;       // that are looked at in a tick
constexpr int kTrials = 3;       // of one

}  // namespace

// Who is here, what those that wait would have, and each partition's level.
void Coordinator::weigh() noexcept {
  for (User& u : users_) u.here = u.refused = u.asked = false, u.programs = 0;
  for (const auto* list : {&in_, &waiting_})
    for (const std::uint32_t id : *list) user_of(streams_[id]).here = true;
  compete_ = std::ranges::count_if(users_, &User::here) > 1;
  double weights = 0;
  for (const User& u : users_) weights += u.here ? u.weight : 0;
  equal_ = static_cast<double>(std::ranges::count_if(parts_, &Partition::up)) * (1 - settings_.admit_room) / weights;
  for (Partition& each : parts_) each.level = std::numeric_limits<double>::infinity();
  if (!compete_) return;
  for (const std::uint32_t id : waiting_) {
    Stream& s = streams_[id];
    budget(id);
    const PartitionId p = first_[s.spec.module];
    s.wants = std::min(s.spec.max_share, setting_of(s, p, batch_[s.spec.module][p]).load);
  }
  for (const std::uint32_t id : in_) {
    Stream& s = streams_[id];
    s.usual += (s.setting.load - s.usual) * (s.usual == 0 ? 1 : kUsual);
  }
  add_up_users();
  for (PartitionId p = 0; p < parts_.size(); ++p)
    if (parts_[p].up) parts_[p].level = level(p);
}

void Coordinator::add_up_users() noexcept {
  for (User& u : users_) u.load = 0;
  for (const std::uint32_t id : in_)
    if (const Stream& s = streams_[id]; s.partition != kNone) user_of(s).load += s.setting.load;
}

double Coordinator::level(PartitionId p) noexcept {
  portions_.assign(users_.size(), {});
  for (std::size_t u = 0; u < portions_.size(); ++u) {
    portions_[u].weight = users_[static_cast<std::uint32_t>(u)].weight;
    portions_[u].elsewhere = users_[static_cast<std::uint32_t>(u)].load;
  }
  for (const std::uint32_t id : in_) {
    const Stream& s = streams_[id];
    if (s.partition != p) continue;
    portions_[s.user].elsewhere -= s.setting.load;
    portions_[s.user].wants += s.wants;
  }
  for (const std::uint32_t id : waiting_)
    if (const Stream& s = streams_[id]; serves(p, s)) portions_[s.user].wants += s.wants;
  std::erase_if(portions_, [](const Portion& each) { return each.wants <= 0; });
  return fair_level(portions_, 1 - settings_.admit_room);
}

void Coordinator::by_cost() noexcept {
  std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
    const Stream &x = streams_[a], &y = streams_[b];
    return x.cost != y.cost ? x.cost > y.cost : x.turn > y.turn;
  });
}

// Those that wait: by weight and then by turn; of several users whoever would have the least for his weight first.
void Coordinator::line_up() noexcept {
  const auto by_turn = [this](std::uint32_t a, std::uint32_t b) {
    const Stream &x = streams_[a], &y = streams_[b];
    if (x.user != y.user && compete_) return x.user < y.user;
    return x.spec.weight != y.spec.weight ? x.spec.weight > y.spec.weight : x.turn < y.turn;
  };
  std::sort(waiting_.begin(), waiting_.end(), by_turn);
  if (!compete_) return;
  add_up_users();
  for (std::size_t at = 0; at < waiting_.size();) {
    User& u = user_of(streams_[waiting_[at]]);
    const std::size_t end = whole(waiting_, at + 1);
    for (std::size_t n = at; n < end; ++n) u.load += streams_[waiting_[n]].wants;
    for (; at < end; ++at) streams_[waiting_[at]].mark = u.load / u.weight;
  }
  std::sort(waiting_.begin(), waiting_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return streams_[a].mark != streams_[b].mark ? streams_[a].mark < streams_[b].mark : by_turn(a, b);
  });
}

// Of each of order_: what its user has for his weight once all before it have gone.
void Coordinator::mark_down() noexcept {
  add_up_users();
  for (std::size_t at = 0; at < order_.size();) {
    User& u = user_of(streams_[order_[at]]);
    const double mark = u.load / u.weight;
    for (const std::size_t end = whole(order_, at + 1); at < end; ++at) {
      streams_[order_[at]].mark = mark;
      u.load -= streams_[order_[at]].setting.load;
    }
  }
}

// Orders a partition's streams anew, those first that may go. What users have beyond their share, then, `rich`, what
// they have beyond equal ones; or else what takes far more than it did, then of users whose own SLAs are broken. How
// many may go.
std::size_t Coordinator::blame(PartitionId p, bool rich) noexcept {
  for (User& u : users_) u.hurt = false;
  for (const std::uint32_t id : order_)
    if (streams_[id].broken) user_of(streams_[id]).hurt = true;
  by_cost();
  mark_down();
  const auto rank = [&](std::uint32_t id) {
    const Stream& s = streams_[id];
    if (s.mark > parts_[p].level) return 0;
    if (rich ? s.mark > equal_ : s.usual > 0 && s.setting.load > kSurge * s.usual) return 1;
    return user_of(s).hurt ? 2 : 3;
  };
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    const Stream &x = streams_[a], &y = streams_[b];
    if (rank(a) != rank(b)) return rank(a) < rank(b);
    return x.cost != y.cost ? x.cost > y.cost : x.turn > y.turn;
  };
  std::sort(order_.begin(), order_.end(), before);
  const int last = rich ? 1 : 2;
  return static_cast<std::size_t>(std::ranges::count_if(order_, [&](std::uint32_t id) { return rank(id) <= last; }));
}

// ---- claims ----

// Users take turns. Each claims room for its first streams that wait, on the least loaded partition where it may.
void Coordinator::claim(TimeNs now) noexcept {
  for (int n = 0; n < kClaims; ++n) {
    std::size_t at = waiting_.size();
    for (std::size_t i = 0; i < waiting_.size(); i = whole(waiting_, i + 1)) {
      const Stream& s = streams_[waiting_[i]];
      if (user_of(s).asked || settling(now, s)) continue;
      if (at == waiting_.size() || user_of(s).turn < user_of(streams_[waiting_[at]]).turn) at = i;
    }
    if (at == waiting_.size()) return;
    const std::uint32_t user = streams_[waiting_[at]].user;
    users_[user].asked = true;
    add_up();
    for (Partition& each : parts_) each.tried = !each.up;
    for (;;) {
      PartitionId p = kNone;
      for (PartitionId q = 0; q < parts_.size(); ++q)
        if (!parts_[q].tried && (p == kNone || parts_[q].load < parts_[p].load)) p = q;
      if (p == kNone || claim_on(now, at, p)) break;
      parts_[p].tried = true;
    }
  }
}

// What its user's streams from `at` on that p serves want, at most so many of them but one whole; 0: there is none.
double Coordinator::claimants(TimeNs now, std::size_t at, PartitionId p, std::size_t max) noexcept {
  claimants_.clear();
  const std::uint32_t user = streams_[waiting_[at]].user;
  double wants = 0;
  while (at < waiting_.size() && claimants_.size() < max) {
    const std::size_t end = whole(waiting_, at + 1);
    const auto fits = [&](std::uint32_t id) {
      return streams_[id].user == user && serves(p, streams_[id]) && !settling(now, streams_[id]);
    };
    const bool all = std::all_of(waiting_.begin() + static_cast<std::ptrdiff_t>(at),
                                 waiting_.begin() + static_cast<std::ptrdiff_t>(end), fits);
    for (; at < end; ++at) {
      if (!all) continue;
      claimants_.push_back(waiting_[at]);
      wants += streams_[waiting_[at]].wants;
    }
  }
  return wants;
}

// Who is to go from p for as much of a user, in order_: of others who would still have as much for their weight as he
// then, or who are beyond their share while he is not. False: nothing is to be had, or too little.
bool Coordinator::make_room(PartitionId p, std::uint32_t user, double wants) noexcept {
  add_up();
  add_up_users();
  const User& u = users_[user];
  const double after = (u.load + wants) / u.weight;
  const bool within = after <= parts_[p].level;
  const double beyond = after <= equal_ ? std::min(equal_, parts_[p].level) : parts_[p].level;
  const double min = within ? parts_[p].load + wants - (1 - settings_.admit_room) : wants;
  const double need = std::max(min, u.pressure * wants);
  const double exchanged = std::max(min, std::min(u.pressure, 1.0) * wants);
  order_.clear();
  victims_ = 0;
  for (const std::uint32_t id : in_) {
    Stream& s = streams_[id];
    if (s.partition != p || s.user == user) continue;
    s.cost = s.setting.load / s.spec.weight;
    order_.push_back(id);
  }
  by_cost();
  mark_down();
  std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
    const Stream &x = streams_[a], &y = streams_[b];
    return x.mark != y.mark ? x.mark > y.mark : x.turn > y.turn;
  });
  double made = 0;
  for (std::size_t at = 0; at < order_.size() && made < need;) {
    const Stream& s = streams_[order_[at]];
    const std::size_t end = whole(order_, at + 1);
    double load = 0;
    for (std::size_t n = at; n < end; ++n) load += streams_[order_[n]].setting.load;
    const bool goes = (made < exchanged && s.mark - load / user_of(s).weight >= after) || (within && s.mark > beyond);
    for (; at < end; ++at)
      if (goes) order_[victims_++] = order_[at];
    if (goes) made += load;
  }
  exhausted_ = made < need;
  return made >= min;
}

bool Coordinator::try_claim(TimeNs now, PartitionId p) noexcept {
  const double room = std::max(parts_[p].load, 1 - settings_.admit_room);
  for (std::size_t n = 0; n < victims_; ++n) streams_[order_[n]].partition = kNone;
  for (const std::uint32_t id : claimants_) {
    Stream& s = streams_[id];
    s.partition = p;
    s.standing = Standing::admitted;
    s.sent_ns = INT64_MIN;
    s.since_ns = s.heard_ns = now;
    in_.push_back(id);
  }
  add_up_users();  // with what they want
  const User& u = user_of(streams_[claimants_.front()]);
  trial_ = {.on = true, .user = streams_[claimants_.front()].user, .alone = u.load <= kNeedy * u.weight * equal_};
  const bool held = try_out(now, kAdmit, p) && parts_[p].load <= room;
  trial_ = {};
  for (std::size_t n = 0; n < victims_; ++n) streams_[order_[n]].partition = p;
  if (held) {
    std::erase_if(waiting_, [&](std::uint32_t id) { return streams_[id].standing == Standing::admitted; });
    for (std::size_t n = 0; n < victims_; ++n) streams_[order_[n]].refused_ns = now;
    send_away(victims_);
    return true;
  }
  in_.resize(in_.size() - claimants_.size());
  for (const std::uint32_t id : claimants_) {
    streams_[id].standing = Standing::waiting;
    streams_[id].partition = kNone;
  }
  return false;
}

// False: nothing was tried there. What does not hold is tried with fewer streams, then at others' greater cost.
bool Coordinator::claim_on(TimeNs now, std::size_t at, PartitionId p) noexcept {
  const std::uint32_t user = streams_[waiting_[at]].user;
  User& u = users_[user];
  for (int trials = 0; trials < kTrials; ++trials) {
    double wants = claimants(now, at, p, u.claims);
    if (claimants_.empty()) return trials > 0;
    bool room = make_room(p, user, wants);
    if (!room && claimants_.size() > 1) {
      wants = claimants(now, at, p, u.claims = 1);
      room = make_room(p, user, wants);
    }
    if (!room) return trials > 0;
    if (tried_ > tries_ - kKept && !may_try(parts_[p].streams + claimants_.size())) return true;
    users_.last(user);
    if (try_claim(now, p)) {
      u.claims = 2 * claimants_.size();
      u.pressure = 0;
      return true;
    }
    if (u.claims == 1) u.pressure = std::max(1.0, 2 * u.pressure);
    u.claims = 1;
    if (!exhausted_) continue;
    u.pressure = 0;
    for (const std::uint32_t id : claimants_) streams_[id].refused_ns = now;
    return true;
  }
  return true;
}

}  // namespace leat::core::streams
