// The scenarios of the freshness study: periodic streams that share partitions, and what each stream's figures must not
// exceed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/coordinated/freshness_metric.h"
#include "engine/sim/simulator.h"

namespace leat::bench {

struct Source {
  std::string name;
  TimeNs period = 0, deadline = 0, max_age = 0;
  core::Priority priority = core::Priority::normal;
  std::uint32_t model = 0;
  bool background = false;        // fifo of at most four, whatever the cap
  double max_uncovered = -1;      // permille; the rival's figure, and 0 up to full load; -1: it gives none
  double max_gap_ms = -1;         // likewise
  double min_answers_per_s = -1;  // likewise
};

struct Model {              // log-normal run time
  TimeNs p50 = 0, p99 = 0;  // one item
  std::uint32_t batch = 1;
  std::uint32_t item_permille = 1000;  // what each further item of a batch adds
  std::vector<core::PartitionId> pool{0};
};

struct Scenario {
  std::string name;
  std::vector<Source> sources;
  std::vector<Model> models;
  std::uint32_t partitions = 1;
  double length = 1;      // of the run, in --seconds
  TimeNs budget_ns = -1;  // background budget in each second instead of the preset's; -1: the preset's
};

[[nodiscard]] std::vector<Scenario> freshness_scenarios();

// A batch of `items`, where one item takes `one`.
[[nodiscard]] TimeNs batch_ns(const Model& model, TimeNs one, std::uint32_t items);

// Run time of the frame a stream captured at that time, alone: log-normal through p50 and p99, kept within [p50 / 2, 3
// p99]. A function of seed, stream and frame only, so that no order of execution changes it.
[[nodiscard]] TimeNs drawn_ns(const Model& model, std::uint64_t seed, std::uint32_t stream, TimeNs capture);

// The first capture of a stream, within its first period.
[[nodiscard]] TimeNs phase_ns(const Source& source, std::uint64_t seed, std::uint32_t stream);

// How the clients behave and what the streams declare.
struct Clients {
  bool freshness = true;  // max_age, and a newer frame takes the place of one that waits (where cap > 1)
  std::uint32_t cap = 8;  // requests in flight per stream: at the cap a new frame is not sent
};
[[nodiscard]] sim::Scenario to_simulate(const Scenario& scenario, const core::Policy& policy, const Clients& clients,
                                        std::uint64_t seed, TimeNs length);

}  // namespace leat::bench
