#include "tools/plan/tried_plan.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <vector>

#include "engine/core/policy/policy_settings.h"
#include "engine/sim/kept_rate.h"

namespace leat::planner {
namespace {

constexpr std::size_t kMaxPartitions = 4096;  // beyond, waits vanish and a simulation takes long
constexpr double kInTime = .992;              // so that 99 % of other draws are in time too
constexpr double kAbove = 2;                  // of the promise; so far up plans are compared
constexpr double kClearly = 1.005;            // what another plan must carry to be taken instead
constexpr double kNoise = 1.08;               // what one draw may be off by: closer calls are judged on more of them
constexpr std::uint64_t kMoreDraws[] = {11, 12};

struct Candidate {
  PlanFile file;
  double z = 0;  // promised, in the objective's unit
  sim::KeptRate kept;
  double carries = 0;  // z that it keeps
};

// What the daemon's core keeps of `c.z` times the weights.
sim::KeptRate kept(const Candidate& c, const core::Topology& t, const core::Policy& policy, std::vector<double> weights,
                   std::uint64_t requests, std::uint64_t seed) {
  for (double& rate : weights) rate *= c.z;
  return sim::kept_rate(t, policy, weights, {.in_time = kInTime, .requests = requests, .max = kAbove, .seed = seed});
}

bool tried(Candidate& c, const core::Policy& policy, const std::vector<double>& weights, std::uint64_t requests) {
  const core::Topology t = core::Topology::from(c.file.plan, c.file.applications);
  if (!(c.z > 0) || !t.problem().empty()) return false;
  c.kept = kept(c, t, policy, weights, requests, 1);
  c.carries = c.z * c.kept.part;
  return true;
}

// The mean of this draw and more.
double carries_on_average(const Candidate& c, const core::Policy& policy, const std::vector<double>& weights,
                          std::uint64_t requests) {
  const core::Topology t = core::Topology::from(c.file.plan, c.file.applications);
  double sum = c.carries;
  for (const std::uint64_t seed : kMoreDraws) sum += c.z * kept(c, t, policy, weights, requests, seed).part;
  return sum / static_cast<double>(1 + std::size(kMoreDraws));
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
      outcome.file.plan.partitions.size() > kMaxPartitions)
    return out;
  std::vector<Candidate> all = {{std::move(outcome.file), outcome.solution.certificate.objective, {}, 0}};
  for (OtherPlan& other : outcome.others) all.push_back({std::move(other.file), other.z, {}, 0});
  outcome.others.clear();
  std::vector<double> weights;
  for (const Application& a : request.applications) weights.push_back(a.rate_rps > 0 ? a.rate_rps : a.weight);
  double max = 0;
  for (Candidate& c : all) {
    if (!tried(c, policy, weights, requests)) continue;
    ++out.plans;
    max = std::max(max, c.carries);
  }
  const auto close = [&](const Candidate& c) { return c.carries * kNoise >= max && max > 0; };
  if (std::count_if(all.begin(), all.end(), close) > 1)
    for (Candidate& c : all) c.carries = close(c) ? carries_on_average(c, policy, weights, requests) : 0;
  // What was promised most goes on unless another carries clearly more.
  std::size_t best = 0;
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i].carries > kClearly * all[best].carries) best = i;
  Candidate& chosen = all[best];
  if (out.plans > 0) {
    out.tried = true;
    out.promised = chosen.kept.in_time;
    out.kept = std::min(1.0, chosen.kept.part);
    out.max = chosen.kept.part;
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
