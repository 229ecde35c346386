#include "engine/core/load/paying_batches.h"

#include <algorithm>

#include "engine/core/load/far_off.h"
#include "planner/paying_batch.h"

namespace leat::core {
namespace {

constexpr std::int64_t kForgets = 16;       // a size's scale, in so many of its batches
constexpr std::uint32_t kEnough = 4;        // batches, for a size to be believed
constexpr std::uint32_t kStale = 2048;      // of the route's batches without one of that size
constexpr std::uint32_t kReconsidered = 8;  // after so many batches of the route

}  // namespace

PayingBatches::PayingBatches(const Model& model) : model_(model), routes_(model.topology().routes.size()) {
  for (RouteId r = 0; r < routes_.size(); ++r) {
    const RouteSpec& spec = model.topology().routes[r];
    Route& route = routes_[r];
    route.fixed =
        spec.stages.size() > 1 || spec.batch == 1 || model.topology().modules[spec.module].units_per_request() > 1;
    route.sizes.resize(spec.batch + 1);
    route.ns.assign(model.run_ns(r), model.run_ns(r) + spec.batch + 1);
    paying_.push_back(1);
    (void)settle(r);
  }
}

bool PayingBatches::known(const Route& route, const Size& size) noexcept {
  return size.seen >= kEnough && route.batches - size.last < kStale;
}

// What a batch of b is believed to take of its profiled time: by the nearest size that is known, of two as near the
// smaller.
std::int64_t PayingBatches::scale_of(const Route& route, std::uint32_t b) noexcept {
  const auto most = static_cast<std::uint32_t>(route.sizes.size() - 1);
  for (std::uint32_t d = 0; d < most; ++d) {
    if (d < b && known(route, route.sizes[b - d])) return route.sizes[b - d].scale_ppm;
    if (b + d <= most && known(route, route.sizes[b + d])) return std::min(route.sizes[b + d].scale_ppm, kProfilePpm);
  }
  return kProfilePpm;
}

// Larger batches do not take less.
void PayingBatches::believe(RouteId r) noexcept {
  Route& route = routes_[r];
  route.ns[0] = 0;
  for (std::uint32_t b = 1; b < route.ns.size(); ++b)
    route.ns[b] = std::max(route.ns[b - 1], model_.run_ns(r)[b] * scale_of(route, b) / kProfilePpm);
}

bool PayingBatches::settle(RouteId r) noexcept {
  const RouteSpec& spec = model_.topology().routes[r];
  const std::uint32_t first = model_.topology().modules[spec.module].units_per_request() > 1 ? spec.batch : 1;
  const std::uint32_t before = paying_[r];
  paying_[r] = planner::paying_batch(first, spec.batch, [&ns = routes_[r].ns](std::uint32_t b) { return ns[b]; });
  return paying_[r] != before;
}

bool PayingBatches::ran(RouteId r, std::uint32_t items, TimeNs planned, TimeNs took) noexcept {
  Route& route = routes_[r];
  if (route.fixed || items >= route.sizes.size()) return false;
  Size& size = route.sizes[items];
  ++route.batches;
  if (size.seen > 0 && route.batches - size.last >= kStale) size = {};
  size.last = route.batches;
  size.seen = std::min<std::uint32_t>(size.seen + 1, kForgets);
  size.scale_ppm += (believed_ppm(planned, took) - size.scale_ppm) / size.seen;
  if (route.batches % kReconsidered != 0) return false;
  believe(r);
  return settle(r);
}

void PayingBatches::forget(ModuleId module) noexcept {
  for (const RouteId r : model_.topology().modules[module].routes) {
    for (Size& size : routes_[r].sizes) size = {};
    believe(r);
    (void)settle(r);
  }
}

// All that a partition does for so many requests, in batches as large as they give.
TimeNs PayingBatches::takes_ns(const ApplicationSpec& application, PartitionId p,
                               std::uint32_t requests) const noexcept {
  const Topology& topology = model_.topology();
  TimeNs sum = 0;
  for (const ModuleId m : application.modules) {
    for (const RouteId r : topology.modules[m].routes) {
      const RouteSpec& route = topology.routes[r];
      if (std::ranges::find(route.stages.front().pool, p) == route.stages.front().pool.end()) continue;
      const std::vector<TimeNs>& ns = routes_[r].ns;
      const auto items = static_cast<std::uint32_t>(requests * topology.modules[m].units_per_request() + .5);
      const std::uint32_t full = items / route.batch, rest = items % route.batch;
      sum += full * (ns[route.batch] + planner::kHandOverNs) + (rest > 0 ? ns[rest] + planner::kHandOverNs : 0);
      break;
    }
  }
  return sum;
}

std::uint32_t PayingBatches::requests(std::uint32_t application, PartitionId p) const noexcept {
  const ApplicationSpec& app = model_.topology().applications[application];
  std::uint32_t best = 1, most = 1;
  for (const RouteId r : model_.topology().modules[app.modules.front()].routes)
    most = std::max(most, model_.topology().routes[r].batch);
  for (std::uint32_t n = 2; n <= most; ++n)
    if (planner::pays(n, takes_ns(app, p, n), best, takes_ns(app, p, best))) best = n;
  return best;
}

}  // namespace leat::core
