// Another configuration, plan or model put in force while leatd serves, step by step:
//
//   reading       the wanted configuration is read, checked and laid beside the one in force (target.h)
//   starting      new workers start beside the old ones that they are to follow, wave after wave, while those serve
//   taking_over   the new plan takes over between two batches: what is sent from then on goes to the new workers
//   on_trial      a new version of a model is watched (version_trial.h); in trouble its streams go back at once
//   emptying      what applications that retire have in flight ends
//   letting_go    plans without them; then their workers go, once these hold nothing, and those that were followed
//
// Where memory has no room for new workers beside the old, a change of plan is several such changes, one after the
// other (in_place.h). Where one of them fails, what has changed stays, and what is out comes back as it was before, or
// stays out until the next change where no worker starts there any more.
//
// Until the new plan takes over everything is as before, and so it stays where a step fails: in one line, which the log
// and `leat status` have. Of every module there is a worker throughout.
//
// Thread rule: the control thread. Nothing here blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/daemon/changes/target.h"
#include "engine/daemon/changes/version_trial.h"
#include "engine/daemon/clients/client_sessions.h"
#include "engine/daemon/metrics/metrics.h"
#include "engine/daemon/scheduler_thread/scheduler_thread.h"
#include "engine/daemon/workers/supervisor.h"
#include "tools/base/json/json.h"

namespace leat::daemon {

// All that is in force and that a change changes.
struct InForce {
  Config config;
  Deployment deployment;
  std::vector<worker::Ready> ready;                       // [partition]
  std::vector<std::vector<exec::Recognised>> recognised;  // [application][module]
  std::vector<std::vector<ModuleTensors>> tensors;        // likewise
  std::vector<ServedApplication> served;                  // [application]
  Additions additions;
};

class LiveChange {
 public:
  struct Environment {
    InForce& now;  // the control thread's
    std::vector<shm::FeaturePool>& features;
    Metrics& metrics;
    Supervisor& supervisor;
    SchedulerThread& scheduler;
    ClientSessions& sessions;
    std::uint32_t slots = 0;
    std::function<Status(std::vector<worker::Setup>&)> prepare_setups;
    std::function<void()> begins, ends;  // nothing else makes plans in between
  };
  LiveChange(Environment environment, std::unique_ptr<TargetBuilder> builder);

  // Its number, by which status() tells what became of it. Error: another one is under way.
  Result<std::uint64_t> ask(ChangeRequest request);
  [[nodiscard]] bool busy() const noexcept { return step_ != Step::none; }
  [[nodiscard]] bool failed() const noexcept { return failed_; }  // the latest
  [[nodiscard]] Json status() const;                              // of the latest; null: there was none

  void advance(std::int64_t now);
  [[nodiscard]] std::int64_t next_due() const noexcept { return due_ns_; }
  [[nodiscard]] int fd() const noexcept { return builder_->fd(); }
  void on_target(std::int64_t now);
  void on_scheduler_event(const SchedulerEvent& event, std::int64_t now);  // plan_in_force, quiet
  // False: that worker is none of the change's.
  [[nodiscard]] bool worker_ready(std::uint32_t slot, WorkerPort* port, const worker::Ready& ready, std::int64_t now);
  [[nodiscard]] bool worker_lost(std::uint32_t slot, const std::string& how, std::int64_t now);
  [[nodiscard]] bool worker_failed(std::uint32_t slot, const std::string& line);
  void worker_gone(std::uint32_t slot, std::int64_t now);

 private:
  enum class Step : std::uint8_t { none, reading, starting, taking_over, on_trial, emptying, letting_go, giving_up };
  struct NewWorker {
    std::uint32_t partition = 0, slot = 0;
    bool started = false, served = false;  // served: the scheduler thread has it
    WorkerPort* port = nullptr;
    std::optional<worker::Ready> ready;
  };

  void start_wave(std::int64_t now);
  void take_over(std::int64_t now);
  [[nodiscard]] Result<InForce> completed() const;
  [[nodiscard]] std::string shapes_differ(const InForce& next) const;
  [[nodiscard]] Status fit(const InForce& next);
  const LoopPlan* put_plan(const Both& of, std::span<const std::uint32_t> new_edges);
  [[nodiscard]] std::vector<std::uint32_t> new_edges() const;
  void publish();
  void in_force(std::int64_t now);
  void begin_trial(std::int64_t now);
  void look_at_trial(std::int64_t now);
  void go_back(const std::string& why);
  void begin_emptying(std::int64_t now);
  void let_go();
  void leave_slots();
  void fail(const std::string& line, std::int64_t now);
  void end_records();
  void finish();
  void read_next(bool back);
  void follow();
  [[nodiscard]] bool something_is_out() const;
  [[nodiscard]] std::string what_is_out() const;
  void tell_progress();
  [[nodiscard]] std::size_t wave_shown() const;
  [[nodiscard]] NewWorker* of_slot(std::uint32_t slot) noexcept;

  Environment env_;
  std::unique_ptr<TargetBuilder> builder_;
  Step step_ = Step::none;
  std::uint64_t number_ = 0;
  std::int64_t due_ns_ = INT64_MAX;
  std::optional<Target> target_;
  std::optional<InForce> before_;  // from taking over on
  // What was in force when the change began, and how many of its steps are done.
  struct First {
    Config config;
    std::shared_ptr<const Deployment> deployment;
    Additions additions;
  };
  std::optional<First> first_;
  std::shared_ptr<const Exchange> exchange_;
  std::size_t steps_ = 0;
  int backs_ = 0;  // times that it was tried to bring back what is out
  bool changed_ = false;
  std::vector<NewWorker> workers_;
  std::size_t wave_ = 0;
  const LoopPlan* awaited_plan_ = nullptr;
  bool back_ = false;                    // it goes back
  std::vector<std::uint32_t> retiring_;  // applications that are being emptied
  std::set<std::uint32_t> leaving_;      // slots whose workers are still there
  std::int64_t trial_until_ns_ = 0;
  VersionTrial trial_;
  // Of the latest, for status().
  ChangeRequest request_;
  std::string line_;
  bool failed_ = false, dry_ = false;
  std::vector<std::string> said_;
  std::vector<std::vector<std::string>> waves_;
  bool in_place_ = false;
  std::uint64_t done_ = 0, given_up_ = 0;  // changes
};

}  // namespace leat::daemon
