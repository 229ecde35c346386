// How a wanted configuration is laid beside the one in force: which application keeps its number and which gets
// another, which partition keeps its worker and which gets one anew beside it, in which waves those start.
//
// An application that answers otherwise than before (another model, other words, other modules) is another one with a
// number of its own, so that requests that run end as what they began as. Numbers of retired ones are used again.
// Pure. Thread rule: values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/daemon/configuration/config.h"
#include "engine/daemon/deployment/deployment.h"
#include "leat/result.hpp"

namespace leat::daemon {

// What is served and how it answers: [application], empty of a retired one.
[[nodiscard]] std::vector<std::string> identities(const Config& config, const Deployment& deployment);

// They open the same, with the same means.
[[nodiscard]] bool same_worker(worker::Setup a, worker::Setup b);

struct Arrangement {
  Config config;  // its applications by their numbers, retired ones among them
  struct Heir {
    std::uint32_t old = 0, now = 0;
  };
  std::vector<Heir> heirs;              // of the same name
  std::vector<std::uint32_t> retiring;  // served until now; those with heirs too
};
// identity: [application of `wanted`]. Error: there is no number left.
Result<Arrangement> arrange(const Config& running, std::span<const std::string> running_identity, const Config& wanted,
                            std::span<const std::string> identity);

// Fills in Deployment::slots: a partition whose worker runs the same keeps it, others get free numbers. The last of
// `slots` is nobody's. Returns which are new: [partition]. Error: there is no room for as many beside the old ones.
Result<std::vector<std::uint8_t>> give_slots(const Deployment& running, Deployment& wanted, std::uint32_t slots);

// New workers by partition, as many at once as a quarter of the host has.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> waves_of(std::span<const std::uint8_t> fresh);

// Numbers of edges, there and in the workers' setups: those that are the same in both have the same. Before
// give_slots().
Status number_edges(std::span<const FeatureEdge> running, Deployment& wanted);

}  // namespace leat::daemon
