// From a configuration and a host to what is to be started: partitions with their cores, what each worker opens, and,
// once the workers have said how fast they are, the plan and the topology the core schedules over. Pure but for reading
// the plan file. Errors are one line.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/core/model/topology.h"
#include "engine/daemon/configuration/config.h"
#include "engine/daemon/deployment/capacity/task_sizes.h"
#include "engine/daemon/deployment/plan/stages.h"
#include "engine/worker/link/protocol.h"
#include "leat/result.hpp"
#include "planner/plan.h"

namespace leat::planner {
struct PlanFile;
}

namespace leat::daemon {

struct Deployment {
  std::vector<PartitionConfig> partitions;
  // [partition]: the number that its worker, the scheduler thread and the counters know it by. Two workers of one
  // partition, an old and a new one, have different ones.
  std::vector<std::uint32_t> slots;
  std::vector<planner::Application> applications;
  std::vector<std::vector<ExpectedStream>> expected;  // [application]
  std::vector<worker::Setup> setups;                  // [partition]
  // [partition][module of all applications]: index in its Setup of the module's first session there (others follow it:
  // one for each block range), or UINT32_MAX.
  std::vector<std::vector<std::uint32_t>> session_of;
  std::vector<std::vector<std::uint32_t>> overlap_permille;  // [partition][session]: how much batches overlap there
  std::vector<FeatureEdge> edges;                            // between the stages of planned routes
  std::vector<std::uint32_t> first_module;                   // [application]: module id of its module 0
  bool planned = false;                                      // `plan` came from a file, or from leat-plan
  std::vector<ModuleSizes> sizes;                            // [module of all applications], made with the plan
  std::vector<std::string> doubts;                           // of what was measured, made with the plan: one line each
  planner::Plan plan;                                        // complete when planned, else made by complete_plan()
  std::vector<std::uint32_t> scheduler_cores;                // empty: not pinned
  bool scheduler_alone = false;                              // no partition is on its core
  bool tiny_hops = false;  // all work is shorter than a wake (emulated, a few microseconds)
};

// `cores`: those this host offers (usable_cores()). `plan`: instead of the file that the configuration names.
// `pairs`: of the devices that features pass between.
Result<Deployment> deploy(const Config& config, std::span<const std::uint32_t> cores,
                          const planner::PlanFile* plan = nullptr, std::span<const DevicePair> pairs = {});

// Latency by batch of a module, or of some of its blocks, on a partition: from its profile, or (the whole) the emulated
// executor's list; empty: to be measured.
std::vector<planner::Latency> profiled(const ModuleConfig& module, const planner::Partition& partition,
                                       BlockRange blocks = {});

// The session of a block range on a partition; UINT32_MAX: it is not there.
[[nodiscard]] std::uint32_t session(const Deployment& deployment, std::uint32_t partition, std::uint32_t application,
                                    std::uint32_t module, BlockRange blocks);

// Labelling heads are numbered over the modules of an application, those with names first: the names of head h are the
// list 1 + h of the application's, whose first is the detector's own.
std::uint32_t first_head(const ApplicationConfig& app, std::size_t module);

// Where in the configuration the fault lies that a worker found when it opened a module, by how its line begins
// (engine/exec names the key: "preprocess: ...").
[[nodiscard]] Place place_of(const Config& config, const worker::ModuleSetup& module, const std::string& line);
// That line behind its place, and before `where`; of a configuration made from a model neither the module's name nor
// `where`, which nobody gave.
[[nodiscard]] std::string about_module(const Config& config, const worker::ModuleSetup& module, const std::string& line,
                                       const std::string& where);

// Adds the routes: per module and partition class one, all partitions of the class its pool, latencies from the profile
// or as measured (`ready[partition]`, of workers that were asked to calibrate); where pictures vary in size, batches
// and latencies count units (task_sizes.h). Nothing to do when the plan came from a file. Once more, with what was
// measured anew: the routes and the units of sizes stay, since there are frames that were counted by them.
Status complete_plan(const Config& config, Deployment& deployment, std::span<const worker::Ready> ready);

// Of a batch's latency at a stage of the plan's: so much the next batch's beside it, on the partition of its pool where
// that is least.
[[nodiscard]] std::uint32_t overlap_permille_of(const Deployment& deployment, const planner::Route& route,
                                                std::size_t stage);

// What the core schedules over; the deployment's plan is complete. Its partitions are slots, the last of which nobody
// has: there wait the modules of retired applications. Not checked (Topology::problem).
[[nodiscard]] core::Topology topology_of(const Config& config, const Deployment& deployment, std::uint32_t slots);
// As many as so many partitions are given: others beside them, and the last.
[[nodiscard]] std::uint32_t slots_for(std::size_t partitions);
// A setting of [policy] that no scheduler of this deployment looks at, in one line with its place; empty: none. As soon
// as it is known which partitions run what.
[[nodiscard]] std::string idle_setting(const Config& config, const Deployment& deployment);

// Applications whose SLO no route can meet even on an idle host, expected rates that the partitions cannot carry
// (capacity.h), expected streams that cannot all be kept fresh (engine/core/model/schedulable.h), and what was measured
// while something else had the core: one line each, for the log, `leat status` and `leat check`.
std::vector<std::string> unschedulable(const Deployment& deployment);

}  // namespace leat::daemon
