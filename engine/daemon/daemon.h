// leatd, put together: the control thread's loop over listener, clients, workers, signals and the scheduler thread's
// events.
//
// Start: configuration -> deployment -> socket held -> workers started (and calibrated) -> plan, topology, core ->
// scheduler thread -> serving. Until then clients are refused with not_ready; whatever fails before serving ends leatd
// with one line and nothing left behind. SIGTERM and SIGINT: new requests are refused, what runs is finished (at most
// drain_ns), then the end. SIGKILL leaves nothing either: segments are anonymous, workers die with leatd, and the
// socket's file is removed by the next leatd once nobody answers there.
//
// Thread rule: construct and run() on one thread, the control thread; workers are its children.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/daemon/configuration/config.h"
#include "engine/exec/recognise/recognise.h"
#include "engine/worker/link/protocol.h"
#include "leat/result.hpp"

namespace leat::daemon {

inline constexpr std::int64_t kCheckNs = 60'000'000'000;  // how long a check waits for models, unless told otherwise

struct DaemonOptions {
  std::string worker_binary;              // leat-worker
  std::int64_t drain_ns = 5'000'000'000;  // longest wait for requests in flight at the end
  int ready_fd = -1;                      // gets one line when leatd serves; -1: none
  int bar_fd = -1;  // a terminal that shows how far the start is; -1: standard error, if it is one
  // Above 0: everything that serving needs is tried, models loaded in workers as for serving, within this time; no
  // socket is taken, of what a batch takes only one of one is measured, and run() ends where serving would begin.
  std::int64_t check_ns = 0;
};

class ControlThread;

class Daemon {
 public:
  // Reads the plan, probes the host, takes the socket. An error is one line that says what and what to do.
  static Result<std::unique_ptr<Daemon>> create(Config config, DaemonOptions options);
  ~Daemon();
  // Serves until a signal ends it; an error when it could not start. Blocks SIGTERM, SIGINT and SIGUSR1 in this thread.
  Status run();
  // [application][module]: the words that it serves with, and what they were concluded from. Behind run().
  [[nodiscard]] const std::vector<std::vector<exec::Recognised>>& recognised() const;
  // [partition]: what its worker measured. Behind run().
  [[nodiscard]] const std::vector<worker::Ready>& measured() const;

 private:
  explicit Daemon(std::unique_ptr<ControlThread> control);
  std::unique_ptr<ControlThread> control_;
};

}  // namespace leat::daemon
