#include "tools/plan/tried_plan.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "engine/sim/kept_rate.h"

namespace leat::planner {
namespace {

constexpr std::size_t kMostPartitions = 4096;  // beyond, waits vanish and a simulation takes long
constexpr double kInTime = .992;               // so that 99 % of other draws are in time too
constexpr double kAbove = 2;                   // of the promise; so far up plans are compared

struct Candidate {
  PlanFile file;
  double z = 0;  // promised, in the objective's unit
  sim::KeptRate kept;
};

// `weights`: of the applications in z.
bool tried(Candidate& c, const core::Policy& policy, std::vector<double> weights, std::uint64_t requests) {
  const core::Topology t = core::Topology::from(c.file.plan, c.file.applications);
  if (!(c.z > 0) || !t.problem().empty()) return false;
  std::vector<double>& rates = weights;
  for (double& rate : rates) rate *= c.z;
  c.kept = sim::kept_rate(t, policy, rates, {.in_time = kInTime, .requests = requests, .most = kAbove});
  return true;
}

void lower(Candidate& c, double part) {
  for (Route& r : c.file.plan.routes) r.rate_rps *= part;
  Certificate& certificate = c.file.plan.certificate;
  certificate.objective *= part;
  certificate.gap = (certificate.upper_bound - certificate.objective) / certificate.upper_bound;
  char text[160];
  std::snprintf(text, sizeof text,
                "; lowered to %.1f %% of the promise, where 99 %% of the requests are in time in the simulator",
                100 * part);
  certificate.method += text;
}

}  // namespace

Trial try_plan(const PlanRequest& request, PlanOutcome& outcome, std::uint64_t requests) {
  Trial out;
  core::Policy policy;
  if (requests == 0 || !outcome.solution.feasible || !core::preset("leat", policy) ||
      outcome.file.plan.partitions.size() > kMostPartitions)
    return out;
  std::vector<Candidate> all = {{std::move(outcome.file), outcome.solution.certificate.objective, {}}};
  for (OtherPlan& other : outcome.others) all.push_back({std::move(other.file), other.z, {}});
  outcome.others.clear();
  std::vector<double> weights;
  for (const Application& a : request.applications) weights.push_back(a.rate_rps > 0 ? a.rate_rps : a.weight);
  std::size_t best = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!tried(all[i], policy, weights, requests)) continue;
    ++out.plans;
    // What was promised most goes on unless another carries clearly more.
    if (i > 0 && all[i].z * all[i].kept.part > 1.005 * all[best].z * all[best].kept.part) best = i;
  }
  Candidate& chosen = all[best];
  if (out.plans > 0) {
    out.tried = true;
    out.promised = chosen.kept.in_time;
    out.kept = std::min(1.0, chosen.kept.part);
    out.most = chosen.kept.part;
    if (out.kept > 0 && out.kept < 1) lower(chosen, out.kept);
  }
  outcome.file = std::move(chosen.file);
  outcome.shared = outcome.file.plan.budget_ns.empty();
  outcome.solution.certificate = outcome.file.plan.certificate;
  if (outcome.carried > 0) {
    outcome.carried = outcome.solution.certificate.objective;
    outcome.feasible = outcome.carried >= 1 - 1e-9;
  }
  return out;
}

}  // namespace leat::planner
