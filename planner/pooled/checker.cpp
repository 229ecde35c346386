#include "planner/pooled/checker.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "planner/pooled/packing.h"
#include "planner/pooled/solver.h"

namespace leat::planner {
namespace {

class Checker {
 public:
  enum class Rules { strict, replicated, free };
  Checker(const PooledProblem& problem, const PooledTolerance& tolerance, Rules rules)
      : problem_(problem), tolerance_(tolerance), rules_(rules) {}

  std::string check(const std::vector<PooledDnnPlan>& plan) {
    if (plan.size() != problem_.dnns.size()) return "has plans for " + std::to_string(plan.size()) + " DNNs";
    for (std::size_t i = 0; i < plan.size() && problem_text_.empty(); ++i) check_dnn(problem_.dnns[i], plan[i]);
    for (std::size_t g = 0; g < problem_.types.size() && problem_text_.empty() && rules_ == Rules::free; ++g)
      check_packing(g);
    for (std::size_t g = 0; g < problem_.types.size() && problem_text_.empty(); ++g) {
      if (taken_[g] > problem_.types[g].count + tolerance_.gpus * static_cast<double>(plan.size() * 8)) {
        fail(problem_.types[g].name) << "takes " << taken_[g] << " GPUs of " << problem_.types[g].count;
      }
    }
    return problem_text_.empty() ? "" : problem_text_ + text_.str();
  }

  // Rate of one vGPU, from the profile's rows and the two link ends.
  double vgpu_rps(const PooledDnn& dnn, const PooledPipeline& p, std::size_t k) const {
    const PooledStage& s = p.stages[k];
    double rps = 1e6 * p.batch / latency_us(dnn, p, s);
    if (!problem_.pair_gbps.empty()) {
      for (const std::size_t next : {k, k + 1}) {
        if (next == 0 || next == p.stages.size()) continue;
        const std::uint32_t cut = p.stages[next].first_block;
        const double us = transfer_us(dnn, p.stages[next - 1], p.stages[next], cut);
        if (us > 0) rps = std::min(rps, 1e6 / us / s.share);
      }
      return rps;
    }
    if (problem_.bandwidth_gbps <= 0) return rps;
    const GpuType& type = problem_.types[s.type];
    for (const std::uint32_t cut : {s.first_block, s.end_block}) {
      double server_rps = 1e6;
      if (cut != 0 && cut != dnn.profile->blocks) {
        const double bits = 8.0 * static_cast<double>(dnn.profile->boundary_bytes[cut - 1]);
        if (bits <= 0) continue;
        server_rps = problem_.bandwidth_gbps * 1e9 / bits;
      }
      rps = std::min(rps, server_rps / (s.share * type.gpus_per_server));
    }
    return rps;
  }

 private:
  // Of one item between two stages.
  double transfer_us(const PooledDnn& dnn, const PooledStage& a, const PooledStage& b, std::uint32_t cut) const {
    const double gbps = problem_.pair_gbps.empty() ? problem_.bandwidth_gbps
                                                   : problem_.pair_gbps.at(a.type * problem_.types.size() + b.type);
    return gbps > 0 ? 8.0 * static_cast<double>(dnn.profile->boundary_bytes[cut - 1]) / (gbps * 1000) : 0;
  }

  std::ostringstream& fail(const std::string& where) {
    problem_text_ = where + ": ";
    return text_;
  }

  double latency_us(const PooledDnn& dnn, const PooledPipeline& p, const PooledStage& s) const {
    for (const ProfileRow& row : dnn.profile->rows) {
      if (row.partition_class != problem_.types[s.type].name || row.share != s.share || row.batch != p.batch) continue;
      std::int64_t ns = 0;
      for (std::uint32_t k = s.first_block; k < s.end_block; ++k) ns += row.blocks[k].p50_ns;
      return static_cast<double>(ns) / 1000;
    }
    return INFINITY;  // not measured: cannot be used
  }

  void check_dnn(const PooledDnn& dnn, const PooledDnnPlan& plan) {
    std::map<std::pair<std::size_t, std::uint32_t>, double> pools;
    double rps = 0;
    for (std::size_t k = 0; k < plan.pipelines.size() && problem_text_.empty(); ++k) {
      const PooledPipeline& p = plan.pipelines[k];
      const std::string where = dnn.profile->model + ", pipeline " + std::to_string(k);
      check_pipeline(dnn, p, where);
      rps += p.rps;
      for (std::size_t s = 0; s < p.stages.size(); ++s)
        pools[{s, p.stages[s].type}] += static_cast<double>(p.stages[s].vgpus) / p.stages[s].share;
    }
    if (!problem_text_.empty()) return;
    if (std::abs(rps - plan.rps) > tolerance_.rate * std::max(1.0, rps)) {
      fail(dnn.profile->model) << "states " << plan.rps << " rps; its pipelines carry " << rps;
      return;
    }
    for (const auto& [pool, gpus] : pools)
      taken_[pool.second] += rules_ == Rules::strict ? std::ceil(gpus - tolerance_.gpus) : gpus;
    if (rules_ != Rules::replicated) check_slots(dnn, plan);
    if (rules_ != Rules::free) return;
    for (const PooledPipeline& p : plan.pipelines) {
      for (const PooledStage& s : p.stages) shares_[s.type].insert(shares_[s.type].end(), s.vgpus, s.share);
    }
  }

  void check_pipeline(const PooledDnn& dnn, const PooledPipeline& p, const std::string& where) {
    if (p.stages.empty() || p.stages.size() > problem_.max_stages) {
      fail(where) << "has " << p.stages.size() << " stages";
      return;
    }
    double spent = dnn.est_rps > 0 ? problem_.batch_build_factor * 1e6 * (p.batch - 1.0) / dnn.est_rps : 0;
    double rps = INFINITY;
    std::uint32_t at = 0;
    for (std::size_t k = 0; k < p.stages.size(); ++k) {
      const PooledStage& s = p.stages[k];
      if (s.type >= problem_.types.size() || s.share < 1 || s.share > problem_.types[s.type].max_share) {
        fail(where) << "stage " << k << " is on no such vGPU";
        return;
      }
      if (s.first_block != at || s.end_block <= at || s.end_block > dnn.profile->blocks) {
        fail(where) << "stage " << k << " takes blocks " << s.first_block << ".." << s.end_block << " after " << at;
        return;
      }
      at = s.end_block;
      const double latency = latency_us(dnn, p, s);
      if (std::abs(latency - s.latency_us) > tolerance_.us) {
        fail(where) << "stage " << k << " states " << s.latency_us << " us; the profile says " << latency;
        return;
      }
      spent += latency;
      if (at < dnn.profile->blocks && k + 1 < p.stages.size())
        spent += p.batch * transfer_us(dnn, s, p.stages[k + 1], at);
      rps = std::min(rps, static_cast<double>(s.vgpus) * vgpu_rps(dnn, p, k));
    }
    if (at != dnn.profile->blocks)
      fail(where) << "ends at block " << at << " of " << dnn.profile->blocks;
    else if (spent > dnn.budget_us + tolerance_.us)
      fail(where) << "needs " << spent << " us of " << dnn.budget_us;
    else if (p.rps > rps * (1 + tolerance_.rate) + 1e-6)
      fail(where) << "states " << p.rps << " rps; its vGPUs carry " << rps;
  }

  // No device of the packing holds more than one whole.
  void check_packing(std::size_t type) {
    const std::vector<std::uint32_t>& shares = shares_[type];
    if (shares.empty()) return;
    const std::vector<std::uint32_t> device = pack_shares(shares, problem_.types[type].count);
    if (device.size() != shares.size()) {
      fail(problem_.types[type].name) << "no packing of " << shares.size() << " shares into "
                                      << problem_.types[type].count << " GPUs is found";
      return;
    }
    std::map<std::uint32_t, double> filled;
    for (std::size_t k = 0; k < shares.size(); ++k) filled[device[k]] += 1.0 / shares[k];
    for (const auto& [at, sum] : filled) {
      if (at >= problem_.types[type].count || sum > 1 + 1e-9) {
        fail(problem_.types[type].name) << "GPU " << at << " of " << problem_.types[type].count << " holds " << sum;
        return;
      }
    }
  }

  // At most one pipeline a slot (free: kFreePipelines), each in a slot that begins with its types.
  void check_slots(const PooledDnn& dnn, const PooledDnnPlan& plan) {
    const std::size_t types = problem_.types.size();
    std::map<std::size_t, std::uint32_t> taken;
    const std::uint32_t max = rules_ == Rules::free ? kFreePipelines : 1;
    const bool slots_known =
        tolerance_.slots_known && rules_ != Rules::free;  // a plan by the stricter rules has theirs
    std::vector<const PooledPipeline*> order;
    for (const PooledPipeline& p : plan.pipelines) order.push_back(&p);
    std::stable_sort(order.begin(), order.end(),
                     [](const auto* a, const auto* b) { return a->stages.size() > b->stages.size(); });
    for (const PooledPipeline* p : order) {
      std::size_t first = 0, width = 1;
      for (const PooledStage& s : p->stages) first = first * types + s.type;
      for (std::size_t s = p->stages.size(); s < problem_.max_stages; ++s) first *= types, width *= types;
      std::size_t slot = p->slot;
      if (!slots_known) {
        for (slot = first; slot < first + width && taken[slot] == max;) ++slot;
      }
      if (slot < first || slot >= first + width || ++taken[slot] > max) {
        fail(dnn.profile->model) << "more than " << max << " pipelines in slot " << slot
                                 << ", or one in a slot of other types";
        return;
      }
    }
  }

  const PooledProblem& problem_;
  const PooledTolerance& tolerance_;
  const Rules rules_;
  std::map<std::size_t, double> taken_;
  std::map<std::size_t, std::vector<std::uint32_t>> shares_;  // free: of each type, every vGPU's
  std::string problem_text_;
  std::ostringstream text_;
};

}  // namespace

std::string problem_of(const PooledProblem& problem, const std::vector<PooledDnnPlan>& plan,
                       const PooledTolerance& tolerance, bool replicated) {
  return Checker(problem, tolerance, replicated ? Checker::Rules::replicated : Checker::Rules::strict).check(plan);
}

std::string problem_of_free(const PooledProblem& problem, const std::vector<PooledDnnPlan>& plan,
                            const PooledTolerance& tolerance) {
  PooledProblem freer = problem;
  freer.max_stages = std::max(problem.max_stages, kFreeStages);
  return Checker(freer, tolerance, Checker::Rules::free).check(plan);
}

double objective_of(const PooledProblem& problem, const std::vector<PooledDnnPlan>& plan) {
  const PooledTolerance tolerance;
  const Checker checker(problem, tolerance, Checker::Rules::strict);
  double z = INFINITY;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    double rate = 0;
    for (const PooledPipeline& p : plan[i].pipelines) {
      double rps = INFINITY;
      for (std::size_t s = 0; s < p.stages.size(); ++s)
        rps = std::min(rps, static_cast<double>(p.stages[s].vgpus) * checker.vgpu_rps(problem.dnns[i], p, s));
      rate += rps;
    }
    z = std::min(z, rate / problem.dnns[i].weight);
  }
  return z;
}

}  // namespace leat::planner
