// PPipe's planning scenarios and stored plans (scenarios.json, reference_plans.json beside its CSV tables). Any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "leat/result.hpp"
#include "planner/pooled/problem.h"

namespace leat::planner {

struct Scenario {
  std::string id, family;
  PooledProblem problem;                    // its DNNs point into ScenarioSet::profiles
  std::vector<double> slo_us;               // of each DNN, whole; the problem's budgets have the margin taken off
  std::map<std::string, double> reference;  // "np", "dart_r", "ppipe": normalized rps
  std::map<std::string, double> reference_seconds;
  double whole_gpu_optimum = 0;                             // of the independent check; 0: not stated
  std::map<std::string, std::vector<PooledDnnPlan>> plans;  // stored plans by method; empty where the file is absent
};

struct ScenarioSet {
  std::vector<Profile> profiles;
  std::vector<Scenario> scenarios;
};

Result<ScenarioSet> read_scenarios(const std::string& directory);

}  // namespace leat::planner
