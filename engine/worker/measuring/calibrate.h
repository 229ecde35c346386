// A quick measurement of a module on this very partition, for hosts without a profile: a few runs at some batch sizes
// on a grey frame, straight lines between them; a second, three for slow models, or one run of each size where that
// takes longer, but none of batches larger than one that alone takes so long. `leat profile` measures better; this
// makes a fresh host serve at once.
// Uses the module alone: call it before serving, on the thread that will serve.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "engine/exec/module.h"
#include "planner/profile.h"

namespace leat::worker {

struct Calibration {
  std::vector<planner::Latency> latency_by_batch;  // [b-1], b = 1..batch, of the largest pictures
  std::vector<planner::Latency> latency_by_size;   // [class] (Module::sizes()): one picture; empty: the size is fixed
  // Of the time that this thread was measured for, what it ran or waited of its own accord; the rest others had its
  // core, and what was measured is too long.
  std::uint32_t undisturbed_percent = 100;
};

// Told after every run: how many are done, and how many there are at most.
using Told = std::function<void(std::uint32_t done, std::uint32_t max)>;

// The same, run by run, for who has other things to do between two. `crops`: the module takes crops of detections.
class Calibrator {
 public:
  // Batches larger than the first that takes longer than longest_ns are not run: their latencies are in proportion.
  // strict: nor is one that would take longer by what smaller ones took; else the first of those is run.
  Calibrator(exec::Module& module, std::uint32_t batch, bool crops, std::int64_t longest_ns, Told told = {},
             bool strict = false);
  ~Calibrator();
  Calibrator(const Calibrator&) = delete;
  Calibrator& operator=(const Calibrator&) = delete;

  // Runs one batch. False: nothing is left to run. An error is the module's own line.
  [[nodiscard]] Result<bool> step();
  [[nodiscard]] std::uint32_t undisturbed_percent() const;  // until now; 100 for the first tenth of a second
  [[nodiscard]] Calibration result();                       // once step() has said false

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Result<Calibration> calibrate(exec::Module& module, std::uint32_t batch, bool crops, const Told& told = {});

// Loads caches and lets the runtime allocate what it allocates late.
Status warm_up(exec::Module& module, std::uint32_t batch, bool crops);

}  // namespace leat::worker
