// Where memory does not hold all models: applications, loads and what becomes of them in the simulator, under sets of
// models that stay, that `replan = "auto"` chooses, and that one chooses who knows the next minute.
//
// A partition that changes its models is out for `load_s`; never more than a quarter of them, and every model stays
// held. The rule here goes by arrivals alone; in leatd also by what was late. Any thread; one a simulation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/sim/simulator.h"
#include "planner/shared/replan_rule.h"

namespace leat::bench {

struct ResidentModule {
  double d1_ms, f, items;  // a batch of n takes d1_ms (1 - f + f n); `items` of a request
  [[nodiscard]] double run_ms(std::uint32_t batch) const { return d1_ms * (1 - f + f * batch); }
};
struct ResidentApplication {
  double slo_ms;
  std::vector<ResidentModule> modules;  // one behind the other
};
using ResidentApplications = std::vector<ResidentApplication>;
using Rates = std::vector<double>;  // [application], requests a second

inline constexpr std::uint32_t kResidentBatch = 16;
// Nine modules of six applications.
const ResidentApplications& resident_applications();

struct ResidentLoad {
  std::string name;
  std::vector<Rates> by_minute;
  std::vector<sim::Arrival> arrivals;
  [[nodiscard]] Rates mean() const;
  [[nodiscard]] Rates peak() const;
};
// Parts of the work by minute, scaled so that the 95th-percentile minute has `level` of the host's, at batches of 8.
// name: steady, diurnal, bursty or rotate.
ResidentLoad resident_load(const ResidentApplications& applications, const std::string& name, int minutes, double level,
                           std::size_t partitions, std::uint64_t seed);

class ResidencySimulation {
 public:
  using Sets = std::vector<std::vector<bool>>;  // [partition][module]
  struct Changes {
    Sets first;
    std::vector<sim::Replacement> replacements;
    int swaps = 0, loads = 0;
  };
  ResidencySimulation(ResidentApplications applications, std::size_t partitions, std::size_t hold, double load_s);

  [[nodiscard]] Changes all() const;
  [[nodiscard]] Changes fixed(const Rates& rates);
  [[nodiscard]] Changes oracle(const ResidentLoad& load);
  // As leatd does it, from the sets for the first minutes' mean.
  [[nodiscard]] Changes by_rule(const ResidentLoad& load, const Rates& mean);
  // Per cent in time: of all requests, then of each application.
  [[nodiscard]] std::vector<double> in_time(const ResidentLoad& load, const Changes& changes, std::uint64_t seed) const;

 private:
  [[nodiscard]] Sets chosen(const Rates& rates);
  [[nodiscard]] core::Topology topology(const Sets& sets, const std::vector<std::uint8_t>& out) const;
  [[nodiscard]] core::Topology topology(const Sets& sets) const;
  bool begin(const Sets& before, const Sets& after, core::TimeNs at, Changes& out) const;

  ResidentApplications applications_;
  std::size_t partitions_, modules_ = 0;
  core::TimeNs load_ns_;
  planner::ResidencyProblem problem_;
  planner::ReplanRule rule_;
  std::vector<double> items_;
};

}  // namespace leat::bench
