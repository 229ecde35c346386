#include "planner/harpagon/harpagon.h"

#include <algorithm>
#include <cmath>

namespace leat::planner {
namespace {

// Machines that `rate` fills; a hair below a whole number counts as that number.
double whole_machines(double rate_rps, const Configuration& c) {
  return std::floor(rate_rps / c.throughput_rps() * (1 + kRelative));
}

double full_latency_s(Dispatch dispatch, const Configuration& c, double remaining_rps, double machines) {
  switch (dispatch) {
    case Dispatch::throughput_cost:
      return c.duration_s + c.batch / remaining_rps;
    case Dispatch::round_robin:
      return 2 * c.duration_s;
    case Dispatch::per_tuple:
      return c.duration_s + c.batch / (machines * c.throughput_rps());
  }
  return kNoPlan;
}

bool within(double latency_s, double budget_s) { return latency_s <= budget_s * (1 + kRelative); }

struct Generator {
  std::span<const Configuration> configurations;
  double budget_s;
  const ModuleOptions& options;

  bool fits(const Configuration& c, double remaining_rps) const {
    return within(worst_case_latency_s(options.dispatch, c, remaining_rps), budget_s);
  }
  // All of `remaining` on one configuration: its full machines and its partial one.
  bool carries_all(const Configuration& c, double remaining_rps) const {
    if (!fits(c, remaining_rps)) return false;
    const double rest = remaining_rps - whole_machines(remaining_rps, c) * c.throughput_rps();
    return rest <= kRelative * remaining_rps || fits(c, rest);
  }
  static void add(std::vector<Tuple>& tuples, const Configuration& c, double machines) {
    if (!tuples.empty() && tuples.back().configuration.batch == c.batch &&
        tuples.back().configuration.hardware == c.hardware)
      tuples.back().machines += machines;
    else
      tuples.push_back({c, machines});
  }
  // Algorithm 1. Returns what no configuration could take.
  double generate(double rate_rps, std::vector<Tuple>& tuples) const {
    double remaining = rate_rps;
    std::size_t k = 0;
    while (remaining > kRelative * rate_rps && k < configurations.size()) {
      const Configuration& c = configurations[k];
      const bool same = !tuples.empty() && tuples.back().configuration.batch == c.batch &&
                        tuples.back().configuration.hardware == c.hardware;
      const bool last = options.tuples != 0 && tuples.size() + (same ? 0 : 1) >= options.tuples;
      if (last && !same ? !carries_all(c, remaining) : !fits(c, remaining)) {
        ++k;
        if (options.tuples != 0 && tuples.size() >= options.tuples) break;
        continue;
      }
      const double whole = whole_machines(remaining, c);
      if (whole >= 1) {
        add(tuples, c, whole);
        remaining -= whole * c.throughput_rps();
      } else {
        add(tuples, c, remaining / c.throughput_rps());
        remaining = 0;
      }
    }
    return std::max(0.0, remaining <= kRelative * rate_rps ? 0 : remaining);
  }
};

// tuples[0..i] with one more full machine at i in place of everything after it: dum_i = t_i - u_i (section III-C).
ModuleSchedule filled_at(const std::vector<Tuple>& tuples, std::size_t i, double rate_rps, Dispatch dispatch) {
  ModuleSchedule out;
  out.tuples.assign(tuples.begin(), tuples.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  out.tuples[i].machines = std::floor(out.tuples[i].machines * (1 + kRelative)) + 1;
  double served = 0;
  for (const Tuple& t : out.tuples) served += t.rate_rps();
  out.dummy_rps = served - rate_rps;
  evaluate(dispatch, out);
  return out;
}

}  // namespace

std::vector<std::vector<std::uint32_t>> predecessors(const HarpagonProblem& problem) {
  std::vector<std::vector<std::uint32_t>> after;
  for (const HarpagonModule& m : problem.modules) after.push_back(m.after);
  return after;
}

void order_by_ratio(std::vector<Configuration>& configurations) {
  std::sort(configurations.begin(), configurations.end(), [](const Configuration& a, const Configuration& b) {
    const double x = a.cost_per_request(), y = b.cost_per_request();
    if (x != y) return x < y;
    if (a.duration_s != b.duration_s) return a.duration_s < b.duration_s;
    return a.hardware < b.hardware;
  });
}

double worst_case_latency_s(Dispatch dispatch, const Configuration& c, double remaining_rps) {
  const double whole = whole_machines(remaining_rps, c);
  if (whole < 1) return c.duration_s + c.batch / remaining_rps;
  return full_latency_s(dispatch, c, remaining_rps, whole);
}

void evaluate(Dispatch dispatch, ModuleSchedule& schedule) {
  double remaining = 0;
  for (const Tuple& t : schedule.tuples) remaining += t.rate_rps();
  schedule.cost = schedule.tuples.empty() ? kNoPlan : 0;
  schedule.latency_s = 0;
  for (const Tuple& t : schedule.tuples) {
    schedule.cost += t.machines * t.configuration.price;
    const double whole = std::floor(t.machines * (1 + kRelative));
    if (whole >= 1)
      schedule.latency_s = std::max(schedule.latency_s, full_latency_s(dispatch, t.configuration, remaining, whole));
    const double partial = (t.machines - whole) * t.configuration.throughput_rps();
    if (t.machines - whole > kRelative * std::max(1.0, t.machines))
      schedule.latency_s = std::max(schedule.latency_s, t.configuration.duration_s + t.configuration.batch / partial);
    remaining -= t.rate_rps();
  }
}

ModuleSchedule schedule_module(std::span<const Configuration> configurations, double rate_rps, double budget_s,
                               const ModuleOptions& options) {
  const Generator generator{configurations, budget_s, options};
  std::vector<Tuple> tuples;
  const double left = generator.generate(rate_rps, tuples);
  ModuleSchedule best;
  if (left == 0) {
    best.tuples = tuples;
    evaluate(options.dispatch, best);
  }
  if (left > 0 || options.dummies)
    for (std::size_t i = 0; i < tuples.size(); ++i) {
      ModuleSchedule filled = filled_at(tuples, i, rate_rps, options.dispatch);
      if (within(filled.latency_s, budget_s) && filled.cost < best.cost * (1 - kRelative)) best = std::move(filled);
    }
  if (best.feasible()) return best;
  // No configuration takes the rest in time at the rest's own rate: whole machines of one more, the last of them
  // padded.
  for (const Configuration& c : configurations) {
    if (!tuples.empty() && c.cost_per_request() < tuples.back().configuration.cost_per_request()) continue;
    if (options.tuples != 0 && tuples.size() >= options.tuples) break;
    ModuleSchedule padded;
    padded.tuples = tuples;
    Generator::add(padded.tuples, c, std::ceil(left / c.throughput_rps() * (1 - kRelative)));
    padded.dummy_rps = -rate_rps;
    for (const Tuple& t : padded.tuples) padded.dummy_rps += t.rate_rps();
    evaluate(options.dispatch, padded);
    if (within(padded.latency_s, budget_s) && padded.cost < best.cost) best = std::move(padded);
  }
  return best;
}

ModuleSchedule reassign_residual(std::span<const Configuration> configurations, const ModuleSchedule& schedule,
                                 double rate_rps, double budget_s, const ModuleOptions& options) {
  if (schedule.tuples.empty()) return schedule;
  Tuple majority = schedule.tuples.front();
  majority.machines = std::floor(majority.machines * (1 + kRelative));
  const double residual = rate_rps - majority.rate_rps();
  if (residual <= kRelative * rate_rps) return schedule;
  ModuleOptions rest_options = options;
  if (options.tuples != 0 && majority.machines >= 1) rest_options.tuples = options.tuples - 1;
  if (options.tuples == 1 && majority.machines >= 1) return schedule;
  ModuleSchedule rest = schedule_module(configurations, residual, budget_s, rest_options);
  if (!rest.feasible()) return schedule;
  ModuleSchedule whole;
  whole.dummy_rps = rest.dummy_rps;
  if (majority.machines >= 1) whole.tuples.push_back(majority);
  for (const Tuple& t : rest.tuples) Generator::add(whole.tuples, t.configuration, t.machines);
  std::stable_sort(whole.tuples.begin(), whole.tuples.end(), [](const Tuple& a, const Tuple& b) {
    return a.configuration.cost_per_request() < b.configuration.cost_per_request();
  });
  // A better ratio than the majority's would put a partial machine first: the machine model has it last.
  for (std::size_t i = 0; i + 1 < whole.tuples.size(); ++i)
    if (std::abs(whole.tuples[i].machines - std::round(whole.tuples[i].machines)) >
        kRelative * whole.tuples[i].machines)
      return schedule;
  evaluate(options.dispatch, whole);
  return within(whole.latency_s, budget_s) && whole.cost < schedule.cost * (1 - kRelative) ? whole : schedule;
}

}  // namespace leat::planner
