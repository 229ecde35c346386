// What `leat sim` measured, and its three faces: a table, JSON, and a folder of pictures. Pure but for writing files.
#pragma once

#include <string>
#include <vector>

#include "engine/core/policy/policy.h"
#include "engine/sim/study.h"
#include "leat/result.hpp"

namespace leat::tools {

struct SimRun {
  std::uint64_t seed = 0;
  double load = 1;
  std::uint64_t bound = 0;
  sim::Measured measured;
};

struct SimPreset {
  std::string name;  // as given, with its settings
  core::Policy policy;
  std::vector<SimRun> runs;                // [seed], at the load asked for; the first has a history
  std::vector<std::vector<SimRun>> sweep;  // [load][seed]
};

struct SimResults {
  std::string plan, trace;  // as given
  std::uint64_t first_seed = 1;
  double load = 1;
  std::vector<double> sweep_loads;
  bool bounded = true;  // false: the bound says nothing (requests of several items)
  std::vector<SimPreset> presets;
};

// Over every run of every preset, in order.
[[nodiscard]] std::uint64_t trace_hash(const SimResults& results);
// The mean and half the range of a figure over runs.
struct Spread {
  double mean = 0, half_range = 0;
};
template <class F>
[[nodiscard]] Spread spread(const std::vector<SimRun>& runs, F&& figure) {
  double sum = 0, low = 0, high = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const double x = figure(runs[i]);
    sum += x;
    low = i == 0 || x < low ? x : low;
    high = i == 0 || x > high ? x : high;
  }
  return {sum / static_cast<double>(runs.size()), (high - low) / 2};
}

[[nodiscard]] std::string table_text(const SimResults& results);
[[nodiscard]] std::string json_text(const SimResults& results, const sim::Study& study);

// Before the runs, so that they are not made in vain: makes the folder, and an empty index.html in it.
[[nodiscard]] Status prepare_report(const std::string& folder);

// goodput.svg, drops.svg, queueing.svg, timeline-PRESET.svg, with a sweep attainment.svg, and index.html that shows
// them. The timelines begin at `timeline_at_ns`; negative: shortly before the worst bin of the first preset.
[[nodiscard]] Status write_report(const SimResults& results, const sim::Study& study, const std::string& folder,
                                  sim::TimeNs timeline_at_ns);

}  // namespace leat::tools
