// ELSA (PARIS and ELSA, section IV): where a request goes on partitions of several sizes; and what it is compared with.
#pragma once

#include "engine/core/policy/policy_keys.h"
#include "engine/papers/queues.h"

namespace leat::papers {

// Of a queue: run time of what is queued there (equation 1).
class Waits {
 public:
  void size(const Site& site) { site.size_by_queue(queued_ns_); }
  void joined(const Site& site, QueueId l, const Task& t) noexcept { queued_ns_[l] += site.run_ns(l, t); }
  void left(const Site& site, QueueId l, const Task& t) noexcept { queued_ns_[l] -= site.run_ns(l, t); }
  // T_wait = run time of what is queued there + what remains of the batches it holds.
  [[nodiscard]] TimeNs of(const Site& site, QueueId l) const noexcept {
    const Partition& p = site.view.machine.partition(site.consumer_of(l).partition);
    return queued_ns_[l] + std::max<TimeNs>(0, p.free_ns - site.view.now);
  }
  void visit_state(Snapshot& state) { state(queued_ns_); }

 private:
  ByQueue<TimeNs> queued_ns_;
};

// What is placed by the waits of all queues.
class ByWaits : public Dispatch {
 public:
  using Dispatch::Dispatch;
  void plan() final { waits_.size(site_); }
  void joined(QueueId l, const Task& t) noexcept final { waits_.joined(site_, l, t); }
  void left(QueueId l, const Task& t) noexcept final { waits_.left(site_, l, t); }
  void visit_state(Snapshot& state) final { state(waits_); }

 protected:
  Waits waits_;
};

// Algorithm 2. Step A: of the partitions from small to large the first with slack; step B: where none has, the one that
// would end first. Slack = SLA - alpha (T_wait + beta T_new) > 0 (equation 2).
class SlackPlacement final : public ByWaits {
 public:
  SlackPlacement(Site& site, std::uint32_t alpha_permille, std::uint32_t beta_permille)
      : ByWaits(site), alpha_permille_(alpha_permille), beta_permille_(beta_permille) {}
  [[nodiscard]] bool before(const QueueConsumer& a, const QueueConsumer& b) const noexcept override {
    const auto& partitions = site_.view.topology().partitions;
    return partitions[a.partition].size < partitions[b.partition].size;
  }
  [[nodiscard]] QueueId place(ModuleId m, const Task& t) noexcept override;

 private:
  const std::uint32_t alpha_permille_, beta_permille_;
};

// The queue with the least T_wait.
class LeastWait final : public ByWaits {
 public:
  using ByWaits::ByWaits;
  [[nodiscard]] QueueId place(ModuleId m, const Task& t) noexcept override;
};

// FIFS, first idle, first served: a request waits until some partition is idle, and takes the first in the plan's
// order.
class FirstIdle final : public Dispatch {
 public:
  using Dispatch::Dispatch;
};

// Any partition that is up, or any idle one.
class AnyPartition final : public Dispatch {
 public:
  using Dispatch::Dispatch;
  [[nodiscard]] QueueId place(ModuleId m, const Task& t) noexcept override;
  [[nodiscard]] ConsumerId offer(QueueId l) noexcept override;
};

struct Elsa {
  enum class Place : std::uint8_t { elsa, min_wait, rr, random };
  Place place = Place::elsa;
  bool expired = false;  // what has expired is dropped
  std::uint32_t alpha_permille = 1000, beta_permille = 1000;
};
extern const std::span<const Key<Elsa>> kElsaKeys;
[[nodiscard]] Rules rules(Site& site, const Elsa& settings);
void use(const Elsa& settings, Policy& out);

struct Fifs {
  bool random = false;   // any idle partition, not the first
  bool expired = false;  // what has expired is dropped
};
extern const std::span<const Key<Fifs>> kFifsKeys;
[[nodiscard]] Rules rules(Site& site, const Fifs& settings);
void use(const Fifs& settings, Policy& out);

}  // namespace leat::papers
