// Partitions that periodic streams share with work of another class: what look_ahead.h needs to know, and what is made
// of its move. Used by the schedulers of queues; it owns the promises and the background's credit.
//
// Only streams of applications of one module are seen as periodic; whatever else waits for the partition is a single
// request of its queue's most urgent class. Among equals, and with more sources than it can weigh, the scheduler's own
// order decides.
#pragma once

#include <vector>

#include "engine/core/policy/look_ahead/look_ahead.h"
#include "engine/core/policy/scheduler_interface.h"
#include "engine/core/snapshot.h"

namespace leat::core {

enum class Turn : std::uint8_t { not_shared, started, idle };

// The scheduler that look-ahead works for.
class Starter {
 public:
  // Starts a batch of at most `requests` that `lead` begins, or gives it up.
  virtual void start_chosen(ConsumerId consumer, TaskId lead, std::uint32_t requests) noexcept = 0;
  [[nodiscard]] virtual std::uint32_t cap_for(ConsumerId consumer) const noexcept = 0;

 protected:
  ~Starter() = default;
};

class Periodic {
 public:
  Periodic(const StateView& view, Operations& core, const Component& component, const Policy& policy);

  [[nodiscard]] bool active() noexcept;  // it may have a say at some partition
  [[nodiscard]] Turn serve(PartitionId partition, Starter& starter) noexcept;
  [[nodiscard]] std::uint32_t rank_of(std::uint8_t level) noexcept;  // among queues; larger first
  void spend_background(TimeNs run) noexcept;
  void promised(ConsumerId consumer, std::uint32_t items, TimeNs start) noexcept;            // a batch has been sent
  [[nodiscard]] std::uint32_t margin_permille() const noexcept { return margin_permille_; }  // of promises
  // What background work has had; and the margin of promises, from a batch that is as others may be.
  void learn(const Batch& batch, TimeNs ran, bool usual) noexcept;
  void visit_state(Snapshot& state) {
    state(scaled_, promised_ns_, streams_, seen_version_, margin_permille_, background_credit_ns_, background_ns_);
  }

 private:
  struct Known;
  // A route's times at its module's latency scale, where that is below the profile's.
  struct Scaled {
    std::int64_t permille = 0;
    std::vector<TimeNs> run_ns, safe_ns;
    void visit_state(Snapshot& state) { state(permille, run_ns, safe_ns); }
  };
  struct Tables {
    const TimeNs* run_ns;
    const TimeNs* safe_ns;
  };
  [[nodiscard]] Tables tables_of(const QueueConsumer& consumer) noexcept;
  [[nodiscard]] bool add_stream(Known& known, StreamId id) noexcept;
  void add_machines(Known& known, bool busy) noexcept;
  [[nodiscard]] bool add_others(Known& known) noexcept;

  const StateView& view_;
  Operations& core_;
  const Component& component_;
  std::vector<Scaled> scaled_;       // by route; only the component's have room
  ByPartition<TimeNs> promised_ns_;  // when it is free at the latest, going by the safe bound
  std::vector<StreamId> streams_;    // the component's periodic ones
  std::uint64_t seen_version_ = 0;   // of the ledger's list
  std::uint32_t margin_permille_;
  const bool look_ahead_;
  const TimeNs window_ns_, budget_ns_;  // of background work in each window
  TimeNs background_credit_ns_;         // run time that background work is owed; below 0: it has had more
  TimeNs background_ns_ = 0;            // when that was
  Starter* starter_ = nullptr;          // while serve() runs
};

}  // namespace leat::core
