// Harpagon's dispatch (section III-B): whole batches, in the order of throughput over cost.
#pragma once

#include "engine/core/policy/policy_keys.h"
#include "engine/papers/queues.h"

namespace leat::papers {

// Theorem 1's worst case is d + b / w. What it leaves out: requests are no fluid, and consumers of different run times
// drift past each other. So each consumer is fed such that it never waits for work and no task waits longer than the
// module's budget allows: its next batch may be collected from budget - d before the consumer is free, and of all that
// may collect, the one that is free first is served; at a tie a batch already begun, then the larger ratio.
class ByWindow final : public RatioOrder {
 public:
  using RatioOrder::RatioOrder;
  void plan() override;
  [[nodiscard]] QueueId place(ModuleId m, const Task& task) noexcept override;
  void launched(QueueId queue, ConsumerId consumer, std::uint32_t items) noexcept override;
  void visit_state(Snapshot& state) override { state(turns_); }

 private:
  struct Collecting {
    TimeNs budget_ns = 0;          // the module's
    TimeNs spacing_ns = 0;         // from a start on this route to the first of a consumer that stood idle; 0: none
    bool padded = false;           // its window brings no full batch; the plan counts on dummies
    TimeNs next_start_ns = 0;      // when its consumer can start the batch after those assigned
    std::uint32_t block_left = 0;  // items still to come in this batch
    TimeNs block_from_ns = 0;      // when its first came
  };
  [[nodiscard]] TimeNs collects_ns(QueueId l) const noexcept;
  void plan_module(ModuleId m);
  void end_padded_turns(QueueId first, QueueId end) noexcept;
  void end_turn(QueueId chosen, QueueId first, QueueId end) noexcept;

  ByQueue<Collecting> turns_;
};

// As section III-B prints it and Theorem 1 assumes it: batches in a row, consumers in ratio order, each as often as its
// rate asks for. A consumer's turn is due when its rate has earned it a whole batch; of those due the first in ratio
// order is next, and where none is, the one that is nearest. Nothing here looks at when a consumer is free.
class ByRate final : public RatioOrder {
 public:
  using RatioOrder::RatioOrder;
  void plan() override;
  [[nodiscard]] QueueId place(ModuleId m, const Task& task) noexcept override;
  void launched(QueueId queue, ConsumerId consumer, std::uint32_t items) noexcept override;
  void visit_state(Snapshot& state) override { state(turns_); }

 private:
  struct Turn {
    std::int64_t earns_nano = 0;   // of an item that comes to its module, its part
    std::int64_t due_nano = 0;     // billionths of an item that its rate has earned and no turn has used
    std::uint32_t block_left = 0;  // items still to come in this batch
  };
  ByQueue<Turn> turns_;
};

struct Harpagon {
  enum class Dispatch : std::uint8_t { tc, tc_rates, rr };
  Dispatch dispatch = Dispatch::tc;
};
extern const std::span<const Key<Harpagon>> kHarpagonKeys;
[[nodiscard]] Rules rules(Site& site, const Harpagon& settings);
void use(const Harpagon& settings, Policy& out);

}  // namespace leat::papers
