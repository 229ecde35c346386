// The process of one partition: waits for batches on its channel, runs them, reports. One thread does everything.
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
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/exec/device_plugin.h"
#include "engine/exec/module.h"
#include "engine/worker/bell.h"
#include "engine/worker/calibrate.h"
#include "engine/worker/channel.h"
#include "engine/worker/protocol.h"
#include "engine/worker/stage_features.h"
#include "shm/src/protocol/limiters.h"
#include "shm/src/rings/doorbell.h"
#include "shm/src/rings/ring.h"
#include "shm/src/rings/wait_policy.h"
#include "shm/src/segments/segment.h"
#include "shm/src/segments/stream_pool.h"

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
  [[nodiscard]] int exit_status() const noexcept { return device_ && device_->lost() ? kDeviceLost : 0; }

 private:
  struct Pool {
    bool there = false;
    bool registered = false;  // its frames, with the device
    std::uint32_t generation = 0;
    shm::StreamView view;
  };

  explicit Worker(shm::Fd control) : control_(std::move(control)) {}
  Status next_message();  // waits for it: packet_, fds_
  Status receive_setup();
  Status receive_files();
  static Status pin(const ModuleSetup& module);
  Status open_device(Ready& ready);
  Status make_edges();
  Status map_edges();
  Status become_user();
  Status take_edge(shm::Fd fd, std::uint32_t index);
  Status open_modules(Ready& ready);
  void ask_of_all(std::uint32_t failed, const std::string& why);
  leat_device_usage usage() const;
  void note_device(const leat_device_usage& before, const exec::Module& module, Ready& ready);
  void report_memory();              // to leatd, where it has changed
  bool read_control(bool blocking);  // one message; false: none
  void obey(const std::vector<std::byte>& packet, std::vector<shm::Fd>& fds);
  Status add_pool(const AddPool& add, std::vector<shm::Fd>& fds);
  void forget_pool(Pool& pool) noexcept;

  Status begin_measuring(const Measure& what);
  void measure_on();  // one more run of what is being measured
  void give_up_measuring(std::uint32_t undisturbed_percent);
  bool take_batch();  // false: none waits
  void run_batch(std::span<const DispatchCell> cells);
  void prepare(const DispatchCell& cell, exec::Item& item, exec::ItemReport& report);
  struct BatchNumbers {  // what a report says of the batch as a whole
    std::int64_t started_ns = 0, ended_ns = 0;
    std::uint64_t pixel_bytes_copied = 0;
    std::uint32_t rows_copied = 0, squeezed = 0;
  };
  void send_report(std::span<const DispatchCell> cells, const BatchNumbers& numbers);
  void say_squeezed(std::uint32_t module, std::uint32_t width);
  void park();
  Status tell(const std::vector<std::byte>& packet) const;  // leatd; also from inside the sandbox
  void complain(std::string_view text);  // to leatd's log; what a frame or a stream can cause is limited

  shm::Fd control_;
  Setup setup_;
  shm::LogLimit complaints_;
  std::uint32_t messages_ = 0;  // read so far; DispatchCell::control counts the same
  bool ending_ = false;
  shm::Mapping channel_;
  Bell bell_;
  shm::RingConsumer<DispatchCell> dispatches_;
  shm::RingProducer<ReportCell> reports_;
  shm::SleepWord* sleep_ = nullptr;
  shm::Waker daemon_waker_;
  bool never_had_device_ = false;         // it was lost before this process could have it
  std::unique_ptr<exec::Device> device_;  // outlives what lies on it
  DeviceMemory memory_;                   // of it, as leatd knows
  std::vector<exec::DeviceBuffer> edge_memory_;
  std::vector<std::unique_ptr<exec::Module>> modules_;
  std::vector<bool> has_parts_;                         // [module]
  std::vector<bool> said_squeezed_;                     // [module]
  std::vector<std::optional<shm::FeatureView>> edges_;  // as in Setup; all there after start
  std::vector<StageFeatures> features_;                 // [module]
  std::unique_ptr<Calibrator> measuring_;               // while leatd has asked for it and no batch has come since
  Measure asked_;                                       // for that
  std::vector<Pool> pools_;
  std::vector<std::byte> packet_;
  std::vector<shm::Fd> fds_;
  std::array<exec::Item, kMaxBatch> items_;
  std::array<exec::ItemReport, kMaxBatch> item_reports_;
  std::array<std::uint16_t, kMaxBatch> task_of_;  // items_[i] is the batch's task task_of_[i]
  std::array<TaskReport, kMaxBatch> task_reports_;
};

}  // namespace leat::worker
