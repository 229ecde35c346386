// PARD: proactive dropping with a look at what is before and behind (equation 3), and adaptive priority (section 4.3).
#pragma once

#include "engine/papers/budgets.h"
#include "engine/papers/pard/sliding_window.h"

namespace leat::papers {

// L(k) = (t_e - t_s) + d_k + L_sub > SLO, t_e when the batch would start, d_k of the planned batch;
// L_sub = sum of q_i + sum of d_i + W_k over the modules after k, the maximum over the DAG's paths.
class ProactiveDrop final : public DropRule {
 public:
  // What L_sub has (Table 1): nothing (PARD-back), d alone (PARD-sf), all of q, d and W.
  enum class Downstream : std::uint8_t { none, execution, all };
  // W_k: the lambda quantile of summed batch waits, 0 (PARD-lower), or the sum of later d (PARD-upper).
  enum class Wait : std::uint8_t { quantile, lower, upper };
  struct Settings {
    Downstream downstream = Downstream::all;
    Wait wait = Wait::quantile;
    std::uint32_t lambda_permille = 100;
  };
  ProactiveDrop(Site& site, const Settings& settings);
  [[nodiscard]] Reason judge(const Task& t, TimeNs start, TimeNs d) const noexcept override;
  [[nodiscard]] bool spares(const Task& t, TimeNs start, TimeNs d) noexcept override;
  void estimates(const Estimates& seen) noexcept override;
  void visit_state(Snapshot& state) override { state(modules_); }

 private:
  struct OfModule {
    TimeNs after_ns = 0;               // L_sub
    TimeNs spared_ns = INT64_MIN / 2;  // when one of its tasks was let through although L_sub condemned it
  };
  Site& site_;
  const Settings settings_;
  ByModule<OfModule> modules_;
};

// mu = T_in / T_m, the rate at which items come over what the module can do. mu > 1 + eps: the largest remaining budget
// first; mu < 1 - eps: the smallest; in between as before. eps = |T_in - T_smooth| / T_smooth with T_in over a fifth of
// the window and T_smooth over all of it; PARD-instant has none.
class AdaptivePriority final : public Order {
 public:
  AdaptivePriority(Site& site, TimeNs window_ns, bool instant);
  void arrived(const Task& t) noexcept override;
  void visit_state(Snapshot& state) override { state(modules_); }
  [[nodiscard]] First of(ModuleId m) const noexcept override {
    return modules_[m].largest_first ? First::largest_budget : First::least_budget;
  }

 private:
  struct OfModule {
    SlidingWindow arrivals;
    bool largest_first = false;
  };
  void update(ModuleId m) noexcept;
  Site& site_;
  const TimeNs window_ns_;
  const bool instant_;
  ByModule<OfModule> modules_;
};

}  // namespace leat::papers
