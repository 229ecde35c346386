// The State Planner of PARD (section 4.2), off the hot path: turns the scheduler's samples into Estimates.
//
// Every update: q_i, linearly weighted over the window; W_k = F^-1(lambda) of the sum of one independently drawn recent
// batch wait per later module, maximum over the DAG's paths, from `draws` draws; and the recent worst latency of each
// module. Thread rule: one thread at a time; add() and update() may run on another thread than the scheduler's when the
// samples were copied out there. Deterministic for a seed. Allocates only in the constructor.
#pragma once

#include <cstdint>
#include <span>

#include "engine/core/load/estimates.h"
#include "engine/core/model/topology.h"
#include "engine/papers/pard/sliding_window.h"

namespace leat::papers {

using namespace core;  // a scheduler is written in the core's words

class StatePlanner final : public Estimator {
 public:
  struct Settings {
    TimeNs window_ns = 5'000'000'000;
    bool quantile = true;  // W_k is looked at
    std::uint32_t lambda_permille = 100;
  };
  StatePlanner(const Topology& topology, const Settings& settings, std::uint32_t draws, std::uint64_t seed);

  void add(std::span<const Sample> samples) noexcept override;
  [[nodiscard]] const Estimates& update(TimeNs now) noexcept override;

 private:
  static constexpr std::size_t kRecent = 4096;  // batch waits kept per module
  struct Recent {
    SlidingWindow queue;
    std::vector<Sample> ring;
    std::size_t first = 0, count = 0;
    std::vector<TimeNs> after;  // draws of the summed wait after this module
  };
  void draw(const ApplicationSpec& app) noexcept;

  Topology topology_;
  Settings settings_;
  std::uint32_t draws_;
  std::uint64_t random_;
  std::vector<Recent> recent_;
  Estimates estimates_;
};

}  // namespace leat::papers
