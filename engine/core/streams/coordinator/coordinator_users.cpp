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
  for (const auto* list : {&roster_.in, &roster_.waiting})
    for (const std::uint32_t id : *list) user_of(streams_[id]).here = true;
  rivals_.compete = std::ranges::count_if(users_, &User::here) > 1;
  double weights = 0;
  for (const User& u : users_) weights += u.here ? u.weight : 0;
  rivals_.equal =
      static_cast<double>(std::ranges::count_if(parts_, &Partition::up)) * (1 - settings_.admit_room) / weights;
  for (Partition& each : parts_) each.level = std::numeric_limits<double>::infinity();
  if (!rivals_.compete) return;
  for (const std::uint32_t id : roster_.waiting) {
    Stream& s = streams_[id];
    budget(id);
    const PartitionId p = times_.first[s.spec.module];
    s.wants = std::min(s.spec.max_share, setting_of(s, p, times_.common_batch[s.spec.module][p]).load);
  }
  for (const std::uint32_t id : roster_.in) {
    Stream& s = streams_[id];
    s.usual += (s.setting.load - s.usual) * (s.usual == 0 ? 1 : kUsual);
  }
  add_up_users();
  for (PartitionId p = 0; p < parts_.size(); ++p)
    if (parts_[p].up) parts_[p].level = level(p);
}

void Coordinator::add_up_users() noexcept {
  for (User& u : users_) u.load = 0;
  for (const std::uint32_t id : roster_.in)
    if (const Stream& s = streams_[id]; s.partition != kNone) user_of(s).load += s.setting.load;
}

double Coordinator::level(PartitionId p) noexcept {
  rivals_.portions.assign(users_.size(), {});
  for (std::size_t u = 0; u < rivals_.portions.size(); ++u) {
    rivals_.portions[u].weight = users_[static_cast<std::uint32_t>(u)].weight;
    rivals_.portions[u].elsewhere = users_[static_cast<std::uint32_t>(u)].load;
  }
  for (const std::uint32_t id : roster_.in) {
    const Stream& s = streams_[id];
    if (s.partition != p) continue;
    rivals_.portions[s.user].elsewhere -= s.setting.load;
    rivals_.portions[s.user].wants += s.wants;
  }
  for (const std::uint32_t id : roster_.waiting)
    if (const Stream& s = streams_[id]; serves(p, s)) rivals_.portions[s.user].wants += s.wants;
  std::erase_if(rivals_.portions, [](const Portion& each) { return each.wants <= 0; });
  return fair_level(rivals_.portions, 1 - settings_.admit_room);
}

void Coordinator::by_cost() noexcept {
  std::sort(search_.order.begin(), search_.order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const Stream &x = streams_[a], &y = streams_[b];
    return x.cost != y.cost ? x.cost > y.cost : x.turn > y.turn;
  });
}

// Those that wait: by weight and then by turn; of several users whoever would have the least for his weight first.
void Coordinator::line_up() noexcept {
  const auto by_turn = [this](std::uint32_t a, std::uint32_t b) {
    const Stream &x = streams_[a], &y = streams_[b];
    if (x.user != y.user && rivals_.compete) return x.user < y.user;
    return x.spec.weight != y.spec.weight ? x.spec.weight > y.spec.weight : x.turn < y.turn;
  };
  std::sort(roster_.waiting.begin(), roster_.waiting.end(), by_turn);
  if (!rivals_.compete) return;
  add_up_users();
  for (std::size_t at = 0; at < roster_.waiting.size();) {
    User& u = user_of(streams_[roster_.waiting[at]]);
    const std::size_t end = whole(roster_.waiting, at + 1);
    for (std::size_t n = at; n < end; ++n) u.load += streams_[roster_.waiting[n]].wants;
    for (; at < end; ++at) streams_[roster_.waiting[at]].mark = u.load / u.weight;
  }
  std::sort(roster_.waiting.begin(), roster_.waiting.end(), [&](std::uint32_t a, std::uint32_t b) {
    return streams_[a].mark != streams_[b].mark ? streams_[a].mark < streams_[b].mark : by_turn(a, b);
  });
}

// Of each of search_.order: what its user has for his weight once all before it have gone.
void Coordinator::mark_down() noexcept {
  add_up_users();
  for (std::size_t at = 0; at < search_.order.size();) {
    User& u = user_of(streams_[search_.order[at]]);
    const double mark = u.load / u.weight;
    for (const std::size_t end = whole(search_.order, at + 1); at < end; ++at) {
      streams_[search_.order[at]].mark = mark;
      u.load -= streams_[search_.order[at]].setting.load;
    }
  }
}

// Orders a partition's streams anew, those first that may go. What users have beyond their share, then, `rich`, what
// they have beyond equal ones; or else what takes far more than it did, then of users whose own SLAs are broken. How
// many may go.
std::size_t Coordinator::blame(PartitionId p, bool rich) noexcept {
  for (User& u : users_) u.hurt = false;
  for (const std::uint32_t id : search_.order)
    if (streams_[id].broken) user_of(streams_[id]).hurt = true;
  by_cost();
  mark_down();
  const auto rank = [&](std::uint32_t id) {
    const Stream& s = streams_[id];
    if (s.mark > parts_[p].level) return 0;
    if (rich ? s.mark > rivals_.equal : s.usual > 0 && s.setting.load > kSurge * s.usual) return 1;
    return user_of(s).hurt ? 2 : 3;
  };
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    const Stream &x = streams_[a], &y = streams_[b];
    if (rank(a) != rank(b)) return rank(a) < rank(b);
    return x.cost != y.cost ? x.cost > y.cost : x.turn > y.turn;
  };
  std::sort(search_.order.begin(), search_.order.end(), before);
  const int last = rich ? 1 : 2;
  return static_cast<std::size_t>(
      std::ranges::count_if(search_.order, [&](std::uint32_t id) { return rank(id) <= last; }));
}

// ---- claims ----

// Users take turns. Each claims room for its first streams that wait, on the least loaded partition where it may.
void Coordinator::claim(TimeNs now) noexcept {
  for (int n = 0; n < kClaims; ++n) {
    std::size_t at = roster_.waiting.size();
    for (std::size_t i = 0; i < roster_.waiting.size(); i = whole(roster_.waiting, i + 1)) {
      const Stream& s = streams_[roster_.waiting[i]];
      if (user_of(s).asked || settling(now, s)) continue;
      if (at == roster_.waiting.size() || user_of(s).turn < user_of(streams_[roster_.waiting[at]]).turn) at = i;
    }
    if (at == roster_.waiting.size()) return;
    const std::uint32_t user = streams_[roster_.waiting[at]].user;
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
  rivals_.claimants.clear();
  const std::uint32_t user = streams_[roster_.waiting[at]].user;
  double wants = 0;
  while (at < roster_.waiting.size() && rivals_.claimants.size() < max) {
    const std::size_t end = whole(roster_.waiting, at + 1);
    const auto fits = [&](std::uint32_t id) {
      return streams_[id].user == user && serves(p, streams_[id]) && !settling(now, streams_[id]);
    };
    const bool all = std::all_of(roster_.waiting.begin() + static_cast<std::ptrdiff_t>(at),
                                 roster_.waiting.begin() + static_cast<std::ptrdiff_t>(end), fits);
    for (; at < end; ++at) {
      if (!all) continue;
      rivals_.claimants.push_back(roster_.waiting[at]);
      wants += streams_[roster_.waiting[at]].wants;
    }
  }
  return wants;
}

// Who is to go from p for as much of a user, in search_.order: of others who would still have as much for their weight
// as he then, or who are beyond their share while he is not. False: nothing is to be had, or too little.
bool Coordinator::make_room(PartitionId p, std::uint32_t user, double wants) noexcept {
  add_up();
  add_up_users();
  const User& u = users_[user];
  const double after = (u.load + wants) / u.weight;
  const bool within = after <= parts_[p].level;
  const double beyond = after <= rivals_.equal ? std::min(rivals_.equal, parts_[p].level) : parts_[p].level;
  const double min = within ? parts_[p].load + wants - (1 - settings_.admit_room) : wants;
  const double need = std::max(min, u.pressure * wants);
  const double exchanged = std::max(min, std::min(u.pressure, 1.0) * wants);
  search_.order.clear();
  search_.victims = 0;
  for (const std::uint32_t id : roster_.in) {
    Stream& s = streams_[id];
    if (s.partition != p || s.user == user) continue;
    s.cost = s.setting.load / s.spec.weight;
    search_.order.push_back(id);
  }
  by_cost();
  mark_down();
  std::sort(search_.order.begin(), search_.order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const Stream &x = streams_[a], &y = streams_[b];
    return x.mark != y.mark ? x.mark > y.mark : x.turn > y.turn;
  });
  double made = 0;
  for (std::size_t at = 0; at < search_.order.size() && made < need;) {
    const Stream& s = streams_[search_.order[at]];
    const std::size_t end = whole(search_.order, at + 1);
    double load = 0;
    for (std::size_t n = at; n < end; ++n) load += streams_[search_.order[n]].setting.load;
    const bool goes = (made < exchanged && s.mark - load / user_of(s).weight >= after) || (within && s.mark > beyond);
    for (; at < end; ++at)
      if (goes) search_.order[search_.victims++] = search_.order[at];
    if (goes) made += load;
  }
  search_.exhausted = made < need;
  return made >= min;
}

bool Coordinator::try_claim(TimeNs now, PartitionId p) noexcept {
  const double room = std::max(parts_[p].load, 1 - settings_.admit_room);
  for (std::size_t n = 0; n < search_.victims; ++n) streams_[search_.order[n]].partition = kNone;
  for (const std::uint32_t id : rivals_.claimants) {
    Stream& s = streams_[id];
    s.partition = p;
    s.standing = Standing::admitted;
    s.sent_ns = INT64_MIN;
    s.since_ns = s.heard_ns = now;
    roster_.in.push_back(id);
  }
  add_up_users();  // with what they want
  const User& u = user_of(streams_[rivals_.claimants.front()]);
  search_.trial = {.on = true,
                   .user = streams_[rivals_.claimants.front()].user,
                   .alone = u.load <= kNeedy * u.weight * rivals_.equal};
  const bool held = try_out(now, kAdmit, p) && parts_[p].load <= room;
  search_.trial = {};
  for (std::size_t n = 0; n < search_.victims; ++n) streams_[search_.order[n]].partition = p;
  if (held) {
    std::erase_if(roster_.waiting, [&](std::uint32_t id) { return streams_[id].standing == Standing::admitted; });
    for (std::size_t n = 0; n < search_.victims; ++n) streams_[search_.order[n]].refused_ns = now;
    send_away(search_.victims);
    return true;
  }
  roster_.in.resize(roster_.in.size() - rivals_.claimants.size());
  for (const std::uint32_t id : rivals_.claimants) {
    streams_[id].standing = Standing::waiting;
    streams_[id].partition = kNone;
  }
  return false;
}

// False: nothing was tried there. What does not hold is tried with fewer streams, then at others' greater cost.
bool Coordinator::claim_on(TimeNs now, std::size_t at, PartitionId p) noexcept {
  const std::uint32_t user = streams_[roster_.waiting[at]].user;
  User& u = users_[user];
  for (int trials = 0; trials < kTrials; ++trials) {
    double wants = claimants(now, at, p, u.claims);
    if (rivals_.claimants.empty()) return trials > 0;
    bool room = make_room(p, user, wants);
    if (!room && rivals_.claimants.size() > 1) {
      wants = claimants(now, at, p, u.claims = 1);
      room = make_room(p, user, wants);
    }
    if (!room) return trials > 0;
    if (search_.tried > search_.limit - kKept && !may_try(parts_[p].streams + rivals_.claimants.size())) return true;
    users_.last(user);
    if (try_claim(now, p)) {
      u.claims = 2 * rivals_.claimants.size();
      u.pressure = 0;
      return true;
    }
    if (u.claims == 1) u.pressure = std::max(1.0, 2 * u.pressure);
    u.claims = 1;
    if (!search_.exhausted) continue;
    u.pressure = 0;
    for (const std::uint32_t id : rivals_.claimants) streams_[id].refused_ns = now;
    return true;
  }
  return true;
}

}  // namespace leat::core::streams
