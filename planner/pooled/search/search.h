// Exact search for the pooled problem: is there a plan whose every DNN reaches weight * z? (search.cpp says
// how; labels are made in labels.cpp, plans in plan.cpp.) Deterministic: effort is counted in steps,
// never in time. One thread an object.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/pooled/candidates.h"
#include "planner/pooled/lp.h"
#include "planner/pooled/problem.h"

namespace leat::planner {

enum class Answer : std::uint8_t { yes, no, too_long };
// Where to look: everywhere, or only within a few GPUs of the relaxation's own plan - in the slots it uses, or in any.
enum class Reach : std::uint8_t { everywhere, same_slots, nearby };

struct SearchRules {
  // Parts a GPU is counted in. 1: pipelines never share a GPU; a common multiple of all shares: they may.
  std::uint32_t unit = 1;
  // false: as the problem says - a slot holds one pipeline, and each (DNN, stage, type) takes whole GPUs. true: several
  // pipelines of one sequence of types, and any two shares may meet on a GPU.
  bool free = false;
};

class PooledSearch {
 public:
  // Keeps references to the first three.
  PooledSearch(const PooledProblem& problem, const std::vector<std::vector<Slot>>& slots, const PooledLp& lp,
               SearchRules rules);

  // `yes` fills plan with one that reaches z or more. `no` is a proof. `steps` bounds the effort. Looking elsewhere
  // than everywhere says too_long where it would say no.
  Answer reaches(double z, std::uint64_t steps, Reach reach, std::vector<PooledDnnPlan>& plan);
  std::uint64_t steps_taken() const { return steps_taken_; }

 private:
  static constexpr double kRound = 1e-12;  // relative; rates that differ by less are equal

  // One use of a slot: what it takes of each stage's pool (in units) and the rate it can carry.
  struct Label {
    double rps = 0, waste = 0;  // waste: price of its GPUs less the price of its rate; never negative
    std::uint32_t candidate = 0;
    std::uint32_t use[kMaxStages] = {};
    std::uint32_t count[kMaxStages] = {};  // whole GPUs (unit 1) or vGPUs
  };
  struct Pick {
    std::uint32_t slot = 0;
    Label label;
  };
  struct Option {                     // a way to serve one DNN
    std::vector<std::uint32_t> gpus;  // [type]
    double waste = 0;
    std::vector<Pick> picks;
  };
  struct Chain;  // a choice for the first DNNs

  static bool covers(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b);  // a <= b everywhere
  bool spend(std::uint64_t steps);
  void tighten(double z, const std::vector<double>& limits);
  Answer look(double z, std::vector<PooledDnnPlan>& plan);
  void stay_near(std::uint32_t dnn, double rate);
  bool make_labels(std::uint32_t dnn, double limit);
  std::vector<PooledLp::Range> candidate_ranges(std::uint32_t dnn, std::uint32_t slot, double limit) const;
  bool add_labels(std::uint32_t dnn, std::uint32_t slot, double limit, std::vector<Label>& out);
  bool make_options(std::uint32_t dnn, double rate, double limit);
  bool choose(std::uint32_t position, std::uint32_t copy, double rest);
  bool take(std::uint32_t position, std::uint32_t copy, const Label& label, double rest);
  bool seats(std::uint32_t slot, bool taken);
  void finish();
  bool combine(double limit, std::vector<PooledDnnPlan>& plan) const;
  std::vector<PooledDnnPlan> describe(const std::vector<const Option*>& options) const;
  double closed_waste(std::uint32_t position) const;
  void find_beginnings();

  const PooledProblem& problem_;
  const std::vector<std::vector<Slot>>& slots_;
  const PooledLp& lp_;
  const SearchRules rules_;
  const std::uint32_t unit_, grain_;  // grain: parts a GPU is given out in
  std::uint32_t types_ = 0, dnns_ = 0;
  std::uint64_t steps_left_ = 0, steps_taken_ = 0;
  Reach reach_ = Reach::everywhere;
  std::vector<std::vector<double>> min_gpus_;  // [dnn][type]: no plan that reaches z gives it fewer
  std::vector<double> max_gpus_;               // [type], of the DNN at hand: the counts less everybody else's least
  std::vector<std::vector<Option>> options_;   // [dnn]
  // state of one DNN's search
  std::uint32_t dnn_ = 0;
  double rate_ = 0, limit_ = 0;
  std::vector<PooledLp::Range> ranges_;     // [slot]
  std::vector<std::vector<Label>> labels_;  // [slot], ascending rate
  std::vector<std::uint32_t> order_;        // slots, shortest lists first
  std::vector<double> can_still_;           // [position]: rate the slots from here on can add
  std::vector<bool> must_still_;            // [position]: one of them must be used
  std::vector<std::uint32_t> pool_;         // [stage * types + type], units taken
  std::vector<std::uint32_t> last_user_;    // [pool]: position after which nobody adds to it
  std::vector<std::vector<std::uint32_t>>
      beginnings_;                   // [slot]: indexes into room_ of the sequences it begins with, itself included
  std::vector<std::uint32_t> room_;  // pipelines that may still begin so
  bool enough_ = false;              // one option is all that was wanted
  std::vector<Pick> picks_;
  double waste_ = 0;  // of the picks, before pools are rounded up
};

}  // namespace leat::planner
