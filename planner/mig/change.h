// From the MIG instances in force to a wanted layout, stopping as little as possible: what stays, what goes, what is
// created, and the commands an administrator would type. Nothing is executed here. Any thread; pure and deterministic.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "leat/result.hpp"
#include "planner/mig/layout.h"

namespace leat::planner {

inline constexpr std::uint32_t kMaxMigGpus = 8;

struct MigInstance {
  MigPlacement placement;
  std::int32_t id = -1;  // GPU instance id, for the commands
  std::string uuid;
  std::string used_by;  // who runs there; empty: nobody
};

struct MigGpu {
  std::uint32_t index = 0;  // as the driver counts
  std::string uuid;
  bool mig_enabled = true;
  std::vector<MigInstance> instances;
};

struct MigHost {
  MigGeometry geometry;  // of every GPU
  std::vector<MigGpu> gpus;
};

// A host file (docs/research/planning-paris.md), schema leat-mig/1. Errors: one line with file and key.
Result<MigHost> parse_mig_host(std::string_view json, const std::string& name);
Result<MigHost> read_mig_host(const std::string& path);

struct GpuChange {
  std::vector<MigInstance> kept, destroyed;
  std::vector<MigPlacement> created;  // largest first; every start is explicit, so that their order cannot block
  bool any() const { return !destroyed.empty() || !created.empty(); }
};

struct MigChange {
  std::vector<GpuChange> gpus;  // [gpu of the host]
  SizeCounts counts;            // after the change, sizes of the space
  double served_rps = 0;        // after the change
  double served_before_rps = 0;
};

// `layouts`: one index into space.layouts() per GPU, in any order: they are dealt to the GPUs so that the most compute
// slices stay, in use before idle.
MigChange change_to(const LayoutSpace& space, const MigHost& host, const std::vector<std::uint32_t>& layouts,
                    const SizeDemand& demand);

// Stops changing once (1 - tolerance) of `best` is served: one GPU after the other, the best gain for what it stops
// first. Falls back to change_to(best.layouts) where single changes do not get there. tolerance 0: exactly the best.
MigChange min_change(const LayoutSpace& space, const MigHost& host, const LayoutChoice& best, double tolerance,
                     const SizeDemand& demand);

// One line a command or remark ("# ..."), in the order to type them.
std::vector<std::string> commands_for(const MigHost& host, const MigChange& change);

}  // namespace leat::planner
