#include "planner/pooled/search/branch_and_bound.h"

#include <algorithm>
#include <cmath>

namespace leat::planner {
namespace {

constexpr std::uint64_t kStepsBeforeSplit = 5'000, kStepsNear = 20'000;
constexpr double kFirstSlack = 0.5;  // of a GPU
constexpr double kPolish = 1e-5;

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

}  // namespace

PooledLp relax(const PooledProblem& problem, const Slots& slots) {
  std::vector<double> counts, weights;
  for (const GpuType& t : problem.types) counts.push_back(t.count);
  for (const PooledDnn& d : problem.dnns) weights.push_back(d.weight);
  return {std::move(counts), std::move(weights), columns_of(problem, slots)};
}

double stated_objective(const PooledProblem& problem, const std::vector<PooledDnnPlan>& plan) {
  double z = INFINITY;
  for (std::size_t i = 0; i < plan.size(); ++i) z = std::min(z, plan[i].rps / problem.dnns[i].weight);
  return z;
}

void PooledTree::solve(Slots slots) {
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

bool PooledTree::lower(const std::unique_ptr<Node>& a, const std::unique_ptr<Node>& b) {
  return std::make_pair(a->lp.bound(), b->number) < std::make_pair(b->lp.bound(), a->number);
}

void PooledTree::push(Slots slots) {
  PooledLp lp = relax(problem_, slots);
  if (closed(lp.bound())) return;
  open_.push_back(std::make_unique<Node>(Node{std::move(slots), std::move(lp), ++pushed_}));
  std::push_heap(open_.begin(), open_.end(), lower);
}

void PooledTree::visit(Node& node) {
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
bool PooledTree::climb(const Node& node, double& top, std::uint64_t budget, bool leaf) {
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
void PooledTree::polish(PooledSearch& search, double top) {
  for (double high = top; high > reached * (1 + kPolish) && steps_ > 0;) {
    const double middle = (reached + high) / 2;
    std::uint64_t some = std::min(steps_, 10 * kStepsNear);
    if (ask(search, middle, Reach::same_slots, some, top) == Answer::yes) continue;
    if (ask(search, middle, Reach::nearby, some, top) != Answer::yes) high = middle;
  }
}

// The first plan of all, when the budget is too small for exact answers: near the relaxation's own, less and less
// demanding.
void PooledTree::find_any(PooledSearch& search, const Node& node, double& top) {
  double slack = kFirstSlack * *std::max_element(node.lp.gpu_price().begin(), node.lp.gpu_price().end());
  for (; reached <= 0 && slack < node.lp.bound(); slack *= 2) {
    std::uint64_t some = 50 * kStepsNear;
    (void)ask(search, node.lp.bound() - slack, Reach::nearby, some, top);
  }
}

Answer PooledTree::ask(PooledSearch& search, double z, Reach reach, std::uint64_t& budget, double& top) {
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

}  // namespace leat::planner
