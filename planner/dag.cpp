#include "planner/dag.h"

#include <algorithm>
#include <unordered_map>

namespace leat::planner {
namespace {

auto of(const Predecessors& after) {
  return [&after](std::size_t i) -> const std::vector<std::uint32_t>& { return after[i]; };
}

}  // namespace

NamedOrder order_of(std::span<const std::string> names, const std::vector<std::vector<std::string>>& after) {
  NamedOrder out;
  std::unordered_map<std::string, std::size_t> by_name;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!by_name.emplace(names[i], i).second)
      return out.problem = "two modules are named '" + names[i] + "'; rename one", out;
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (const std::string& before : after[i]) {
      if (by_name.contains(before)) continue;
      out.problem = "module '" + names[i] + "' comes after '" + before +
                    "', which does not exist; name a module of this application";
      return out;
    }
  }
  std::vector<std::uint32_t> position(names.size(), UINT32_MAX);
  const auto placed = [&](const std::string& name) { return position[by_name[name]] != UINT32_MAX; };
  while (out.order.size() < names.size()) {
    std::uint32_t next = 0;
    while (next < names.size() &&
           (position[next] != UINT32_MAX || !std::all_of(after[next].begin(), after[next].end(), placed)))
      ++next;
    if (next == names.size()) {
      for (std::size_t i = 0; i < names.size(); ++i) {
        if (position[i] == UINT32_MAX) out.problem += (out.problem.empty() ? "" : ", ") + names[i];
      }
      out.problem = "these modules wait for each other in a cycle: " + out.problem + "; an application must be a DAG";
      return out;
    }
    position[next] = static_cast<std::uint32_t>(out.order.size());
    out.order.push_back(next);
    std::vector<std::uint32_t>& before = out.after.emplace_back();
    for (const std::string& name : after[next]) before.push_back(position[by_name[name]]);
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
  }
  return out;
}

double longest_path(const Predecessors& after, const std::vector<double>& need) {
  const std::vector<double> end = longest_paths_to(of(after), need);
  return end.empty() ? 0 : *std::max_element(end.begin(), end.end());
}

std::vector<double> longest_paths_through(const Predecessors& after, const std::vector<double>& need) {
  std::vector<double> end = longest_paths_to(of(after), need), tail(after.size());
  for (std::size_t i = after.size(); i-- > 0;) {
    for (const std::uint32_t p : after[i]) tail[p] = std::max(tail[p], tail[i] + need[i]);
  }
  for (std::size_t i = 0; i < after.size(); ++i) end[i] += tail[i];
  return end;
}

}  // namespace leat::planner
