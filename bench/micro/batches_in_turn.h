// Batches of one picture through a module, with work on the host for each: one behind the other, or two in hand, as a
// worker has them whose batches overlap (engine/worker/overlap.cpp). Half of the work is before a batch, half behind
// it. Thread rule: the module's.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <span>

#include "engine/exec/host_stream.h"
#include "engine/exec/module.h"

namespace leat::bench {

class BatchesInTurn {
 public:
  // From when the first batch can run to the end of the last; in_run_ns: in Module::run(). good: each was answered.
  struct Took {
    std::int64_t all_ns = 0, in_run_ns = 0;
    bool good = true;
  };

  BatchesInTurn(exec::Module& module, exec::HostStream& stream, const exec::FrameView& frame, double host_ms)
      : module_(module), stream_(stream), host_ms_(host_ms) {
    item_.frame = frame;
    item_.result = &answer_;
  }

  Took behind(int batches) {
    Took out;
    work(host_ms_ / 2);
    const auto since = Clock::now();
    for (int i = 0; i < batches; ++i) {
      if (i != 0) work(host_ms_);  // the one before is answered, this one prepared
      const auto began = Clock::now();
      out.good = module_.run(items(), reports_) && out.good;
      out.in_run_ns += ns_since(began);
    }
    out.all_ns = ns_since(since);
    return out;
  }
  Took beside(int batches) {
    Took out;
    begin(0);
    const auto since = Clock::now();
    for (int i = 1; i <= batches; ++i) {
      if (i < batches) begin(i);
      out.good = module_.finish(set_of(i - 1), reports_) && out.good;
      if (i < batches) work(host_ms_ / 2);
    }
    out.all_ns = ns_since(since);
    return out;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static std::int64_t ns_since(Clock::time_point since) {
    return std::chrono::nanoseconds(Clock::now() - since).count();
  }
  static void work(double ms) {
    const auto end = Clock::now() + std::chrono::duration<double, std::milli>(ms);
    while (Clock::now() < end) {
    }
  }
  static std::uint32_t set_of(int i) { return static_cast<std::uint32_t>(i) % exec::kSets; }
  std::span<const exec::Item> items() const { return {&item_, 1}; }
  void begin(int i) {
    work(host_ms_ / 2);
    module_.begin(set_of(i), stream_, items());
  }

  exec::Module& module_;
  exec::HostStream& stream_;
  double host_ms_;
  leat_result answer_{};
  exec::Item item_;
  std::array<exec::ItemReport, 1> reports_;
};

}  // namespace leat::bench
