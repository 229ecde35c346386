// Harpagon, the systems it is compared with and its ablations: one table of options (Harpagon Table III and section
// IV-C), and our own exact planner, `leat`. Any thread: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "planner/harpagon/greedy.h"

namespace leat::planner {

enum class Splitter : std::uint8_t {
  latency_cost,
  throughput,
  quantised,
  even,
  configurations,  // the best of all splits whose budgets are worst cases of configurations: what Algorithm 2 searches
                   // greedily
  exact,
};
enum class Hardware : std::uint8_t { any, cheapest, dearest, one_kind };  // one_kind: the better of all single kinds

struct HarpagonSystem {
  std::string_view name;
  std::string_view text;
  Dispatch dispatch = Dispatch::throughput_cost;
  std::uint32_t tuples = 0;  // 0: any number of configurations a module
  bool batching = true;
  Hardware hardware = Hardware::any;
  bool dummies = true;
  Reassign reassign = Reassign::all;
  Splitter splitter = Splitter::latency_cost;
  double interval_s = 0;  // of the quantised splitter
  bool merge_nodes = true;
  bool cost_direct = true;
  double paper_extra_cost = -1;  // over Harpagon's, average; < 0: the paper gives no figure of its own
};

// harpagon first, leat last.
std::span<const HarpagonSystem> harpagon_systems();
const HarpagonSystem* find_harpagon_system(std::string_view name);

// Infeasible is a value: plan.feasible().
HarpagonPlan plan_with(const HarpagonSystem& system, const HarpagonProblem& problem);

}  // namespace leat::planner
