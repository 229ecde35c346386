#include "planner/shared/residency.h"

#include <algorithm>
#include <set>
#include <utility>

#include "planner/small_lp.h"

namespace leat::planner {
namespace {

using Sets = std::vector<std::vector<bool>>;

constexpr double kBetter = 1e-6;  // relative; less is rounding
constexpr double kAmple = 3;      // z of an application beyond which more says nothing
constexpr std::size_t kStarts = 8;
constexpr int kMaxRounds = 200;

class ModelSets {
 public:
  explicit ModelSets(const ResidencyProblem& p) : p_(p), partitions_(p.cost_s.size()), modules_(p.weight.size()) {
    for (const std::uint32_t a : p.application) applications_ = std::max(applications_, a + 1);
  }

  // From several starts, since exchanges end where no single one helps.
  Residency best() const {
    Sets found;
    Value value;
    for (std::size_t start = 0; start < kStarts; ++start) {
      Sets sets = dealt(start);
      if (sets.empty()) continue;
      const Value here = improve(sets);
      if (!found.empty() && !here.above(value)) continue;
      found = std::move(sets);
      value = here;
    }
    Residency out = flows(p_, std::move(found));
    out.bound = bound();
    return out;
  }

  double bound() const { return z_of(everything(), p_.weight); }

  Sets improved(const Sets& held, double per_load) const {
    Sets sets = held;
    const double dear = per_load * z_of(held, p_.weight);
    const auto value = [&](const Sets& tried) {
      const double z = std::min(z_of(tried, p_.weight), kAmple);
      return Value{z - dear * static_cast<double>(loads(held, tried)), slack(tried)};
    };
    Value now = value(sets);
    for (int round = 0; round < kMaxRounds; ++round) {
      Sets best;
      std::set<std::pair<std::uint32_t, std::vector<bool>>> seen;
      for (std::size_t p = 0; p < partitions_; ++p) {
        if (!can_go_out(held, sets, p) || !seen.insert({p_.kind[p], sets[p]}).second) continue;
        (void)any_exchange(sets, p, [&](Sets& tried, std::size_t) {
          const Value here = value(tried);
          if (!here.above(now)) return false;
          best = std::move(tried);
          now = here;
          return false;
        });
      }
      if (best.empty()) break;
      sets = std::move(best);
    }
    return sets;
  }

  // Columns: z, then one for each module that a partition holds and runs.
  double z_of(const Sets& sets, const std::vector<double>& weight, Sets::size_type* columns = nullptr,
              std::vector<double>* values = nullptr) const {
    const auto rows = static_cast<std::uint32_t>(partitions_ + modules_);
    const auto held = pairs(sets);
    SmallLp lp = SmallLp::empty(rows, static_cast<std::uint32_t>(held.size() + 1));
    double unit = 0;  // so that numbers stay near 1: z if there were nothing but work on the fastest partitions
    for (std::size_t m = 0; m < modules_; ++m) unit += weight[m] * fastest(m);
    for (std::size_t p = 0; p < partitions_; ++p) lp.right[p] = 1;
    for (std::uint32_t k = 0; k < held.size(); ++k) {
      const auto [p, m] = held[k];  // x in parts of the partition's time
      lp.at(static_cast<std::uint32_t>(p), k + 1) = 1;
      lp.at(static_cast<std::uint32_t>(partitions_ + m), k + 1) = -unit / (weight[m] * p_.cost_s[p][m]);
    }
    for (std::uint32_t m = 0; m < modules_; ++m) lp.at(static_cast<std::uint32_t>(partitions_) + m, 0) = 1;
    lp.set_objective({1});
    lp.maximize();
    if (columns != nullptr) {
      *columns = held.size();
      values->assign(held.size(), 0);
      for (std::uint32_t r = 0; r < rows; ++r)
        if (lp.basic[r] >= 1 && lp.basic[r] <= held.size()) (*values)[lp.basic[r] - 1] = lp.right[r];
    }
    return lp.value / unit;
  }

  std::vector<std::pair<std::size_t, std::size_t>> pairs(const Sets& sets) const {
    std::vector<std::pair<std::size_t, std::size_t>> out;
    for (std::size_t p = 0; p < partitions_; ++p)
      for (std::size_t m = 0; m < modules_; ++m)
        if (sets[p][m]) out.emplace_back(p, m);
    return out;
  }

 private:
  double fastest(std::size_t m) const {
    double min = 0;
    for (std::size_t p = 0; p < partitions_; ++p)
      if (p_.cost_s[p][m] > 0 && (min == 0 || p_.cost_s[p][m] < min)) min = p_.cost_s[p][m];
    return min;
  }

  bool fits_alone(std::size_t p, std::size_t m) const {
    return p_.cost_s[p][m] > 0 && (p_.memory_bytes[p] <= 0 || p_.module_bytes[m] <= p_.memory_bytes[p]);
  }

  Sets everything() const {
    Sets all(partitions_, std::vector<bool>(modules_));
    for (std::size_t p = 0; p < partitions_; ++p)
      for (std::size_t m = 0; m < modules_; ++m) all[p][m] = fits_alone(p, m);
    return all;
  }

  double free_bytes(const Sets& sets, std::size_t p) const {
    if (p_.memory_bytes[p] <= 0) return 1e300;
    double bytes = p_.memory_bytes[p];
    for (std::size_t m = 0; m < modules_; ++m)
      if (sets[p][m]) bytes -= p_.module_bytes[m];
    return bytes;
  }

  // The largest models first, each to the partition with most room that can run it, or in other starts to the first
  // from another one on; then in turns what still fits. Empty: one found no room.
  Sets dealt(std::size_t start) const {
    Sets sets(partitions_, std::vector<bool>(modules_));
    std::vector<std::size_t> order(modules_);
    for (std::size_t m = 0; m < modules_; ++m) order[m] = m;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t x, std::size_t y) { return p_.module_bytes[x] > p_.module_bytes[y]; });
    for (std::size_t k = 0; k < modules_; ++k) {
      const std::size_t m = order[k];
      std::size_t best = partitions_;
      for (std::size_t i = 0; i < partitions_; ++i) {
        const std::size_t p = (i + start * (k + 1)) % partitions_;
        if (p_.cost_s[p][m] <= 0 || p_.module_bytes[m] > free_bytes(sets, p)) continue;
        if (best == partitions_ || (start == 0 && free_bytes(sets, p) > free_bytes(sets, best))) best = p;
      }
      if (best == partitions_) return {};
      sets[best][m] = true;
    }
    fill(sets, start);
    return sets;
  }

  void fill(Sets& sets, std::size_t start) const {
    for (std::size_t p = 0; p < partitions_; ++p)
      for (std::size_t k = 0; k < modules_; ++k) {
        const std::size_t m = (start + p + k) % modules_;
        if (!sets[p][m] && p_.cost_s[p][m] > 0 && p_.module_bytes[m] <= free_bytes(sets, p)) sets[p][m] = true;
      }
  }

  // The mean of what there would be if one application asked for twice as much.
  double slack(const Sets& sets) const {
    double sum = 0;
    for (std::uint32_t a = 0; a < applications_; ++a) {
      std::vector<double> weight = p_.weight;
      for (std::size_t m = 0; m < modules_; ++m)
        if (p_.application[m] == a) weight[m] *= 2;
      sum += std::min(z_of(sets, weight), kAmple);
    }
    return sum;
  }

  // z decides; slack where z is the same.
  struct Value {
    double z = 0, slack = 0;

    bool above(const Value& other) const {
      return z > other.z * (1 + kBetter) || (z >= other.z * (1 - kBetter) && slack > other.slack * (1 + kBetter));
    }
  };

  // Slack is asked for only where it may matter.
  bool better(const Sets& tried, Value& than) const {
    const double z = z_of(tried, p_.weight);
    if (z < than.z * (1 - kBetter)) return false;
    const Value value{z, slack(tried)};
    if (!value.above(than)) return false;
    than = value;
    return true;
  }

  bool held_elsewhere(const Sets& sets, std::size_t p, std::size_t m) const {
    for (std::size_t q = 0; q < partitions_; ++q)
      if (q != p && sets[q][m]) return true;
    return false;
  }

  // What it holds now others do too, who serve while it changes.
  bool can_go_out(const Sets& held, const Sets& sets, std::size_t p) const {
    for (std::size_t m = 0; m < modules_; ++m)
      if (held[p][m] && !held_elsewhere(sets, p, m)) return false;
    return true;
  }

  static std::size_t loads(const Sets& held, const Sets& sets) {
    std::size_t n = 0;
    for (std::size_t p = 0; p < sets.size(); ++p)
      for (std::size_t m = 0; m < sets[p].size(); ++m) n += sets[p][m] && !held[p][m] ? 1 : 0;
    return n;
  }

  // The sets with one model m more in p, in the place of another that others hold too, or of none; each goes to
  // use(sets, m), until one is taken (true).
  template <class Use>
  bool any_exchange(const Sets& sets, std::size_t p, const Use& use) const {
    for (std::size_t m = 0; m < modules_; ++m) {
      if (sets[p][m] || !fits_alone(p, m)) continue;
      for (std::size_t out = 0; out <= modules_; ++out) {
        if (out < modules_ && (!sets[p][out] || !held_elsewhere(sets, p, out))) continue;
        Sets tried = sets;
        if (out < modules_) tried[p][out] = false;
        if (p_.module_bytes[m] > free_bytes(tried, p)) continue;
        tried[p][m] = true;
        if (use(tried, m)) return true;
      }
    }
    return false;
  }

  Value improve(Sets& sets) const {
    Value value{z_of(sets, p_.weight), slack(sets)};
    for (int round = 0; round < kMaxRounds; ++round) {
      bool improved = false;
      std::set<std::pair<std::uint32_t, std::vector<bool>>> seen;  // partitions alike need one try
      for (std::size_t p = 0; p < partitions_; ++p)
        if (seen.insert({p_.kind[p], sets[p]}).second) improved = improve_one(sets, p, value) || improved;
      if (!improved && !improve_pair(sets, value)) break;
    }
    return value;
  }

  // Two partitions exchange a model each; what then still fits is added.
  bool improve_pair(Sets& sets, Value& value) const {
    for (std::size_t p = 0; p < partitions_; ++p)
      for (std::size_t q = p + 1; q < partitions_; ++q)
        for (std::size_t m = 0; m < modules_; ++m)
          for (std::size_t n = 0; n < modules_; ++n) {
            if (!sets[p][m] || sets[q][m] || !sets[q][n] || sets[p][n] || !fits_alone(q, m) || !fits_alone(p, n))
              continue;
            Sets tried = sets;
            tried[p][m] = tried[q][n] = false;
            tried[p][n] = tried[q][m] = true;
            if (free_bytes(tried, p) < 0 || free_bytes(tried, q) < 0) continue;
            fill(tried, m);
            if (!better(tried, value)) continue;
            sets = std::move(tried);
            return true;
          }
    return false;
  }

  bool improve_one(Sets& sets, std::size_t p, Value& value) const {
    return any_exchange(sets, p, [&](Sets& tried, std::size_t m) {
      fill(tried, m);
      if (!better(tried, value)) return false;
      sets = std::move(tried);
      return true;
    });
  }

  const ResidencyProblem& p_;
  std::size_t partitions_, modules_;
  std::uint32_t applications_ = 0;
};

}  // namespace

Residency flows(const ResidencyProblem& problem, std::vector<std::vector<bool>> holds) {
  Residency out;
  if (holds.empty()) return out;
  const ModelSets search(problem);
  std::size_t columns = 0;
  std::vector<double> values;
  out.z = search.z_of(holds, problem.weight, &columns, &values);
  const auto held = search.pairs(holds);
  out.rate.assign(problem.cost_s.size(), std::vector<double>(problem.weight.size(), 0));
  for (std::size_t k = 0; k < held.size(); ++k) {
    const auto [p, m] = held[k];
    out.rate[p][m] = values[k] / problem.cost_s[p][m];
  }
  out.holds = std::move(holds);
  out.feasible = out.z > 0;
  return out;
}

Residency improve_residency(const ResidencyProblem& problem, const std::vector<std::vector<bool>>& held,
                            double per_load) {
  const ModelSets search(problem);
  Residency out = flows(problem, search.improved(held, per_load));
  out.bound = search.bound();
  return out;
}

Residency choose_residency(const ResidencyProblem& problem) { return ModelSets(problem).best(); }

}  // namespace leat::planner
