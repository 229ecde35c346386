// The process of one partition: waits for batches on its channel, runs them, reports. One thread does everything, but
// that models run on a second one where batches overlap (overlap_gain.h): one is answered and the next prepared beside
// them. At most two batches are begun then; they end, and are reported, in the order in which they came.
//
// It takes frames where the producer wrote them (pools mapped read-only) and writes results into result slots, which
// the client cannot write; what a later module needs of an earlier one (a detection's box) it reads from there. Where a
// route has several stages it reads and writes features in the segments of its edges
// (shm/src/segments/feature_slots.h). It dies with leatd: the kernel sends SIGKILL (PR_SET_PDEATHSIG), and a hung-up
// control socket ends the loop as well.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/exec/host_stream.h"
#include "engine/exec/module.h"
#include "engine/worker/batch.h"
#include "engine/worker/channel_end.h"
#include "engine/worker/control_link.h"
#include "engine/worker/features/device_use.h"
#include "engine/worker/features/edges.h"
#include "engine/worker/features/stage_features.h"
#include "engine/worker/link/protocol.h"
#include "engine/worker/measuring/calibrate.h"
#include "engine/worker/measuring/measuring_turn.h"
#include "engine/worker/pools.h"
#include "shm/src/protocol/limiters.h"
#include "shm/src/rings/wait_policy.h"

namespace leat::worker {

class Worker {
 public:
  // Receives the setup over `control`, pins itself, becomes its user, opens every module, measures if asked to, closes
  // its sandbox (sandbox.h) and reports ready. An error was reported to leatd as well; *device_lost: it is that its
  // device is lost, or was before.
  static Result<std::unique_ptr<Worker>> start(shm::Fd control, bool* device_lost);

  // Until leatd says stop or is gone.
  void run();
  // Of the process, once run() has returned.
  [[nodiscard]] int exit_status() const noexcept { return device_.lost() ? kDeviceLost : 0; }

 private:
  struct Served {  // a module, as in Setup; its batches overlap where it has two sets of buffers
    std::unique_ptr<exec::Module> module;
    StageFeatures features;
    bool has_parts = false;
    bool said_squeezed = false;
    bool told_not_finite = false;
  };

  explicit Worker(shm::Fd control) : control_(std::move(control)) {}
  // start.cpp
  Status receive_setup();
  Status become_user();
  Status map_edges();
  Status open_modules(Ready& ready);
  Status open_module(std::uint32_t index);
  Status warm_and_measure(std::uint32_t index, Ready& ready);
  Status settle_overlap(std::uint32_t index, Ready& ready);
  Status keep_what_pays(const Ready& ready);
  void ask_of_all(std::uint32_t failed, const std::string& why);
  // version_files.cpp
  Status receive_files();
  Status pin_all();
  static Status pin(const ModuleSetup& module);
  // measuring_again.cpp
  Status begin_measuring(const Measure& what);
  void measure_on();  // one more run of what is being measured
  void give_up_measuring(std::uint32_t undisturbed_percent);
  void answer_measured(const Measured& found);
  void send_answer();  // or keep it, until leatd has read what came before

  bool read_control(bool wait);  // one message; false: there is none
  void handle_message();         // the one that control_ has read
  void report_memory();          // to leatd, where it has changed
  void wake_daemon();
  void park();
  // batches.cpp
  bool take_batch();  // false: none waits
  void run_batch(Batch& batch);
  void run_alone(Batch& batch);
  void find_items(Batch& batch);
  Reason find_item(const DispatchCell& cell, exec::Item& item);
  void compute(Batch& batch);
  void note_answers(Batch& batch);
  void note_answer(Batch& batch, std::uint32_t i);
  void say_squeezed(std::uint32_t module, std::uint32_t width);
  void tell_not_finite(std::uint32_t module);
  [[nodiscard]] bool find_sequel(const Batch& batch);
  void decode(const DispatchCell& cell);
  void send_report(const Batch& batch, ReportKind kind);
  void push_report(const ReportCell& cell);
  // overlap.cpp
  [[nodiscard]] bool goes_beside(const Batch& batch);
  void begin(Batch& batch);
  [[nodiscard]] bool first_has_ended() const;
  void finish_first();
  void finish_all();
  void complain(std::string_view text);  // to leatd's log; what a frame or a stream can cause is limited

  ControlLink control_;
  Setup setup_;
  shm::LogLimit complaints_;
  bool ending_ = false;
  ChannelEnd channel_;
  DeviceUse device_;  // outlives what lies on it
  Edges edges_;
  std::vector<Served> modules_;
  Pools pools_;
  std::array<Batch, exec::kSets> batches_;    // their places are the sets of buffers that they have
  std::uint32_t first_ = 0, begun_ = 0;       // of those: the one that ends next, and how many have begun
  Batch sequel_;                              // what the worker has gone on with
  std::int64_t last_ended_ns_ = 0;            // a batch
  std::unique_ptr<exec::HostStream> stream_;  // null: no module's batches overlap
  std::unique_ptr<Calibrator> measuring_;     // while leatd has asked for it and no batch has come since
  Measure asked_;                             // for that
  std::vector<std::byte> answer_;             // to that, while it could not be sent
  MeasuringTurn turn_;
};

}  // namespace leat::worker
