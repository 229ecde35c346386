#include "planner/pooled_solver.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numeric>

#include "planner/packing.h"
#include "planner/pooled_candidates.h"
#include "planner/pooled_lp.h"
#include "planner/pooled_search.h"

namespace leat::planner {
namespace {

constexpr double kProof = 1e-9;  // relative: a plan this little better is the same plan

using Slots = std::vector<std::vector<Slot>>;

// Of each slot, the columns that no other of the slot beats for every type.
std::vector<LpColumn> columns_of(const PooledProblem& problem, const Slots& slots) {
  std::vector<LpColumn> out;
  for (std::uint32_t i = 0; i < slots.size(); ++i) {
    for (std::uint32_t s = 0; s < slots[i].size(); ++s) {
      std::vector<std::vector<double>> all;
      for (const Candidate& c : slots[i][s].candidates) {
        all.emplace_back(problem.types.size(), 0.0);
        for (std::uint32_t k = 0; k < c.stages; ++k) all.back()[slots[i][s].types[k]] += 1 / c.gpu_rps(k);
      }
      std::sort(all.begin(), all.end());
      std::vector<std::vector<double>> kept;
      for (const auto& column : all) {
        const bool beaten = std::any_of(kept.begin(), kept.end(), [&](const auto& k) {
          return std::equal(k.begin(), k.end(), column.begin(), [](double a, double b) { return a <= b; });
        });
        if (!beaten) kept.push_back(column);
      }
      for (auto& column : kept) out.push_back({i, s, std::move(column)});
    }
  }
  return out;
}

// By the rates that the plan states; pooled_checker.h computes them anew.
double stated_objective(const PooledProblem& problem, const std::vector<PooledDnnPlan>& plan) {
  double z = INFINITY;
  for (std::size_t i = 0; i < plan.size(); ++i) z = std::min(z, plan[i].rps / problem.dnns[i].weight);
  return z;
}

// Where the relaxation puts two candidates into one slot: the slot, and a key that tells them apart.
struct Split {
  bool found = false;
  std::uint32_t dnn = 0, slot = 0, type = 0;
  double at = 0;
};

// Part of a candidate's GPUs that is of this type.
double part_of(const Slot& slot, const Candidate& c, std::uint32_t type) {
  double all = 0, own = 0;
  for (std::uint32_t k = 0; k < c.stages; ++k) {
    all += 1 / c.gpu_rps(k);
    if (slot.types[k] == type) own += 1 / c.gpu_rps(k);
  }
  return own / all;
}

Split find_split(const PooledLp& lp, const Slots& slots, std::uint32_t types) {
  Split best;
  double widest = 1e-6;
  for (std::uint32_t i = 0; i < lp.columns().size(); ++i) {
    const auto& columns = lp.columns()[i];
    for (std::size_t a = 0; a < columns.size(); ++a) {
      for (std::size_t b = a + 1; b < columns.size() && columns[a].rps > 0; ++b) {
        if (columns[b].rps <= 0 || columns[a].slot != columns[b].slot || slots[i][columns[a].slot].copies > 1) continue;
        double sum_a = 0, sum_b = 0;
        for (std::uint32_t g = 0; g < types; ++g)
          sum_a += columns[a].gpus_per_rps[g], sum_b += columns[b].gpus_per_rps[g];
        for (std::uint32_t g = 0; g < types; ++g) {
          const double part_a = columns[a].gpus_per_rps[g] / sum_a, part_b = columns[b].gpus_per_rps[g] / sum_b;
          if (std::abs(part_a - part_b) <= widest) continue;
          widest = std::abs(part_a - part_b);
          best = {true, i, columns[a].slot, g, (part_a + part_b) / 2};
        }
      }
    }
  }
  return best;
}

// Best-first branch and bound over which candidates a slot may hold; each node is searched exactly (pooled_search.h). A
// node whose search is long because its relaxation mixes two candidates in one slot is split between the two.
class Solver {
 public:
  Solver(const PooledProblem& problem, SearchRules rules, std::uint64_t steps)
      : problem_(problem), rules_(rules), steps_(steps) {}

  double reached = 0;  // a plan does
  double bound = 0;    // no plan does better
  std::vector<PooledDnnPlan> plan;

  void solve(Slots slots) {
    bound = 0;
    push(std::move(slots));
    while (!open_.empty()) {
      std::pop_heap(open_.begin(), open_.end(), lower);
      const std::unique_ptr<Node> node = std::move(open_.back());
      open_.pop_back();
      if (closed(node->lp.bound())) break;  // best first: so are all others
      visit(*node);
    }
    for (const auto& node : open_) bound = std::max(bound, node->lp.bound());
    bound = std::max(bound, reached);
  }

 private:
  struct Node {
    Slots slots;
    PooledLp lp;
    std::uint64_t number;
  };

  static bool lower(const std::unique_ptr<Node>& a, const std::unique_ptr<Node>& b) {
    return std::make_pair(a->lp.bound(), b->number) < std::make_pair(b->lp.bound(), a->number);
  }

  bool closed(double top) const { return top <= reached * (1 + kProof); }

  void push(Slots slots) {
    std::vector<double> counts, weights;
    for (const GpuType& t : problem_.types) counts.push_back(t.count);
    for (const PooledDnn& d : problem_.dnns) weights.push_back(d.weight);
    PooledLp lp(std::move(counts), std::move(weights), columns_of(problem_, slots));
    if (closed(lp.bound())) return;
    open_.push_back(std::make_unique<Node>(Node{std::move(slots), std::move(lp), ++pushed_}));
    std::push_heap(open_.begin(), open_.end(), lower);
  }

  void visit(Node& node) {
    const Split split = find_split(node.lp, node.slots, static_cast<std::uint32_t>(problem_.types.size()));
    double top = node.lp.bound();
    if (climb(node, top, split.found ? std::min(kStepsBeforeSplit, steps_) : steps_, !split.found)) return;
    if (!split.found || steps_ == 0) {
      bound = std::max(bound, top);
      return;
    }
    for (const bool low : {true, false}) {
      Slots half = node.slots;
      Slot& slot = half[split.dnn][split.slot];
      std::vector<Candidate> kept;
      for (const Candidate& c : slot.candidates) {
        if ((part_of(slot, c, split.type) <= split.at) == low) kept.push_back(c);
      }
      slot.candidates = std::move(kept);
      push(std::move(half));
    }
  }

  // Searches a node until nothing better than `reached` is left in it (true) or `budget` steps are spent. `leaf`: it
  // cannot be split, so some plan is found whatever it takes.
  bool climb(const Node& node, double& top, std::uint64_t budget, bool leaf) {
    PooledSearch search(problem_, node.slots, node.lp, rules_);
    // Down from the bound until a plan is found: the less slack, the less there is to search.
    const double gpu = *std::max_element(node.lp.gpu_price().begin(), node.lp.gpu_price().end());
    const double before = reached;
    std::uint64_t little = std::min(budget, kStepsNear);
    if (ask(search, node.lp.bound(), Reach::everywhere, little, top) == Answer::yes)
      return true;           // now and then the relaxation is whole
    bool everywhere = true;  // until that is too long; then only near by
    for (double slack = kFirstSlack * gpu;
         budget > 0 && reached <= before && node.lp.bound() - slack > reached * (1 + kProof); slack *= 2) {
      const double z = node.lp.bound() - slack;
      std::uint64_t some = std::min(budget, kStepsNear);
      if (ask(search, z, Reach::same_slots, some, top) == Answer::yes) break;
      if (ask(search, z, Reach::nearby, some, top) == Answer::yes) break;
      some = std::min(budget, 50 * kStepsNear);
      const std::uint64_t given = some;
      if (everywhere && ask(search, z, Reach::everywhere, some, top) == Answer::too_long) {
        if (!leaf) return false;
        everywhere = false;
      }
      budget -= std::min(budget, given - some);
    }
    if (reached <= 0) find_any(search, node, top);
    if (reached <= 0 && ask(search, node.lp.bound() * 1e-9, Reach::everywhere, budget, top) == Answer::too_long)
      return false;
    // Just above the best plan: `no` ends the proof. Half way: halves what is open. What is long is first tried near
    // by.
    bool polished = false;
    while (!closed(top)) {
      std::uint64_t some = polished ? budget : std::min(budget, kStepsNear);
      const std::uint64_t given = some;
      const Answer answer = ask(search, reached * (1 + kProof), Reach::everywhere, some, top);
      budget -= std::min(budget, given - some);
      if (answer == Answer::too_long) {
        if (polished || budget == 0) return false;
        polish(search, top);
        polished = true;
        continue;
      }
      if (!closed(top) && !polished) {
        some = std::min(budget, kStepsNear);
        (void)ask(search, (reached + top) / 2, Reach::everywhere, some, top);
      }
    }
    return true;
  }

  // Better plans near the relaxation's own, by halving.
  void polish(PooledSearch& search, double top) {
    for (double high = top; high > reached * (1 + kPolish) && steps_ > 0;) {
      const double middle = (reached + high) / 2;
      std::uint64_t some = std::min(steps_, 10 * kStepsNear);
      if (ask(search, middle, Reach::same_slots, some, top) == Answer::yes) continue;
      if (ask(search, middle, Reach::nearby, some, top) != Answer::yes) high = middle;
    }
  }

  // The first plan of all, when the budget is too small for exact answers: near the relaxation's own, less and less
  // demanding.
  void find_any(PooledSearch& search, const Node& node, double& top) {
    double slack = kFirstSlack * *std::max_element(node.lp.gpu_price().begin(), node.lp.gpu_price().end());
    for (; reached <= 0 && slack < node.lp.bound(); slack *= 2) {
      std::uint64_t some = 50 * kStepsNear;
      (void)ask(search, node.lp.bound() - slack, Reach::nearby, some, top);
    }
  }

  Answer ask(PooledSearch& search, double z, Reach reach, std::uint64_t& budget, double& top) {
    std::vector<PooledDnnPlan> found;
    const std::uint64_t before = search.steps_taken();
    const Answer answer = search.reaches(z, budget, reach, found);
    const std::uint64_t taken = std::min(budget, search.steps_taken() - before);
    budget -= taken;
    steps_ -= std::min(steps_, taken);
    if (answer == Answer::yes) plan = std::move(found), reached = std::max(z, stated_objective(problem_, plan));
    if (answer == Answer::no) top = std::min(top, z);
    return answer;
  }

  static constexpr std::uint64_t kStepsBeforeSplit = 5'000, kStepsNear = 20'000;
  static constexpr double kFirstSlack = 0.5;  // of a GPU
  static constexpr double kPolish = 1e-5;

  const PooledProblem& problem_;
  SearchRules rules_;
  std::uint64_t steps_;
  std::uint64_t pushed_ = 0;
  std::vector<std::unique_ptr<Node>> open_;
};

std::uint32_t common_multiple_of_shares(const Slots& slots) {
  std::uint32_t multiple = 1;
  for (const auto& of_dnn : slots) {
    for (const Slot& s : of_dnn) {
      for (const Candidate& c : s.candidates) {
        for (std::uint32_t k = 0; k < c.stages; ++k) multiple = std::lcm(multiple, std::uint32_t{c.stage[k].share});
      }
    }
  }
  return multiple;
}

std::string binding_of(const PooledProblem& problem, const PooledLp& lp) {
  std::string out;
  for (std::size_t g = 0; g < problem.types.size(); ++g) {
    if (lp.gpu_price()[g] <= 0) continue;
    char text[96];
    std::snprintf(text, sizeof text, "%s%s (one more brings %.4g)", out.empty() ? "" : ", ",
                  problem.types[g].name.c_str(), lp.gpu_price()[g]);
    out += text;
  }
  return "partitions: " + out;
}

}  // namespace

namespace {

// False: a DNN fits no pipeline, and `out` says which.
bool enumerate(const PooledProblem& problem, Slots& slots, PooledSolution& out) {
  std::uint32_t largest_share = 1;
  for (const GpuType& t : problem.types) largest_share = std::max(largest_share, t.max_share);
  for (const PooledDnn& d : problem.dnns) {
    slots.push_back(enumerate_slots(problem, d, largest_share));
    if (!slots.back().empty()) continue;
    out.certificate.binding = "SLO of " + d.profile->model + ": no pipeline meets it";
    return false;
  }
  return true;
}

PooledLp relax(const PooledProblem& problem, const Slots& slots) {
  std::vector<double> counts, weights;
  for (const GpuType& t : problem.types) counts.push_back(t.count);
  for (const PooledDnn& d : problem.dnns) weights.push_back(d.weight);
  return {std::move(counts), std::move(weights), columns_of(problem, slots)};
}

void certify(const PooledProblem& problem, const PooledLp& lp, const Solver& best,
             std::chrono::steady_clock::time_point start, PooledSolution& out) {
  out.feasible = best.reached > 0;
  out.dnns = best.plan;
  out.lp_bound = lp.bound();
  Certificate& c = out.certificate;
  const bool proven = best.bound <= best.reached * (1 + kProof);
  c.objective = out.feasible ? stated_objective(problem, out.dnns) : 0;
  c.upper_bound = proven ? c.objective : best.bound;
  c.gap = proven || best.bound <= 0 ? 0 : (best.bound - c.objective) / best.bound;
  c.binding = binding_of(problem, lp);
  c.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::uint64_t steps_of(const PooledEffort& effort, const PooledProblem& problem, bool free) {
  return effort.steps > 0 ? effort.steps : free || problem.types.size() > 2 ? 10 * kSteps : kSteps;
}

// Whether the plan's shares fit the GPUs one by one, not only in sum.
bool packs(const PooledProblem& problem, const std::vector<PooledDnnPlan>& plan) {
  for (std::uint32_t g = 0; g < problem.types.size(); ++g) {
    std::vector<std::uint32_t> shares;
    for (const PooledDnnPlan& d : plan) {
      for (const PooledPipeline& p : d.pipelines) {
        for (const PooledStage& s : p.stages) {
          if (s.type == g) shares.insert(shares.end(), s.vgpus, s.share);
        }
      }
    }
    if (!shares.empty() && pack_shares(shares, problem.types[g].count).empty()) return false;
  }
  return true;
}

}  // namespace

PooledSolution solve_pooled(const PooledProblem& problem, const PooledEffort& effort) {
  const auto start = std::chrono::steady_clock::now();
  PooledSolution out;
  Slots slots;
  if (!enumerate(problem, slots, out)) return out;
  const PooledLp lp = relax(problem, slots);
  Solver best(problem, {}, steps_of(effort, problem, false));
  Slots whole = slots;
  for (auto& of_dnn : whole) keep_best_for_whole_gpus(of_dnn);
  best.solve(std::move(whole));
  out.whole_gpu_objective = best.reached;
  const std::uint32_t unit = common_multiple_of_shares(slots);
  out.certificate.method = "exact search, whole GPUs";
  if (effort.share_gpus && unit > 1) {
    Solver shared(problem, {unit, false}, steps_of(effort, problem, false));
    shared.reached = best.reached;
    shared.plan = best.plan;
    shared.solve(std::move(slots));
    out.certificate.method = "exact search, GPUs shared in " + std::to_string(unit) + " parts";
    certify(problem, lp, shared, start, out);
  } else {
    certify(problem, lp, best, start, out);
  }
  return out;
}

PooledSolution solve_free(const PooledProblem& problem, const PooledEffort& effort) {
  const auto start = std::chrono::steady_clock::now();
  PooledSolution strict = solve_pooled(problem, effort);
  PooledProblem freer = problem;
  freer.max_stages = std::max(problem.max_stages, kFreeStages);
  PooledSolution out;
  Slots slots;
  if (!enumerate(freer, slots, out)) return out;
  for (auto& of_dnn : slots) {
    for (Slot& s : of_dnn) s.copies = std::min(kFreePipelines, static_cast<std::uint32_t>(s.candidates.size()));
  }
  const PooledLp lp = relax(freer, slots);
  const std::uint32_t unit = common_multiple_of_shares(slots);
  Solver best(freer, {unit, true}, steps_of(effort, problem, true));
  best.reached = strict.certificate.objective;
  best.plan = strict.dnns;
  Slots whole = slots;  // a first step that is quick: more stages, whole GPUs
  for (auto& of_dnn : whole) keep_best_for_whole_gpus(of_dnn);
  Solver first(freer, {1, true}, steps_of(effort, problem, false));
  first.reached = best.reached;
  first.solve(std::move(whole));
  if (first.reached > best.reached) best.reached = first.reached, best.plan = first.plan;
  best.solve(std::move(slots));
  if (!packs(freer, best.plan)) {  // only with shares below 1/4: their sum fits, they do not
    best.plan = strict.dnns;
    best.reached = strict.certificate.objective;
    best.bound = lp.bound();
  }
  out.whole_gpu_objective = strict.whole_gpu_objective;
  out.certificate.method = "exact search, shares packed in " + std::to_string(unit) + " parts";
  certify(freer, lp, best, start, out);
  return out;
}

double pooled_bound(const PooledProblem& problem) {
  PooledSolution ignored;
  Slots slots;
  return enumerate(problem, slots, ignored) ? relax(problem, slots).bound() : 0;
}

std::vector<double> pooled_prices(const PooledProblem& problem) {
  PooledProblem freer = problem;
  freer.max_stages = std::max(problem.max_stages, kFreeStages);
  PooledSolution ignored;
  Slots slots;
  if (!enumerate(freer, slots, ignored)) return {};
  return relax(freer, slots).gpu_price();
}

}  // namespace leat::planner
