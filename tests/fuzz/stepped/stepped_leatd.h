// leatd's control thread and scheduler thread without the threads: its acceptor, sessions, streams and scheduler loop,
// each turn of each made when it is asked for. Workers are a channel's other end (served.h), jobs are done when they
// are let (stepped_job_threads.h), the time and the users are the harness's (seams.h).
//
// After each turn it is known what was given back in it and whether it waited. None closes what a client has passed:
// that is for a job.
//
// Thread rule: one thread.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "engine/daemon/clients/acceptor.h"
#include "engine/daemon/clients/client_sessions.h"
#include "engine/daemon/workers/supervisor.h"
#include "tests/fuzz/stepped/passed.h"
#include "tests/fuzz/stepped/served.h"

namespace leat::fuzz {

inline constexpr uid_t kHonestUser = 4'000'001, kUser = 4'000'002, kSmallUser = 4'000'003, kStranger = 4'000'004;
inline constexpr const char* kApplications[] = {"pictures", "coordinated", "tensors"};

// Of one of leatd's threads, all inputs together.
struct TurnFigures {
  std::uint64_t turns = 0;
  std::uint64_t waited = 0;  // turns in which it gave up its processor
  std::int64_t longest_wait_ns = 0;
};

class SteppedLeatd final : private daemon::Supervisor::Listener {
 public:
  explicit SteppedLeatd(Passed& passed);
  ~SteppedLeatd() override;

  static const std::string& path();
  [[nodiscard]] std::int64_t now() const { return now_; }
  void later(std::int64_t ns);
  void control();             // a turn of the control thread
  void schedule(bool parks);  // of the scheduler thread; parks: and it looks at its bells
  void work(core::PartitionId p, Reader* changes);
  void lose(core::PartitionId p);
  void let_jobs_run(std::uint32_t steps) { job_steps_ = steps; }  // in each round from now on
  void round();                                                   // everybody once, a millisecond later
  void stop();                                                    // as on SIGTERM: nothing new, and all connections end
  // What it still holds for clients, in words; empty: nothing.
  [[nodiscard]] std::string left() const;
  [[nodiscard]] bool empty() const { return left().empty(); }
  [[nodiscard]] std::uint32_t sessions() const;
  // That it may have open, with the sessions and streams it has.
  [[nodiscard]] std::size_t max_descriptors() const;

  static TurnFigures& figures_of_control();
  static TurnFigures& figures_of_scheduler();

 private:
  class Turn;
  void worker_ready(std::uint32_t, daemon::WorkerPort*, const worker::Ready&) override {}
  void worker_lost(std::uint32_t, const std::string&) override {}
  void features_lost(std::uint32_t) override {}
  void worker_measured(std::uint32_t, const worker::Measured&) override {}
  void worker_failed(std::uint32_t, const std::string&) override {}
  void send_exhausted() override {}
  void worker_gone(std::uint32_t) override {}
  void start_worker(core::PartitionId p);
  void on_event(const daemon::Readiness& ready);
  void on_scheduler_events();

  Passed& passed_;
  std::int64_t now_ = 0;
  daemon::Config config_;
  std::optional<daemon::EventLoop> events_;
  shm::Doorbell events_bell_, scheduler_bell_;
  std::array<FakeWorker, kPartitions> workers_;
  std::array<bool, kPartitions> lost_{};
  std::unique_ptr<daemon::SchedulerLoop> loop_;
  std::unique_ptr<daemon::Supervisor> supervisor_;
  std::unique_ptr<daemon::PoolBuilder> pools_;
  std::unique_ptr<daemon::ClientSessions> sessions_;
  std::unique_ptr<daemon::Acceptor> acceptor_;
  std::uint32_t job_steps_ = UINT32_MAX;
  bool stopping_ = false;
};

}  // namespace leat::fuzz
