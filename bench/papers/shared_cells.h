// The applications and partitions of shared_study: stated profiles, d(b) = d1 (1 - f) + d1 f b, batches up to 32; load
// 1 is what batches of 10 carry; unequal: every other partition runs at half speed.
#pragma once

#include <string>
#include <vector>

#include "engine/core/scheduler.h"

namespace leat::bench {

struct Module {
  double d1_ms, f;
  std::vector<core::ModuleId> before;  // within the application
  double items = 1;
};
struct Application {
  double slo_ms;
  std::vector<Module> modules;
  core::Priority priority = core::Priority::normal;
};
struct Pipeline {
  const char* name;
  std::vector<Application> applications;
};

struct Cell {
  const Pipeline* pipeline = nullptr;
  std::uint32_t partitions = 1;
  bool unequal = false;
  double load = 1;
  std::string arrivals;
  [[nodiscard]] double speeds() const { return unequal ? partitions - .5 * (partitions / 2) : partitions; }
};

[[nodiscard]] std::vector<Pipeline> pipelines();
[[nodiscard]] core::Topology topology_of(const Cell& c);  // every module on every partition
// Requests a second of each application at load 1: batches of 10, an equal part of the time for each application.
[[nodiscard]] double rate_of(const Cell& c, std::size_t application);

}  // namespace leat::bench
