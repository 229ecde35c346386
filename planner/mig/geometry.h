// MIG geometry: which GPU instances a GPU can be cut into, and where they may lie. A placement is a start in memory
// slices; compute slices only add up. Plain data. Any thread.
//
// The tables are for the simulator, the studies and the tests. For a real GPU ask the driver (leat probe writes what
// NVML says into a host file, host_io.cpp): figures of Hopper and later differ between boards and drivers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::planner {

struct MigProfile {
  std::string name;           // "3g.20gb"
  std::uint32_t compute = 1;  // slices
  std::uint32_t memory = 1;   // slices
  std::uint32_t max = 1;      // instances of this profile on one GPU
  std::vector<std::uint32_t> starts;
  std::int64_t memory_mib = 0;
  bool media = false;  // "+me": the one instance with the media engines; never chosen unless asked for
};

struct MigGeometry {
  std::string gpu;
  std::uint32_t compute_slices = 7, memory_slices = 8;
  bool from_driver = false;
  std::vector<MigProfile> profiles;
};

struct MigPlacement {
  std::uint32_t profile = 0;  // of the geometry
  std::uint32_t start = 0;
  bool operator==(const MigPlacement&) const = default;
};

// "A30", "A100-40", "A100-80", "H100-80", "H200-141"; null: no such table.
const MigGeometry* mig_table(std::string_view gpu);
std::vector<std::string> mig_table_names();

// Empty: these instances can stand on one GPU at the same time. Otherwise one line.
std::string problem_of(const MigGeometry& geometry, std::span<const MigPlacement> placements);
// Empty: the geometry itself is sound (starts inside, names unique). Otherwise one line.
std::string problem_of(const MigGeometry& geometry);

// For each compute size, ascending, the profile with the least memory that holds `memory_mib`; no media profiles.
std::vector<std::uint32_t> profiles_for(const MigGeometry& geometry, std::int64_t memory_mib);

}  // namespace leat::planner
