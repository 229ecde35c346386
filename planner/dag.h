// Modules that come after others: their order from names, and the longest ways through them. Pure; any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace leat::planner {

// after[i]: what i comes after, smaller indexes only.
using Predecessors = std::vector<std::vector<std::uint32_t>>;

struct NamedOrder {
  std::vector<std::uint32_t> order;  // indexes as given, what comes after others behind them; as given among equals
  Predecessors after;                // [position in order]: positions, ascending, each once
  std::string problem;               // one line: a name that stands twice, is unknown, or waits for itself; else empty
};
// Precondition: after.size() == names.size().
NamedOrder order_of(std::span<const std::string> names, const std::vector<std::vector<std::string>>& after);

// [i]: the longest sum of `need` up to i, itself included; after(i) names what i comes after.
template <typename After>
std::vector<double> longest_paths_to(const After& after, const std::vector<double>& need) {
  std::vector<double> end(need.size());
  for (std::size_t i = 0; i < need.size(); ++i) {
    for (const std::uint32_t p : after(i)) end[i] = std::max(end[i], end[p]);
    end[i] += need[i];
  }
  return end;
}
// Longest sum of `need` over all paths; 0 of no modules.
double longest_path(const Predecessors& after, const std::vector<double>& need);
// [i]: the longest of those through i.
std::vector<double> longest_paths_through(const Predecessors& after, const std::vector<double>& need);

}  // namespace leat::planner
