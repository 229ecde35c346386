// What the harnesses of leatd's threads serve with: applications of emulated modules on a few partitions, workers that
// are a channel's other end without the process, and a metrics of counters.
#pragma once

#include <initializer_list>
#include <memory>
#include <utility>

#include "engine/daemon/scheduler_thread/scheduler_loop.h"
#include "tests/fuzz/harness.h"

namespace leat::fuzz {

inline constexpr std::uint32_t kPartitions = 2, kBatch = 4;

// One application for each number: a chain of so many modules, each on every partition.
inline core::Topology topology(std::initializer_list<std::uint32_t> chains) {
  core::Topology t;
  for (const std::uint32_t modules : chains) {
    const auto application = static_cast<std::uint32_t>(t.applications.size());
    const auto first = static_cast<core::ModuleId>(t.modules.size());
    core::ApplicationSpec app{.slo_ns = 50'000'000, .rate_rps = 0, .modules = {}};
    for (core::ModuleId m = first; m < first + modules; ++m) {
      core::ModuleSpec module{.application = application, .before = {}, .after = {}, .routes = {m}};
      if (m > first) module.before = {m - 1};
      if (m + 1 < first + modules) module.after = {m + 1};
      core::RouteSpec route{.module = m, .batch = kBatch, .rate_rps = 0, .stages = {core::StageSpec{}}};
      for (std::uint32_t b = 1; b <= kBatch; ++b) {
        route.stages[0].latency.p50_ns.push_back(1'000'000 * b);
        route.stages[0].latency.p99_ns.push_back(1'000'000 * b);
      }
      for (core::PartitionId p = 0; p < kPartitions; ++p) route.stages[0].pool.push_back(p);
      t.modules.push_back(std::move(module));
      t.routes.push_back(std::move(route));
      app.modules.push_back(m);
    }
    t.applications.push_back(app);
  }
  t.partitions.resize(kPartitions);
  return t;
}

// Of a loop that serves it: each worker's session of a module has the module's number.
inline daemon::LoopOptions options_of(const core::Topology& t) {
  daemon::LoopOptions options;
  std::vector<std::uint32_t> sessions;
  daemon::PlanTables& plan = options.plan;
  for (std::uint32_t m = 0; m < t.modules.size(); ++m) {
    plan.first_stage.push_back(m);
    plan.first_of.push_back(t.applications[t.modules[m].application].modules.front());
    sessions.push_back(m);
  }
  plan.modules = static_cast<std::uint32_t>(t.modules.size());
  plan.routes = daemon::route_limits(t);
  plan.session_of.assign(kPartitions, sessions);
  plan.stages.resize(t.modules.size());
  options.batch_limit_ns = 20'000'000;
  return options;
}

// A worker's end of its channel, without the worker.
struct FakeWorker {
  std::unique_ptr<daemon::WorkerPort> port;
  shm::Mapping channel;
  shm::RingConsumer<worker::DispatchCell> dispatches;
  shm::RingProducer<worker::ReportCell> reports;

  void start() {
    constexpr worker::ChannelLayout kLayout = worker::channel_layout();
    port = std::move(daemon::WorkerPort::create()).value();
    channel = std::move(shm::Mapping::map(port->channel_fd(), kLayout.bytes, shm::Access::read_write, true)).value();
    dispatches = {channel.at<worker::DispatchCell>(kLayout.dispatch_cells), worker::kDispatchRing,
                  channel.at<shm::IndexLine>(kLayout.dispatch_index)};
    reports = {channel.at<worker::ReportCell>(kLayout.report_cells), worker::kReportRing,
               channel.at<shm::IndexLine>(kLayout.report_index)};
    port->control_sent();
  }

  // Ends every batch that was sent to it; with `changes` it reports something else.
  void work(std::int64_t now, Reader* changes) {
    worker::DispatchCell cell;
    for (std::uint32_t popped = 0; popped < worker::kDispatchRing && dispatches.pop(cell); ++popped) {
      if (cell.position + 1U < cell.count) continue;
      worker::ReportCell r;
      r.batch = cell.batch;
      r.batch_generation = cell.batch_generation;
      r.stage = cell.stage;
      r.count = cell.count;
      r.started_ns = now;
      r.ended_ns = now + 1000;
      for (auto& result : r.results) result.fan_out = 2;
      if (changes != nullptr) change(&r, sizeof(r), *changes);
      (void)reports.push(r);
    }
  }
};

// One for all inputs: it only counts, and making its megabytes takes longer than an input does.
inline daemon::Metrics& metrics() {
  static const auto kMetrics = std::move(daemon::Metrics::create()).value();
  return *kMetrics;
}
inline void begin_records(shm::RecordKind kind, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) (void)metrics().writer().begin(kind, i, "fuzz");
}

// Every submission was answered once.
inline void insist_on_ledger() {
  insist(metrics().in_flight() == 0, "frames in flight without a client");
  const shm::Record total = metrics().of(shm::RecordKind::total, 0);
  using C = shm::StreamCounter;
  insist(total.value(C::submitted) == total.value(C::completed) + total.value(C::late) + total.value(C::dropped) +
                                          total.value(C::failed) + total.value(C::rejected),
         "the ledger");
}

}  // namespace leat::fuzz
