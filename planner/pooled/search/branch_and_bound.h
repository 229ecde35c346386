// Best-first branch and bound over which candidates a slot may hold; each node is searched exactly (search.h). A node
// whose search is long because its relaxation mixes two candidates in one slot is split between the two. Deterministic:
// effort is counted in steps. One thread an object.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "planner/pooled/candidates.h"
#include "planner/pooled/lp.h"
#include "planner/pooled/problem.h"
#include "planner/pooled/search/search.h"

namespace leat::planner {

inline constexpr double kProof = 1e-9;  // relative: a plan this little better is the same plan

using Slots = std::vector<std::vector<Slot>>;  // [dnn]

// The relaxation; of each slot, only the candidates that no other of the slot beats for every type.
PooledLp relax(const PooledProblem& problem, const Slots& slots);

// By the rates that the plan states; checker.h computes them anew.
double stated_objective(const PooledProblem& problem, const std::vector<PooledDnnPlan>& plan);

class PooledTree {
 public:
  // Keeps a reference to the problem.
  PooledTree(const PooledProblem& problem, SearchRules rules, std::uint64_t steps)
      : problem_(problem), rules_(rules), steps_(steps) {}

  double reached = 0;  // a plan does
  double bound = 0;    // no plan does better
  std::vector<PooledDnnPlan> plan;

  void solve(Slots slots);

 private:
  struct Node {
    Slots slots;
    PooledLp lp;
    std::uint64_t number;
  };
  static bool lower(const std::unique_ptr<Node>& a, const std::unique_ptr<Node>& b);
  bool closed(double top) const { return top <= reached * (1 + kProof); }
  void push(Slots slots);
  void visit(Node& node);
  bool climb(const Node& node, double& top, std::uint64_t budget, bool leaf);
  void polish(PooledSearch& search, double top);
  void find_any(PooledSearch& search, const Node& node, double& top);
  Answer ask(PooledSearch& search, double z, Reach reach, std::uint64_t& budget, double& top);

  const PooledProblem& problem_;
  SearchRules rules_;
  std::uint64_t steps_;
  std::uint64_t pushed_ = 0;
  std::vector<std::unique_ptr<Node>> open_;
};

}  // namespace leat::planner
