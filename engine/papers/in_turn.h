// Requests in turn: one batch each is dealt to all consumers of the same throughput-cost ratio, one request at a time.
// The next round goes to whoever can start a new batch first; at a tie the larger ratio. It is what Harpagon compares
// its dispatch with (section III-B; worst case 2 d), and how the system that PARD measures in feeds its workers.
#pragma once

#include "engine/papers/queues.h"

namespace leat::papers {

class InTurn final : public RatioOrder {
 public:
  explicit InTurn(Site& site) : RatioOrder(site), next_(site.view.model, site.component) {}
  void plan() override;
  [[nodiscard]] QueueId place(ModuleId m, const Task& task) noexcept override;
  void visit_state(Snapshot& state) override { state(rounds_, next_); }

 private:
  struct Round {
    std::int64_t ratio = 0;
    TimeNs next_start_ns = 0;      // when its consumer can start the batch after those assigned
    std::uint32_t block_left = 0;  // items still to come in this round
  };
  [[nodiscard]] bool begin_round(QueueId first, QueueId end) noexcept;

  ByQueue<Round> rounds_;
  ByModule<std::uint32_t> next_;  // the queue whose turn it is, within the module's
};

}  // namespace leat::papers
