// The scheduler of partitions that several modules share: start the largest batch of which every member could be
// carried to the end by this one partition; of several modules', the one with the most worth per time.
//
// For module k on partition p: T_k(b, p) is the time that p alone would need to carry b items from here to the end of
// their requests, later modules' items and batches in proportion. Waiting tasks stand by deadline; a window is a run of
// them.
//   the window      b = the most that fit: the b-th latest deadline is no earlier than start + T_k(b, p). It begins at
//                   the first task that permits b. In light load that is the whole queue, oldest first; under overload
//                   it skips just those for whose sake every batch would be small. They stay for a lull.
//   its worth       requests / T_k(full, p), full being what its oldest would still permit when a partition is free
//                   again: density of a full batch x how full it is. A batch that can still grow waits if something
//                   fuller is there; later modules have less to come, so begun work mostly goes first. Times how rare
//                   the module is, all partitions to those that hold it, so that each prefers what few others can do.
// No cap, no rate, no admission: a task is given up when it could not be carried to the end alone on the fastest
// partition. Where run times differ from the profile, T is rho x T and z standard deviations of it, both learned.
//
// Classes come before worth; background work that is owed its budget stands as in periodic.h. Periodic streams that
// share a partition with another class are look-ahead's, as with queues.
#pragma once

#include <vector>

#include "engine/core/policy/canary.h"
#include "engine/core/policy/freshest.h"
#include "engine/core/policy/look_ahead/periodic.h"
#include "engine/core/policy/registry.h"

namespace leat::core {

class WindowScheduler final : public ComponentScheduler, private Starter {
 public:
  explicit WindowScheduler(const Making& from);

  bool next(PartitionId partition) noexcept override;
  void leftover(QueueId queue, ConsumerId refused) noexcept override;
  void started(std::uint32_t batch) noexcept override;
  void forget_scale() noexcept override;
  void ended(std::uint32_t batch, TimeNs ran, bool usual) noexcept override;
  void visit_state(Snapshot& state) override { state(periodic_, canaries_, scale_, as_profiled_); }

 private:
  struct Step {  // one module of the way from k to the end
    ModuleId module = 0;
    const TimeNs* run_ns = nullptr;
    std::uint32_t batch = 1;  // the largest
    double ratio = 1;         // of its items to those of module k
    [[nodiscard]] TimeNs run(std::uint32_t b) const noexcept;
  };
  struct Way {  // T_k on one kind of partition
    std::vector<Step> steps;
    std::vector<TimeNs> ns;  // [b], as profiled
    double speeds = 1;       // all partitions of the module, in units of this kind
    [[nodiscard]] std::uint32_t max_items() const noexcept { return static_cast<std::uint32_t>(ns.size() - 1); }
  };
  struct Scale {  // run time / profile
    double mean = 1, variance = 0;
    FarOff far_off;
  };
  struct Choice {
    std::uint32_t rank = 0;
    double worth = 0;
    TimeNs deadline_ns = kNever;
    ConsumerId consumer = kNone;
    std::uint32_t items = 0;  // of the highest level
    std::uint32_t total = 0;  // with lower ones that ride along
    TaskId first = kNone;
    bool all = false;    // of that level: none is left out for the others' sake
    bool fresh = false;  // taken in the order of freshest.h, `first` before the others
    [[nodiscard]] bool within_share() const noexcept { return rank >= 2 * kPriorities; }  // of its user
    [[nodiscard]] bool better(const Choice& o) const noexcept;
  };

  [[nodiscard]] const TaskQueue& queue(QueueId id) const noexcept { return view_.queues[id]; }
  [[nodiscard]] const QueueConsumer& consumer(ConsumerId id) const noexcept { return view_.queues.consumer(id); }
  [[nodiscard]] const Task& task(TaskId id) const noexcept { return view_.tasks[id]; }
  [[nodiscard]] const Way& way(ConsumerId s) const noexcept { return ways_[way_of_[s - first_consumer_]]; }
  [[nodiscard]] std::uint32_t max_items(ConsumerId s) const noexcept { return view_.route(consumer(s).route).batch; }
  // The same where that pays: tasks of several items are let into larger batches, since they are no choice of ours.
  [[nodiscard]] std::uint32_t cap(ConsumerId s) const noexcept {
    const TaskQueue& l = queue(consumer(s).queue);
    return l.items > l.tasks ? max_items(s) : view_.paying.of(consumer(s).route);
  }
  [[nodiscard]] TimeNs to_end(const Way& way, std::uint32_t b, double deviations) const noexcept;
  [[nodiscard]] std::uint32_t fit(ConsumerId s, TimeNs room) const noexcept;
  void drop_hopeless(const TaskQueue& queue, TimeNs start) noexcept;
  [[nodiscard]] std::uint32_t window(const DeadlineQueue& waiting, const Way& way, TimeNs start, std::uint32_t base,
                                     std::uint32_t max) const noexcept;
  [[nodiscard]] Pace pace(ConsumerId s, TimeNs start, std::uint32_t items) const noexcept;
  void look_fresh(const TaskQueue& queue, std::uint8_t level, TimeNs start, Choice& choice) const noexcept;
  void look_by_deadline(const TaskQueue& queue, std::uint8_t level, TimeNs start, Choice& choice) const noexcept;
  [[nodiscard]] TaskId head(const DeadlineQueue& waiting, ConsumerId s) const noexcept;
  [[nodiscard]] std::uint32_t room_below(ConsumerId s, TimeNs left) const noexcept;
  [[nodiscard]] Choice look(ConsumerId s, TimeNs start) noexcept;
  [[nodiscard]] Choice choose(std::span<const Choice> choices, TimeNs start) const noexcept;
  void fill(const Choice& choice, TimeNs start) noexcept;
  void launch(ConsumerId s, TimeNs start, bool canary = false) noexcept;
  [[nodiscard]] bool late(TaskId task) const noexcept;
  [[nodiscard]] bool try_canary(PartitionId partition) noexcept;
  void make_ways();
  void start_chosen(ConsumerId consumer, TaskId lead, std::uint32_t requests) noexcept override;
  [[nodiscard]] std::uint32_t cap_for(ConsumerId s) const noexcept override { return max_items(s); }

  const double risk_;  // z: standard deviations of the time to the end that are kept free
  Periodic periodic_;
  Canaries canaries_;
  ConsumerId first_consumer_;
  std::vector<Way> ways_;
  std::vector<std::uint32_t> way_of_;  // by consumer
  ByModule<std::uint32_t> fastest_;    // the way of its fastest partition
  ByModule<Scale> scale_;
  ByModule<double> rarity_;  // partitions of the component to those that hold it; 1: all do
  bool as_profiled_ = true;  // every module's latency scale is 1, without deviation: ways' tables hold
};

}  // namespace leat::core
