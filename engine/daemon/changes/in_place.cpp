#include "engine/daemon/changes/in_place.h"

#include <algorithm>
#include <utility>

#include "engine/daemon/changes/arrangement.h"
#include "engine/daemon/deployment/plan/memory.h"
#include "engine/daemon/deployment/plan/planner_files.h"
#include "planner/shared/in_place.h"

namespace leat::daemon {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

std::uint32_t place_of(const Deployment& d, const std::string& partition) {
  const auto at = std::ranges::find(d.partitions, partition, [](const PartitionConfig& p) { return p.partition.name; });
  return at == d.partitions.end() ? kNone : static_cast<std::uint32_t>(at - d.partitions.begin());
}

bool serves(const Deployment& d, std::uint32_t partition) {
  return std::ranges::any_of(d.plan.routes, [&](const planner::Route& r) {
    return std::ranges::any_of(
        r.stages, [&](const planner::Stage& s) { return std::ranges::find(s.pool, partition) != s.pool.end(); });
  });
}

// Routes of `from` on those of its partitions that are `kept`, added to the plan, which has `from`'s applications.
void add_routes(planner::PlanFile& to, const planner::PlanFile& from, const std::vector<bool>& kept) {
  std::vector<std::uint32_t> place(from.plan.partitions.size(), kNone);
  for (planner::Route route : from.plan.routes) {
    bool whole = true;
    for (planner::Stage& stage : route.stages) {
      const std::size_t all = stage.pool.size();
      std::erase_if(stage.pool, [&](std::uint32_t p) { return !kept[p]; });
      whole = whole && !stage.pool.empty();
      route.rate_rps *= static_cast<double>(stage.pool.size()) / static_cast<double>(all);
    }
    if (!whole) continue;
    for (planner::Stage& stage : route.stages)
      for (std::uint32_t& p : stage.pool) {
        if (place[p] == kNone) {
          place[p] = static_cast<std::uint32_t>(to.plan.partitions.size());
          to.plan.partitions.push_back(from.plan.partitions[p]);
        }
        p = place[p];
      }
    to.plan.routes.push_back(std::move(route));
  }
}

planner::PlanFile begun_from(const planner::PlanFile& of) {
  planner::PlanFile out;
  out.applications = of.applications;
  out.plan.hosts = of.plan.hosts;
  out.plan.budget_ns = of.plan.budget_ns;
  out.plan.certificate = of.plan.certificate;
  return out;
}

// [partition of `wanted`]: its place in `running`, where it gets a new worker; and whether that has no room beside.
struct NewWorkers {
  std::vector<std::uint32_t> at;
  std::vector<bool> waits;
};
NewWorkers new_workers(const Config& running_config, const Deployment& running, const Config& config,
                       const Deployment& wanted) {
  const std::size_t count = wanted.partitions.size();
  NewWorkers out{std::vector<std::uint32_t>(count, kNone), std::vector<bool>(count, false)};
  for (std::uint32_t p = 0; p < count; ++p) {
    const std::uint32_t at = out.at[p] = place_of(running, wanted.partitions[p].partition.name);
    if (at == kNone || same_worker(running.setups[at], wanted.setups[p])) continue;
    const std::int64_t room = wanted.partitions[p].partition.memory_bytes;
    out.waits[p] = room > 0 && bytes_of(running_config, running.setups[at]) + bytes_of(config, wanted.setups[p]) > room;
  }
  return out;
}

constexpr const char* kNoRoom = ": memory has no room for the new models beside the old ones, and ";

std::string names_of(const Config& config, const Residents& of, const std::vector<std::uint32_t>& modules) {
  std::string out;
  for (const std::uint32_t m : modules) out += (out.empty() ? "'" : ", '") + name_of(config, of.modules[m]) + "'";
  return out;
}

}  // namespace

Status room_beside(const Config& running_config, const Deployment& running, const Config& config,
                   const Deployment& wanted) {
  const auto [at, waits] = new_workers(running_config, running, config, wanted);
  const auto first = static_cast<std::size_t>(std::ranges::find(waits, true) - waits.begin());
  if (first == waits.size()) return Done{};
  const planner::Partition& partition = wanted.partitions[first].partition;
  const auto mib = [](std::int64_t bytes) { return std::to_string((bytes + (1 << 20) - 1) >> 20); };
  return Error{config.file + ": partition '" + partition.name +
               "' has memory_mib = " + std::to_string(partition.memory_bytes >> 20) +
               ", and until the new plan is in force its models take " + mib(bytes_of(config, wanted.setups[first])) +
               " beside " + mib(bytes_of(running_config, running.setups[at[first]])) +
               " of those that serve; raise memory_mib, or " +
               "write into the configuration what is to be served and restart leatd"};
}

Result<std::optional<InPlaceStep>> next_in_place(const Config& config, const Deployment& running,
                                                 const Deployment& wanted) {
  const Residents now = residents_of(config, running), then = residents_of(config, wanted);
  const std::size_t count = wanted.partitions.size();
  const auto [at, waits] = new_workers(config, running, config, wanted);
  if (std::ranges::find(waits, true) == waits.end()) return std::optional<InPlaceStep>();
  if (!running.edges.empty() || !wanted.edges.empty())
    return Error{config.file + kNoRoom + "models in stages cannot change one partition after the other; unload " +
                 "something first, or restart leatd"};
  std::vector<std::vector<bool>> before = then.holds;
  std::vector<std::vector<bool>> after = then.holds;
  for (std::size_t p = 0; p < count; ++p) {
    if (waits[p]) before[p] = now.holds[at[p]];
    before[p].push_back(false);  // it changes, also where only a batch does
    after[p].push_back(waits[p]);
  }
  const auto order = planner::in_place_waves(before, after, std::max<std::size_t>(1, count / 4));
  if (!order.bare.empty()) {
    return Error{config.file + ": no partition can be out while it takes other models, since " +
                 names_of(config, then, order.bare) +
                 " would have none left; unload something first, or give another partition room for it"};
  }
  InPlaceStep out;
  for (const auto& wave : order.waves) {
    out.waves.emplace_back();
    for (const std::uint32_t p : wave) out.waves.back().push_back(wanted.partitions[p].partition.name);
  }
  std::vector<bool> old(running.partitions.size(), false), fresh(count, true);
  for (std::uint32_t p = 0; p < count; ++p) {
    if (waits[p]) fresh[p] = false;
    if (!order.waves.empty() && std::ranges::find(order.waves.front(), p) != order.waves.front().end()) continue;
    if (waits[p]) old[at[p]] = true;
    out.partitions.push_back(wanted.partitions[p].partition.name);
  }
  const planner::PlanFile target = plan_file_of(config, wanted);
  out.plan = begun_from(target);
  add_routes(out.plan, target, fresh);
  add_routes(out.plan, plan_file_of(config, running), old);
  return std::optional(std::move(out));
}

std::optional<InPlaceStep> back_in_place(const Config& config, const Deployment& running, const Deployment& before) {
  std::vector<bool> out_of_it(before.partitions.size(), false);
  InPlaceStep out;
  for (std::uint32_t p = 0; p < before.partitions.size(); ++p) {
    const std::string& name = before.partitions[p].partition.name;
    out_of_it[p] = place_of(running, name) == kNone && serves(before, p);
    if (out_of_it[p] || place_of(running, name) != kNone) out.partitions.push_back(name);
    if (out_of_it[p]) {
      if (out.waves.empty()) out.waves.emplace_back();
      out.waves.back().push_back(name);
    }
  }
  if (out.waves.empty()) return std::nullopt;
  const planner::PlanFile now = plan_file_of(config, running);
  out.plan = begun_from(now);
  add_routes(out.plan, now, std::vector<bool>(running.partitions.size(), true));
  add_routes(out.plan, plan_file_of(config, before), out_of_it);
  return out;
}

Result<std::optional<Halves>> halves_of(const Config& running_config, const Deployment& running, const Config& config,
                                        const Deployment& wanted) {
  const auto [at, waits] = new_workers(running_config, running, config, wanted);
  if (std::ranges::find(waits, true) == waits.end()) return std::optional<Halves>();
  if (!running.edges.empty() || !wanted.edges.empty())
    return Error{config.file + kNoRoom + "a model in stages cannot be exchanged on one half of the partitions after " +
                 "the other; unload it and load it anew, or restart leatd"};
  const Residents now = residents_of(running_config, running), then = residents_of(config, wanted);
  std::vector<std::vector<bool>> before(wanted.partitions.size(), std::vector<bool>(now.modules.size()));
  std::vector<bool> changing(before.size());
  for (std::uint32_t p = 0; p < before.size(); ++p) {
    if (at[p] != kNone) before[p] = now.holds[at[p]];
    changing[p] = at[p] == kNone || !same_worker(running.setups[at[p]], wanted.setups[p]);
  }
  const planner::InPlaceHalves halves = planner::in_place_halves(before, then.holds, changing);
  const std::string bare = halves.bare_before.empty() ? names_of(config, then, halves.bare_after)
                                                      : names_of(running_config, now, halves.bare_before);
  if (!bare.empty())
    return Error{config.file + kNoRoom + bare + " would have no partition while they are exchanged; give another " +
                 "partition room for it, or unload what gets another version and load it anew"};
  Halves out;
  for (std::uint32_t p = 0; p < changing.size(); ++p)
    if (changing[p]) (halves.first[p] ? out.first : out.second).push_back(wanted.partitions[p].partition.name);
  return std::optional(std::move(out));
}

planner::PlanFile plan_on(const Config& config, const Deployment& of, const std::vector<std::string>& partitions) {
  const planner::PlanFile all = plan_file_of(config, of);
  planner::PlanFile out = begun_from(all);
  std::vector<bool> kept;
  for (const planner::Partition& p : all.plan.partitions)
    kept.push_back(std::ranges::find(partitions, p.name) != partitions.end());
  add_routes(out, all, kept);
  return out;
}

}  // namespace leat::daemon
