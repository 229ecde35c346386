// The control thread: one loop over the control socket, clients, workers, signals and what the scheduler thread says.
// Its phases: starting (workers load and measure their models, clients are refused) -> serving -> draining (nothing
// new, what is in flight is finished) -> stopping (connections and workers end) -> done. What fails before serving ends
// it.
//
// control_thread.cpp has the loop and the phases, control_thread_start.cpp the way to serving,
// control_thread_workers.cpp what becomes of workers. Thread rule: construct and run() on one thread; workers are its
// children.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/daemon/changes/live_change.h"
#include "engine/daemon/changes/replanning.h"
#include "engine/daemon/clients/acceptor.h"
#include "engine/daemon/clients/client_sessions.h"
#include "engine/daemon/clients/jobs/pool_builder.h"
#include "engine/daemon/configuration/config.h"
#include "engine/daemon/daemon.h"
#include "engine/daemon/deployment/deployment.h"
#include "engine/daemon/event_loop/event_loop.h"
#include "engine/daemon/log.h"
#include "engine/daemon/metrics/metrics.h"
#include "engine/daemon/metrics/recorder.h"
#include "engine/daemon/scheduler_thread/scheduler_thread.h"
#include "engine/daemon/service_manager.h"
#include "engine/daemon/startup.h"
#include "engine/daemon/workers/gpu_tool.h"
#include "engine/daemon/workers/remeasure.h"
#include "engine/daemon/workers/start_progress.h"
#include "engine/daemon/workers/supervisor.h"
#include "shm/src/protocol/limiters.h"

namespace leat::daemon {

class ControlThread final : private Supervisor::Listener {
 public:
  ControlThread(Config config, DaemonOptions options);
  ~ControlThread() override;

  Status create();  // Daemon::create
  Status run();     // Daemon::run
  const std::vector<std::vector<exec::Recognised>>& recognised() const noexcept { return now_.recognised; }
  const std::vector<worker::Ready>& measured() const noexcept { return now_.ready; }

 private:
  enum class Phase : std::uint8_t { starting, serving, draining, stopping, done };
  struct Lifecycle {
    Phase phase = Phase::starting;
    std::int64_t started_ns = 0;
    std::int64_t deadline_ns = INT64_MAX;  // of the check, the drain or the stop
    bool drained = false;                  // nothing is in flight; clients are still told that it ends
    bool reads_again = false;              // SIGHUP came while a change was under way
    std::string failure;                   // why it could not start
    std::optional<std::uint32_t> failing;  // the partition whose worker said so
  };
  struct Workers {
    MpsKeepers keepers;  // of the GPUs that are shared out; end after the workers
    std::unique_ptr<Supervisor> supervisor;
    std::uint32_t slots = 0;         // of workers, those beside others among them
    std::vector<WorkerPort*> ports;  // [partition], from its first worker's being ready to serving
    std::vector<shm::LogLimit> log;  // [slot]
    shm::LogLimit features_log;
    bool sandbox_logged = false;
  };
  struct Clients {
    std::unique_ptr<PoolBuilder> pools;  // ends after the sessions, whose sockets and ports it closes
    std::unique_ptr<ClientSessions> sessions;
    std::unique_ptr<Acceptor> acceptor;
  };

  // ---- the loop and the phases ----
  void enter(Phase phase);  // and everybody may read it
  [[nodiscard]] bool checking() const noexcept { return options_.check_ns > 0; }
  [[nodiscard]] Purpose purpose() const noexcept { return checking() ? Purpose::checking : Purpose::serving; }
  [[nodiscard]] std::int64_t timeout_ns() const;
  void on_event(const Readiness& ready);
  void on_signals();
  void on_child();
  void on_scheduler_events();
  void handle(const SchedulerEvent& event);
  void advance(std::int64_t now);
  void begin_drain();
  void drained();
  void begin_stop();
  void end_scheduler();
  [[nodiscard]] std::string status_json() const;
  [[nodiscard]] const char* not_ready() const noexcept;  // nullptr: serving

  // ---- the way to serving ----
  void block_signals();
  Status start_workers();
  Status open_to_clients();
  void begin_metrics();
  Status watch_all();
  void give_up_starting();
  Status start_serving();
  Status plan_and_check();
  [[nodiscard]] record::Ring* begin_record();
  void follow_record();
  Status keep_what_models_said();
  Status begin_changes();
  Status prepare_setups(std::vector<worker::Setup>& setups);
  [[nodiscard]] Result<std::uint64_t> ask_change(ChangeRequest request);
  void plan_again(const std::optional<std::string>& why);  // none: nothing is new

  // ---- what becomes of workers ----
  void worker_ready(std::uint32_t partition, WorkerPort* port, const worker::Ready& ready) override;
  void worker_lost(std::uint32_t partition, const std::string& how) override;
  void worker_failed(std::uint32_t partition, const std::string& line) override;
  void send_exhausted() override { metrics_->daemon().add(shm::DaemonCounter::sends_exhausted); }
  void worker_gone(std::uint32_t partition) override;
  void worker_measured(std::uint32_t partition, const worker::Measured& measured) override;
  void features_lost(std::uint32_t edge) override;
  void worker_released(std::uint32_t partition, bool excused);
  void publish_worker(std::uint32_t partition);
  void publish_workers();
  void log_worker(LogLevel level, std::uint32_t partition, const std::string& what);
  void log_sandbox(const worker::Ready& ready);
  [[nodiscard]] std::string about(std::uint32_t partition, const std::string& line) const;

  InForce now_;
  Config& config_ = now_.config;
  Deployment& deployment_ = now_.deployment;
  DaemonOptions options_;
  std::optional<EventLoop> loop_;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<Recorder> recorder_;           // ends after the scheduler thread; none: nothing is recorded
  std::vector<std::unique_ptr<Recorder>> left_;  // before it, each until the scheduler thread has left it; may be none
  shm::Listener listener_;
  shm::Fd signals_;
  std::vector<shm::FeaturePool> features_;  // [edge], as many as there can be
  Workers workers_;
  SchedulerThread scheduler_;
  Clients clients_;
  std::optional<Remeasure> remeasure_;    // while serving, but for the time of a change
  std::unique_ptr<LiveChange> change_;    // while serving
  std::optional<Replanning> replanning_;  // likewise
  Lifecycle life_;
  StartProgress progress_;
  ServiceManager service_;
};

}  // namespace leat::daemon
