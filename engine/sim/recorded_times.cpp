#include "engine/sim/recorded_times.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace leat::sim {
namespace {

using core::TimeNs;

// Runs about the same time that one is drawn of: so few that a stall of the host falls where nothing came either, so
// many that a kind of batch which is rare has more than its one worst.
constexpr std::size_t kNear = 128;

TimeNs planned_ns(const std::vector<TimeNs>& table, std::uint32_t units) {
  return table[std::min<std::size_t>(units, table.size()) - 1];
}

}  // namespace

RecordedTimes::RecordedTimes(const record::History& h) {
  std::vector<TimeNs> ended;  // by partition: the last batch there
  for (const record::History::Run& r : h.runs) {
    if (r.partition >= ended.size()) ended.resize(r.partition + 1, 0);
    const TimeNs since = std::max(r.sent_ns, ended[r.partition]);
    ended[r.partition] = r.end_ns;
    if (r.lost || r.units == 0) continue;
    const record::RecordedPlan& plan = *h.plans[r.plan].plan;
    const core::RouteSpec& route = plan.topology.routes[r.route];
    const std::vector<TimeNs>& table = route.stages[r.stage].latency.p50_ns;
    const TimeNs took = std::max<TimeNs>(1, r.end_ns - since);
    const std::string module = module_name(plan, r.module);
    auto& classes = stages_[{.module = module,
                             .stages = static_cast<std::uint32_t>(route.stages.size()),
                             .stage = r.stage,
                             .went_on = r.went_on,
                             .goes_on = r.goes_on}]
                        .classes;
    auto own = std::ranges::find(classes, table, &Class::table);
    if (own == classes.end()) own = classes.insert(own, {.table = table, .sizes = {}});
    own->sizes[r.units].push_back({.at_ns = r.end_ns - took, .took_ns = took});
    ratios_[module].push_back(static_cast<double>(took) / static_cast<double>(planned_ns(table, r.units)));
  }
  for (auto& [key, times] : stages_)
    for (Class& c : times.classes)
      for (auto& [units, runs] : c.sizes) std::ranges::sort(runs, {}, &Run::at_ns);
}

RecordedTimes::Drawn RecordedTimes::draw(const StageKey& stage, const core::LatencyTable& table, std::uint32_t units,
                                         TimeNs at_ns, std::uint64_t draw) const {
  const TimeNs planned = planned_ns(table.p50_ns, units);
  auto found = stages_.find(stage);
  if (found == stages_.end() && (stage.went_on || stage.goes_on)) {
    StageKey alone = stage;
    alone.went_on = alone.goes_on = false;
    found = stages_.find(alone);
  }
  if (found == stages_.end()) {  // cut elsewhere: as the whole model did, beside its plan
    const auto ratios = ratios_.find(stage.module);
    if (ratios == ratios_.end()) return {.ns = planned};
    return {.ns = static_cast<TimeNs>(static_cast<double>(planned) * ratios->second[draw % ratios->second.size()])};
  }
  // The same class, else the one that takes most nearly as long.
  const auto distance = [&](const Class& c) { return std::abs(planned_ns(c.table, units) - planned); };
  const auto& classes = found->second.classes;
  auto of = std::ranges::find(classes, table.p50_ns, &Class::table);
  const bool same_class = of != classes.end();
  if (!same_class) of = std::ranges::min_element(classes, {}, distance);
  // The same size, else the nearest, the larger of two.
  auto size = of->sizes.lower_bound(units);
  if (size == of->sizes.end() ||
      (size->first != units && size != of->sizes.begin() && units - std::prev(size)->first < size->first - units))
    size = std::prev(size);
  const std::vector<Run>& runs = size->second;
  const auto later = std::ranges::lower_bound(runs, at_ns, {}, &Run::at_ns) - runs.begin();
  const auto count = std::min(runs.size(), kNear);
  const auto first = std::clamp<std::ptrdiff_t>(later - static_cast<std::ptrdiff_t>(count / 2), 0,
                                                static_cast<std::ptrdiff_t>(runs.size() - count));
  const TimeNs took = runs[static_cast<std::size_t>(first) + draw % count].took_ns;
  if (same_class && size->first == units) return {.ns = took, .seen = true};
  const auto was = static_cast<double>(planned_ns(of->table, size->first));
  return {.ns =
              std::max<TimeNs>(1, static_cast<TimeNs>(static_cast<double>(took) * static_cast<double>(planned) / was))};
}

}  // namespace leat::sim
