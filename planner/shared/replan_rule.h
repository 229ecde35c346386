// When other models on the partitions are looked for, and when they are worth a change: `replan = "auto"`. Every
// `look_ns`, with the rates of the time since the last look; no rates are predicted, since none that were tried do
// better. Where every partition holds every model that it runs, nothing is ever looked for. Pure; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/shared/residency.h"

namespace leat::planner {

struct ReplanRule {
  std::int64_t look_ns = 10'000'000'000;
  std::int64_t between_ns = 60'000'000'000;  // from one change to the next
  double busy = .9;                          // how busy partitions are to be
  double enough = 1.6;                       // z from which on nothing better is looked for
  double least_work = .02;                   // of the host, what each application is counted with at least
  double per_load = .03;                     // of z, that each model to be loaded must gain
  double least_gain = .02;                   // of z, that a change must gain
  double in_time = .99;  // requests of an application, below which something better is looked for whatever z is
};

// Does memory keep a model from a partition that could run it?
[[nodiscard]] bool memory_binds(const ResidencyProblem& problem);

// The problem's weights from what has arrived: requests a second of each application, of which each makes `items` of
// its modules'. `problem.weight` is set; cost_s stands already.
void set_weights(ResidencyProblem& problem, const std::vector<double>& requests_per_s, const std::vector<double>& items,
                 const ReplanRule& rule = {});

// How many times the weights the partitions carry while they are as busy as the rule has it.
[[nodiscard]] double carried(const ResidencyProblem& problem, const std::vector<std::vector<bool>>& held,
                             const ReplanRule& rule = {});

// worst: the least part of an application's requests that were in time since the last look; 1: nobody asked.
[[nodiscard]] inline bool looks_for_better(double carried, double worst, const ReplanRule& rule = {}) {
  return carried < rule.enough || worst < rule.in_time;
}
[[nodiscard]] inline bool worth_a_change(double now, double then, const ReplanRule& rule = {}) {
  return then >= now + rule.least_gain;
}

}  // namespace leat::planner
