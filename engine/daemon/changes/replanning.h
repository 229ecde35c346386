// `replan = "auto"`: where memory keeps models from partitions, which one holds which follows the load. Every
// Config::replan_look_ns what has arrived since the last look is laid against what the partitions carry
// (planner/shared/replan_rule.h). Where that is little, or an application misses its objective, leat-plan looks for
// better sets as a child; a plan that is worth it is put in force as `leat plan --apply` does, at most one in six
// looks. Where all models are everywhere nothing is ever looked for.
//
// Whatever becomes of the child (it fails, hangs, or answers nonsense) costs one line in the log; the plan in force
// stays. Thread rule: the control thread. Nothing here waits for the child.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/daemon/changes/live_change.h"
#include "engine/daemon/deployment/plan/memory.h"
#include "engine/daemon/deployment/plan/planner_files.h"
#include "engine/daemon/metrics/metrics.h"
#include "planner/shared/replan_rule.h"
#include "tools/base/json/json.h"
#include "tools/base/subprocess/process.h"

namespace leat::daemon {

class Replanning {
 public:
  struct Environment {
    const InForce& now;
    Metrics& metrics;
    const LiveChange& change;
    std::string solver;  // leat-plan
    std::function<Result<std::uint64_t>(ChangeRequest)> ask;
  };
  Replanning(Environment environment, std::int64_t now);

  void advance(std::int64_t now);
  void on_child(std::int64_t now);  // a child of this process has ended, perhaps this one's
  [[nodiscard]] std::int64_t next_due() const noexcept;
  [[nodiscard]] Json status() const;

 private:
  struct Count {
    std::uint64_t arrived = 0, given_up = 0;
  };
  void look(std::int64_t now);
  [[nodiscard]] std::vector<double> take_rates(std::int64_t now);
  void begin(std::int64_t now, const std::vector<double>& rates);
  void judge(std::int64_t now, const subprocess::Ending& how);
  [[nodiscard]] bool consider(std::int64_t now, const planner::PlanFile& plan);
  void fail(std::int64_t now, const std::string& line);
  void see_outcome(std::int64_t now);
  [[nodiscard]] Result<planner::PlanFile> answer(const subprocess::Ending& how) const;
  [[nodiscard]] std::string text_of_moves(const std::vector<std::vector<bool>>& holds) const;

  Environment env_;
  planner::ReplanRule rule_;
  std::unique_ptr<PlannerFolder> folder_;  // from the first question on
  subprocess::Process child_;
  std::int64_t child_until_ns_ = INT64_MAX, look_ns_, looked_ns_, free_ns_ = 0;
  std::vector<Count> counts_;                // [module of all applications], at the last look
  std::vector<std::uint64_t> late_answers_;  // [application], at the last look
  Residents residents_;                      // as the child was asked about
  double carried_ = 0, worst_ = 1;
  bool on_ = false, binds_ = false, late_ = false;  // late: the child was killed
  std::uint64_t plans_ = 0;                         // asked for, for their names
  std::string plan_, in_force_;                     // the latest one's path, and that of the one that is served
  std::optional<std::uint64_t> asked_;
  std::uint64_t changes_ = 0, failures_ = 0;
  std::string line_;  // of the latest change or failure
};

}  // namespace leat::daemon
