// Where work goes. Early binding: a task's lane on arrival. Late binding needs none of it: servers stand in order of
// preference. Later stages of a route: whichever partition is free first.
#include <algorithm>

#include "engine/core/policy/path.h"
#include "engine/core/policy/queued.h"

namespace leat::core {

LaneId Queued::place(ModuleId module, const Task& t) noexcept {
  const LaneId first = view_.lanes.first(module), end = first + view_.lanes.count(module);
  const auto run = [&](LaneId l) {
    const Server& s = server(lane(l).first_server);
    return s.run_ns[std::min(t.items, room(s))];
  };
  // ELSA eq. 1: T_wait = run time of what is queued there + what remains of the batches it holds.
  const auto wait = [&](LaneId l) {
    const Partition& p = view_.machine.partition(server(lane(l).first_server).partition);
    return lanes_[l].queued_run_ns + std::max<TimeNs>(0, p.free_ns - view_.now);
  };
  LaneId best = kNone;
  TimeNs least = kNever;
  switch (policy_.place) {
    case Place::elsa: {
      const TimeNs left = t.deadline_ns - view_.now;
      for (LaneId l = first; l < end; ++l) {  // ascending size
        if (!up(l) || t.items > room(server(lane(l).first_server))) continue;
        const TimeNs w = wait(l), d = run(l);
        // Algorithm 2, step A with eq. 2: slack = SLA - alpha (T_wait + beta T_new) > 0; step B: the fastest.
        const TimeNs need = policy_.alpha_permille * (w + policy_.beta_permille * d / 1000) / 1000;
        if (left > need) return l;
        if (w + d < least) {
          least = w + d;
          best = l;
        }
      }
      break;
    }
    case Place::tc:
      return next_by_window(module, t);
    case Place::tc_rates:
      return next_by_rate(module, t);
    case Place::rr:
      return next_in_turn(module, t);
    case Place::random: {
      std::uint32_t n = 0;
      for (LaneId l = first; l < end; ++l) {
        if (up(l) && next_random(random_) % ++n == 0) best = l;
      }
      break;
    }
    case Place::fifs:
    case Place::least_wait:
    case Place::reservation:
      for (LaneId l = first; l < end; ++l) {
        if (!up(l)) continue;
        const TimeNs w = wait(l);
        if (w < least) {
          least = w;
          best = l;
        }
      }
      break;
  }
  return best != kNone ? best : first;  // nobody is up: it waits there until somebody is, or expires
}

// The same place, or, where it cannot hold so many items, one that can: the next that is up, or else any.
LaneId Queued::holding(LaneId chosen, const Task& t) const noexcept {
  const LaneId first = view_.lanes.first(t.module), count = view_.lanes.count(t.module);
  LaneId any = chosen;
  for (LaneId i = 0; i < count; ++i) {
    const LaneId l = first + (chosen - first + i) % count;
    if (room(server(lane(l).first_server)) < t.items) continue;
    if (i == 0 || up(l)) return l;
    any = l;
  }
  return any;
}

Path choose_path(const View& view, RouteId id, PartitionId first, std::uint32_t items, TimeNs start) noexcept {
  const RouteSpec& route = view.route(id);
  const std::size_t size = std::min(items, route.batch) - 1;
  Path path;
  TimeNs end = 0;
  std::size_t k = 0;
  const auto free_ns = [&](PartitionId p) {
    TimeNs at = view.machine.partition(p).free_ns;
    for (std::size_t i = 0; i < k; ++i) at = path.partition[i] == p ? path.end_ns[i] : at;
    return at;
  };
  for (; k < route.stages.size(); ++k) {
    const StageSpec& stage = route.stages[k];
    PartitionId best = k == 0 ? first : kNone;
    for (std::size_t i = 0; k > 0 && i < stage.pool.size(); ++i) {
      const PartitionId p = stage.pool[i];
      if (view.machine.partition(p).up && (best == kNone || free_ns(p) < free_ns(best))) best = p;
    }
    if (best == kNone) best = stage.pool.front();  // none is up: the batch comes back when it gets there
    const TimeNs moved =
        k == 0 ? 0 : view.model.link_ns(route.stages[k - 1].transfer_bytes * items, path.partition[k - 1], best);
    path.partition[k] = best;
    end = std::max(k == 0 ? start : end + moved, free_ns(best)) + stage.latency.p50_ns[size];
    path.end_ns[k] = end;
  }
  return path;
}

}  // namespace leat::core
