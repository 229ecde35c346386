// What a first-stage batch may grow to, and the room that is left for it: decided from the plan and the module's
// latency scale.
#include <algorithm>
#include <cmath>

#include "engine/core/policy/reservations/reservation_scheduler.h"

namespace leat::core {
namespace {

constexpr std::int64_t kLostLittle = 100'000;  // ppm: up to here bursts are taken as they come
constexpr std::int64_t kLostMuch = 150'000;    // from here on a waiting batch is left all its room to grow
constexpr double kCarried = 0.98e-9;           // part of a route's planned rate that is to be carried, per ns
constexpr std::int64_t kLostAfter = 20'000;    // from here on of a later module, those before it leave it all it needs

}  // namespace

// A first-stage batch of n pays where the route's rate gains at least 2 % and the queue it can carry then, slack x
// (rate - load), at least doubles: a larger batch also eats the slack that absorbs bursts.
void ReservationScheduler::plan_growth(ModuleId module) noexcept {
  planned_scale_[module] = view_.load.module(module).scale_permille;
  together_[module] = 0;
  for (RouteId id : view_.topology().modules[module].routes) {
    const RouteSpec& route = view_.route(id);
    const StageSpec& entry = route.stages.front();
    std::fill(may_grow_[id].begin(), may_grow_[id].end(), 0);
    double cap = 1e300;  // items per ns that links and later stages can take, each at its best batch
    TimeNs tail = 0, move = 0;
    for (std::size_t k = 1; k < route.stages.size(); ++k) {
      const StageSpec& stage = route.stages[k];
      double best = 0;
      for (std::uint32_t n = 1; fits(stage, n); ++n) {
        best = std::max(best, static_cast<double>(stage.pool.size()) * n / static_cast<double>(duration(route, k, n)));
      }
      cap = std::min(cap, best);
      const TimeNs x = stage_link_ns(route, k, 1);
      move = k == 1 ? x : move;
      tail += x + duration(route, k, 1);
      if (x > 0) {
        for (const auto* pool : {&route.stages[k - 1].pool, &stage.pool}) {
          std::uint32_t hosts = 0;
          for (std::size_t i = 0; i < pool->size(); ++i) {
            const auto same = [&](PartitionId p) {
              return view_.topology().partitions[p].host == view_.topology().partitions[(*pool)[i]].host;
            };
            hosts += std::none_of(pool->begin(), pool->begin() + static_cast<std::ptrdiff_t>(i), same) ? 1 : 0;
          }
          cap = std::min(cap, hosts / static_cast<double>(x));
        }
      }
    }
    const double load = rate_of(route) * kCarried;
    const TimeNs slo = view_.topology().applications[view_.topology().modules[route.module].application].slo_ns;
    const auto rate = [&](std::uint32_t n) {
      return std::min(cap, static_cast<double>(entry.pool.size()) * n / static_cast<double>(duration(route, 0, n)));
    };
    const auto slack = [&](std::uint32_t n) {
      return static_cast<double>(slo - duration(route, 0, n) - tail - (n - 1) * move);
    };
    double max = 0;
    for (std::uint32_t n = 1; fits(entry, n) && n <= kGrowItems; ++n) {
      if (slack(n) > 0) max = std::max(max, rate(n));
    }
    std::uint32_t current = 1;
    for (std::uint32_t n = 2; fits(entry, n) && n <= kGrowItems; ++n) {
      const double carried = std::max(0.0, slack(current) * (rate(current) - load));
      const bool overloaded = max < load;  // no batch carries it: then the most that can be had
      if (rate(n) < 1.02 * rate(current) || slack(n) <= 0 ||
          (!overloaded && slack(n) * (rate(n) - load) <= 2 * carried))
        continue;
      for (std::uint32_t k = current + 1; k <= n; ++k) may_grow_[id][k] = 1;
      current = n;
    }
    growth_ns_[id] = 0;
    for (std::size_t k = 0; k < route.stages.size(); ++k) {
      const auto falls_short = [&](std::uint32_t n) {
        return static_cast<double>(route.stages[k].pool.size()) * n / static_cast<double>(duration(route, k, n)) < load;
      };
      std::uint32_t n = 1;
      while (falls_short(n) && fits(route.stages[k], n + 1) && (k > 0 ? gains(route.stages[k], n, 1) : n < current))
        ++n;
      growth_ns_[id] += duration(route, k, n) - duration(route, k, 1);
    }
    plan_whole(id);
    if (whole_[id].items > 1) together_[module] = 1;
  }
}

// The smallest batch, up to the plan's, with which every stage carries the route's rate: where the SLO does not leave
// the time of a run beside it. With more slack tasks may queue, and batches grow as they wait; with less a queue is too
// late to grow. Waiting for the others costs no more than it saves, and no more than the plan's rate makes likely.
void ReservationScheduler::plan_whole(RouteId id) noexcept {
  const RouteSpec& route = view_.route(id);
  Whole& whole = whole_[id] = {};
  const auto short_of = [&](std::size_t k, std::uint32_t n) {
    return static_cast<double>(route.stages[k].pool.size()) * n / static_cast<double>(duration(route, k, n)) <
           rate_of(route) * kCarried;
  };
  std::uint32_t n = 1;
  const std::uint32_t max = std::min(route.batch, kGrowItems);  // each member is a change of the links' timelines
  for (std::size_t k = 0; k < route.stages.size(); ++k)
    while (n < max && short_of(k, n)) ++n;
  for (std::size_t k = 0; k < route.stages.size(); ++k)
    if (max < route.batch && short_of(k, n)) return;  // it needs more
  TimeNs saved = 0, longest = 0;
  TimeNs slack = view_.topology().applications[view_.topology().modules[route.module].application].slo_ns;
  for (std::size_t k = 0; k < route.stages.size(); ++k) {
    saved = std::max(saved, n * duration(route, k, 1) - duration(route, k, n));
    longest = std::max(longest, duration(route, k, n));
    slack -= duration(route, k, n) + (k > 0 ? stage_link_ns(route, k, n) : 0);
  }
  if (n > 1 && slack < longest)
    whole = {.items = n, .wait_ns = std::min(saved, static_cast<TimeNs>(2e9 * (n - 1) / rate_of(route)))};
}

// What later modules need beside their least time for their batches to grow, and for one batch to be ahead; as far as
// they lose tasks.
TimeNs ReservationScheduler::room_after(ModuleId module) const noexcept {
  TimeNs max = 0;
  for (ModuleId next : view_.topology().modules[module].after) {
    TimeNs room = 0;
    for (RouteId r : view_.topology().modules[next].routes)
      room = std::max(room, 2 * growth_ns_[r] + view_.model.module(next).min_ns);
    max = std::max(max, room * std::min(lost_ppm_[next], kLostAfter) / kLostAfter + room_after(next));
  }
  return max;
}

// Who waits, waits in a batch that others will join. A queue filled up to the last moment is one of batches that cannot
// grow any more, and stays so: while a module loses tasks, those it admits must be in time even when all batches on
// their way have grown.
TimeNs ReservationScheduler::room_to_grow(RouteId route) const noexcept {
  const std::int64_t lost = lost_ppm_[view_.route(route).module];
  return growth_ns_[route] * std::clamp<std::int64_t>(lost - kLostLittle, 0, kLostMuch - kLostLittle) /
         (kLostMuch - kLostLittle);
}

}  // namespace leat::core
