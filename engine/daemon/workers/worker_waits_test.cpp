// What a worker waits for, with a leatd that is played here and a model that takes its time asleep: of each wait that
// batches in hand need, one scenario, in which answers or their order are others without it (docs/internals/
// device-waits.md).
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "engine/daemon/scheduler_thread/worker_port.h"
#include "engine/exec/checksum.h"
#include "engine/worker/link/protocol.h"
#include "shm/src/protocol/control_protocol.h"
#include "shm/src/rings/clock.h"
#include "shm/src/segments/stream_pool.h"
#include "tools/base/subprocess/process.h"

namespace leat::daemon {
namespace {

using namespace std::chrono_literals;
using worker::ReportKind;

constexpr std::int64_t kLongNs = 200'000'000;  // the model takes with one picture; with two none
constexpr std::uint32_t kSide = 16, kSlots = 8, kPools = 2;
constexpr auto kLook = 50ms;  // for what should not come, however long it is looked for
constexpr auto kPatience = 60s;

shm::PoolSpec pictures() { return {.format = LEAT_FORMAT_gray8, .width = kSide, .height = kSide, .slots = kSlots}; }

class WorkerWaits : public testing::Test {
 protected:
  void SetUp() override {
    auto made = WorkerPort::create();
    ASSERT_TRUE(made.ok()) << made.error();
    port_ = std::move(*made);
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    control_ = Fd(ends[0]);
    const Fd theirs(ends[1]);
    auto started = subprocess::Process::start(
        {.words = {LEAT_WORKER_BINARY, "played"}, .fds = {{theirs.get(), worker::kControlFd}}});
    ASSERT_TRUE(started.ok()) << started.error();
    process_ = std::move(*started);
    worker::ModuleSetup module;
    module.application = "waits", module.name = "model", module.executor = "emulated";
    module.batch = 2;
    module.latency_by_batch = {{.p50_ns = kLongNs, .p99_ns = kLongNs}, {.p50_ns = 1, .p99_ns = 1}};
    worker::Setup setup;
    setup.partition = "played";
    setup.sandbox = worker::Sandbox::off;
    setup.overlap = worker::Overlap::on;
    setup.overlap_permille = {1};
    setup.modules = {module};
    const Fd bell = port_->take_worker_bell();
    const int fds[] = {port_->channel_fd(), bell.get()};
    ASSERT_NO_FATAL_FAILURE(tell(worker::encode(setup), fds));
    for (std::uint32_t p = 0; p < kPools; ++p) {
      auto pool = shm::StreamPool::create(pictures());
      ASSERT_TRUE(pool.ok()) << pool.error();
      pools_.push_back(std::make_unique<shm::StreamPool>(std::move(*pool)));
    }
    ASSERT_NO_FATAL_FAILURE(add_pool(0));
    for (bool ready = false; !ready;) {
      pollfd there{control_.get(), POLLIN, 0};
      ASSERT_EQ(::poll(&there, 1, std::chrono::milliseconds(kPatience).count()), 1);
      std::vector<std::byte> packet;
      std::string text;
      ASSERT_EQ(shm::receive(control_.get(), false, &packet, nullptr, &text), shm::Got::message) << text;
      const auto type = worker::type_of(packet);
      ASSERT_TRUE(type.ok());
      ASSERT_NE(*type, worker::ControlType::failed) << worker::decode_failed(packet);
      ready = *type == worker::ControlType::ready;
    }
  }

  void tell(std::vector<std::byte> packet, std::span<const int> fds = {}) {
    port_->control_sent();
    const Status sent = shm::send_bytes(control_.get(), std::move(packet), fds);
    ASSERT_TRUE(sent.ok()) << sent.error();
  }
  void add_pool(std::uint32_t p) {
    const auto frames = pools_[p]->frames_for_worker(), results = pools_[p]->results_for_worker();
    ASSERT_TRUE(frames.ok() && results.ok());
    const int fds[] = {frames->get(), results->get()};
    tell(worker::encode(worker::AddPool{p, 1, pictures()}), fds);
  }

  // A batch of so many pictures, in slots of their own.
  struct Batch {
    std::uint32_t name, pictures = 1, pool = 0;
    bool alone = false;
  };
  std::vector<worker::DispatchCell> cells_of(const Batch& batch) {
    std::vector<worker::DispatchCell> out(batch.pictures);
    for (std::uint32_t i = 0; i < batch.pictures; ++i) {
      worker::DispatchCell& c = out[i];
      c.batch = batch.name, c.batch_generation = 1;
      c.position = static_cast<std::uint16_t>(i), c.count = static_cast<std::uint16_t>(batch.pictures);
      c.pool = batch.pool, c.pool_generation = 1;
      c.slot = next_slot_++ % kSlots;
      c.then = worker::kNoModule;
      c.alone = batch.alone ? 1 : 0;
      c.dispatched_ns = shm::monotonic_ns();
      slots_[batch.name].push_back(c.slot);
      auto* const pixels = const_cast<std::uint8_t*>(pools_[batch.pool]->frame(c.slot));  // the client's part
      std::memset(pixels, static_cast<int>(1 + 10 * batch.name + i), pools_[batch.pool]->layout().frame_bytes);
      *pools_[batch.pool]->result(c.slot) = {};
    }
    return out;
  }
  // Together, so that the worker sees each behind the one before.
  void give(std::initializer_list<Batch> batches) {
    for (const Batch& b : batches) {
      auto cells = cells_of(b);
      ASSERT_TRUE(port_->push(cells));
    }
    (void)port_->flush();
  }
  // The next one of this kind or of another; false: none came for so long.
  bool next(worker::ReportCell* out, std::chrono::milliseconds patience) {
    const auto end = std::chrono::steady_clock::now() + patience;
    do {
      if (port_->take({out, 1}) == 1) return true;
      pollfd bell{port_->bell_fd(), POLLIN, 0};
      port_->announce_sleep();
      if (!port_->has_reports()) (void)::poll(&bell, 1, 5);
      port_->announce_awake();
      (void)port_->drain_bell();
    } while (std::chrono::steady_clock::now() < end);
    return port_->take({out, 1}) == 1;
  }
  void expect(std::uint32_t name, ReportKind kind, worker::ReportCell* out = nullptr) {
    worker::ReportCell cell;
    ASSERT_TRUE(next(&cell, kPatience)) << "nothing is reported of batch " << name;
    EXPECT_EQ(cell.batch, name);
    EXPECT_EQ(cell.kind, kind) << "of batch " << name;
    if (out != nullptr) *out = cell;
  }
  // It is the next to be answered, with its own pictures' bytes.
  void expect_answered(std::uint32_t name, std::uint32_t pool = 0, worker::ReportCell* out = nullptr) {
    worker::ReportCell cell;
    ASSERT_NO_FATAL_FAILURE(expect(name, ReportKind::batch, &cell));
    for (std::uint32_t i = 0; i < slots_[name].size(); ++i) {
      EXPECT_EQ(cell.results[i].reason, 0) << "batch " << name << ", picture " << i;
      const std::vector<std::uint8_t> sent(pools_[pool]->layout().frame_bytes,
                                           static_cast<std::uint8_t>(1 + 10 * name + i));
      EXPECT_EQ(pools_[pool]->result(slots_[name][i])->checksum, exec::checksum(sent.data(), sent.size()))
          << "batch " << name << ", picture " << i;
    }
    if (out != nullptr) *out = cell;
  }

  std::unique_ptr<WorkerPort> port_;
  std::vector<std::unique_ptr<shm::StreamPool>> pools_;
  Fd control_;
  subprocess::Process process_;
  std::uint32_t next_slot_ = 0;
  std::array<std::vector<std::uint32_t>, 8> slots_;  // by name
};

// run_batch: before a batch that is to be alone all begun ones end.
TEST_F(WorkerWaits, WhatIsToBeAloneBeginsBehindTheOthers) {
  give({{.name = 0}, {.name = 1, .pictures = 2, .alone = true}});
  worker::ReportCell first, second;
  ASSERT_NO_FATAL_FAILURE(expect_answered(0, 0, &first));
  ASSERT_NO_FATAL_FAILURE(expect_answered(1, 0, &second));
  EXPECT_GE(second.started_ns, first.ended_ns);
}

// handle_message: what has begun is answered before the worker stops.
TEST_F(WorkerWaits, WhatHasBegunIsAnsweredBeforeItStops) {
  give({{.name = 0}, {.name = 1}});
  ASSERT_NO_FATAL_FAILURE(expect(1, ReportKind::beside));
  ASSERT_NO_FATAL_FAILURE(tell(worker::encode_stop()));
  ASSERT_NO_FATAL_FAILURE(expect_answered(0));
  ASSERT_NO_FATAL_FAILURE(expect_answered(1));
  EXPECT_TRUE(process_.wait(subprocess::after(kPatience)).clean());
}

// run: a third begins when there is a set of buffers for it.
TEST_F(WorkerWaits, AThirdBeginsWhenTheFirstHasEnded) {
  give({{.name = 0}, {.name = 1}, {.name = 2, .pictures = 2}, {.name = 3, .pictures = 2}});
  ASSERT_NO_FATAL_FAILURE(expect(1, ReportKind::beside));
  ASSERT_NO_FATAL_FAILURE(expect_answered(0));
  for (std::uint32_t name : {1u, 2u, 3u}) {
    worker::ReportCell cell;
    do ASSERT_TRUE(next(&cell, kPatience)) << name;
    while (cell.kind == ReportKind::beside);
    EXPECT_EQ(cell.batch, name);
    EXPECT_EQ(cell.kind, ReportKind::batch);
  }
}

// run: a module is measured again while nothing of its own runs in the same buffers.
TEST_F(WorkerWaits, NothingIsMeasuredBesideABatch) {
  give({{.name = 0}, {.name = 1}});
  ASSERT_NO_FATAL_FAILURE(expect(1, ReportKind::beside));
  ASSERT_NO_FATAL_FAILURE(tell(worker::encode(worker::Measure{.module = 0, .longest_ns = 10 * kLongNs})));
  ASSERT_NO_FATAL_FAILURE(expect_answered(0));
  ASSERT_NO_FATAL_FAILURE(expect_answered(1));
}

// take_batch: what leatd has said before a batch is read before it.
TEST_F(WorkerWaits, MessagesBeforeABatchAreReadFirst) {
  give({{.name = 0, .alone = true}});  // meanwhile the worker reads nothing
  ASSERT_NO_FATAL_FAILURE(add_pool(1));
  give({{.name = 1, .pictures = 2, .pool = 1}});
  ASSERT_NO_FATAL_FAILURE(expect_answered(0));
  ASSERT_NO_FATAL_FAILURE(expect_answered(1, 1));
}

// take_batch: a batch's cells are published one after the other.
TEST_F(WorkerWaits, ABatchIsRunWhenAllOfItsCellsAreThere) {
  auto cells = cells_of({.name = 0, .pictures = 2});
  ASSERT_TRUE(port_->push({cells.data(), 1}));
  (void)port_->flush();
  worker::ReportCell cell;
  EXPECT_FALSE(next(&cell, kLook)) << "its second picture has not come";
  ASSERT_TRUE(port_->push({&cells[1], 1}));
  ASSERT_NO_FATAL_FAILURE(expect_answered(0));
}

}  // namespace
}  // namespace leat::daemon
