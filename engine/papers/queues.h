// What the papers' schedulers of queues have in common: tasks wait in a queue of their module or of one worker of it; a
// partition that falls idle forms a batch of the most urgent queue's tasks, giving up those that its drop rule
// condemns. A paper is what it puts into four places:
//
//   Order     which waiting task is next        Dispatch  whose queue a task joins, and which idle consumer is asked
//   DropRule  when a waiting task is given up   Batching  how large a batch is
//
// A rule belongs to one scheduler of one component. It reads through its Site and acts through the same few operations.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "engine/core/policy/registry.h"

namespace leat::papers {

using namespace core;  // a scheduler is written in the core's words

// Values for the component's queues, which stand side by side.
template <class T>
class ByQueue {
 public:
  void resize(QueueId first, std::size_t n) {
    first_ = first;
    values_.assign(n, T{});
  }
  [[nodiscard]] T& operator[](QueueId l) noexcept { return values_[l - first_]; }
  [[nodiscard]] const T& operator[](QueueId l) const noexcept { return values_[l - first_]; }
  void visit_state(Snapshot& state) { state(values_); }

 private:
  QueueId first_ = 0;
  std::vector<T> values_;
};

// What a module's consumers do at the plan's batches.
struct ModulePlan {
  TimeNs run_ns = 0;              // d: mean over its consumers
  std::int64_t capacity_mhz = 0;  // T_m: items per 1000 s; a partition that n modules share counts 1/n
};

// What a rule reads, and what it may do.
struct Site {
  const StateView& view;
  Operations& core;
  const Component& component;
  ByModule<ModulePlan> plans;  // filled in when the queues are there
  std::uint64_t random;        // what draws; from Policy::seed

  [[nodiscard]] const TaskQueue& queue(QueueId id) const noexcept { return view.queues[id]; }
  [[nodiscard]] const QueueConsumer& consumer(ConsumerId id) const noexcept { return view.queues.consumer(id); }
  [[nodiscard]] const QueueConsumer& consumer_of(QueueId id) const noexcept {
    return consumer(queue(id).first_consumer);
  }
  [[nodiscard]] const Task& task(TaskId id) const noexcept { return view.tasks[id]; }
  [[nodiscard]] const ApplicationSpec& application(ModuleId m) const noexcept {
    return view.topology().applications[view.model.module(m).application];
  }
  [[nodiscard]] std::uint32_t cap(const QueueConsumer& s) const noexcept {
    return view.route(s.route).batch;
  }  // the plan's
  // Throughput at the plan's batch over price; scaled and cut off, so that equal configurations compare equal.
  [[nodiscard]] std::int64_t ratio(const QueueConsumer& s) const noexcept {
    const std::uint32_t b = cap(s);
    return static_cast<std::int64_t>(b * 1e15 / static_cast<double>(view.model.run_ns(s.route)[b]) /
                                     std::max(1e-9, view.topology().partitions[s.partition].price));
  }
  [[nodiscard]] bool up(QueueId l) const noexcept { return view.machine.partition(consumer_of(l).partition).up; }
  [[nodiscard]] TimeNs run_ns(QueueId l, const Task& t) const noexcept {  // of the task alone
    return consumer_of(l).run_ns[std::min(t.items, cap(consumer_of(l)))];
  }
  // The application's place in the component.
  [[nodiscard]] std::size_t place_of(std::uint32_t a) const noexcept {
    const auto& list = component.applications;
    return static_cast<std::size_t>(std::ranges::lower_bound(list, a) - list.begin());
  }
  template <class T>
  void size_by_queue(ByQueue<T>& values) const {
    const QueueId first = view.queues.first(component.modules.front());
    values.resize(first, view.queues.size() - first);
  }
  template <class Do>  // every consumer of the module
  void each_consumer(ModuleId m, Do&& act) const {
    const TaskQueue& last = queue(view.queues.first(m) + view.queues.count(m) - 1);
    for (ConsumerId v = queue(view.queues.first(m)).first_consumer; v < last.first_consumer + last.consumers; ++v)
      act(v);
  }
};

// The oldest first, or the one with the least or the largest remaining budget; priority classes come before any order.
class Order {
 public:
  enum class First : std::uint8_t { oldest, least_budget, largest_budget };
  explicit Order(First first) : first_(first) {}
  virtual ~Order() = default;
  virtual void visit_state(Snapshot&) {}
  virtual void arrived(const Task&) noexcept {}
  [[nodiscard]] virtual First of(ModuleId) const noexcept { return first_; }

 private:
  First first_;
};

class DropRule {
 public:
  virtual ~DropRule() = default;
  virtual void visit_state(Snapshot&) {}
  [[nodiscard]] virtual bool keeps_late() const noexcept { return false; }
  virtual bool admit(std::uint32_t) noexcept { return true; }  // an application's request
  // Before a batch is formed that would start at `start`.
  virtual void look_over(const TaskQueue&, const QueueConsumer&, TimeNs) noexcept {}
  // Of a task that has not expired: its batch would start at `start` (t_e) and take `d`. Reason::none: keep.
  [[nodiscard]] virtual Reason judge(const Task&, TimeNs, TimeNs) const noexcept { return Reason::none; }
  // Whether a task that was judged is let through all the same.
  [[nodiscard]] virtual bool spares(const Task&, TimeNs, TimeNs) noexcept { return false; }
  virtual void started(const Batch&) noexcept {}
  virtual void estimates(const Estimates&) noexcept {}
};

// Nothing is given up.
struct KeepAll final : DropRule {
  [[nodiscard]] bool keeps_late() const noexcept override { return true; }
};
// What has expired (Clipper); the skeleton sees to it.
struct DropExpired final : DropRule {};

class Dispatch {
 public:
  explicit Dispatch(Site& site) : site_(site) {}
  virtual ~Dispatch() = default;
  virtual void visit_state(Snapshot&) {}
  // In which order a module's consumers stand; among equals the plan's.
  [[nodiscard]] virtual bool before(const QueueConsumer&, const QueueConsumer&) const noexcept { return false; }
  virtual void plan() {}  // queues and plans are there
  // Tasks bound on arrival: the queue that the task joins, of a module with several.
  [[nodiscard]] virtual QueueId place(ModuleId m, const Task&) noexcept { return site_.view.queues.first(m); }
  virtual void joined(QueueId, const Task&) noexcept {}
  virtual void left(QueueId, const Task&) noexcept {}
  virtual void launched(QueueId, ConsumerId, std::uint32_t) noexcept {}  // a batch of so many items
  // Which idle consumer of the queue is asked.
  [[nodiscard]] virtual ConsumerId offer(QueueId l) noexcept { return site_.view.queues.idle_consumer(site_.queue(l)); }

 protected:
  Site& site_;
};

// Consumers by throughput over cost, the best first.
class RatioOrder : public Dispatch {
 public:
  using Dispatch::Dispatch;
  [[nodiscard]] bool before(const QueueConsumer& a, const QueueConsumer& b) const noexcept final {
    return site_.ratio(a) > site_.ratio(b);
  }
};

// greedy: what waits, up to the plan's batch. fill: a full batch, or what waits at the last safe moment. single: one
// request, whatever its items.
enum class Batching : std::uint8_t { greedy, fill, single };

struct Rules {
  std::unique_ptr<Order> order;
  std::unique_ptr<DropRule> drop;
  std::unique_ptr<Dispatch> dispatch;
  Batching batching = Batching::greedy;
  bool early = true;        // a queue for each consumer; false: one for each module
  bool form_ahead = false;  // the next batch is collected while the last one runs (PARD, figure 3b)
};

class Queues final : public ComponentScheduler {
 public:
  // `rules` is called once, with a site without queues.
  Queues(const Making& from, const std::function<Rules(Site&)>& rules);

  bool admit(std::uint32_t application) noexcept override { return rules_.drop->admit(application); }
  [[nodiscard]] bool keeps_late() const noexcept override { return rules_.drop->keeps_late(); }
  [[nodiscard]] bool binds() const noexcept override { return rules_.early; }
  QueueId enqueue(TaskId task) noexcept override;
  void left(TaskId task) noexcept override;
  ConsumerId offer(QueueId queue) noexcept override { return rules_.dispatch->offer(queue); }
  bool next(PartitionId partition) noexcept override;
  void leftover(QueueId queue, ConsumerId refused) noexcept override;
  void started(std::uint32_t batch) noexcept override { rules_.drop->started(view_.machine.batch(batch)); }
  void estimates(const Estimates& estimates) noexcept override { rules_.drop->estimates(estimates); }
  void visit_state(Snapshot& state) override { state(site_.random, rules_.order, rules_.drop, rules_.dispatch); }

 private:
  void make_queues(TaskQueues& queues);
  void make_plans();
  [[nodiscard]] QueueId holding(QueueId chosen, const Task& task) const noexcept;
  [[nodiscard]] bool try_consumer(ConsumerId consumer) noexcept;
  [[nodiscard]] std::uint32_t batch_target(QueueId queue, const QueueConsumer& consumer) noexcept;
  [[nodiscard]] Reason judge(const Task& task, TimeNs start, TimeNs d) const noexcept;
  void form(const TaskQueue& queue, const QueueConsumer& consumer, TimeNs start, std::uint32_t target) noexcept;
  void purge_low_end(const TaskQueue& queue, TimeNs start, TimeNs d) noexcept;
  void collect_ahead(QueueId queue) noexcept;

  Site site_;
  Rules rules_;
};

// Makes a scheduler of queues with the rules that rules(site, settings) puts together.
template <class Settings>
class QueuesOf : public SchedulerFactory {
 public:
  explicit QueuesOf(const Settings& settings) : settings_(settings) {}
  [[nodiscard]] std::unique_ptr<ComponentScheduler> make(const Making& from) const override {
    return std::make_unique<Queues>(from, [this](Site& site) { return rules(site, settings_); });
  }

 protected:
  const Settings settings_;
};

}  // namespace leat::papers
