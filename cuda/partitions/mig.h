// How GPUs are cut into MIG instances, and changing that: the difference between what is there and what is wanted, and
// nothing else. MIG mode is never turned on or off, and what is in use is never destroyed. Every step is one call of
// NVML's; whoever ends in the middle leaves instances as they are, and the next run sees them and goes on from there.
// Thread rule: one thread. Errors: one line.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "leat/result.hpp"

namespace leat::partitions {

struct MigProfile {
  unsigned id = 0;                                                 // the driver's
  std::string name;                                                // "1g.10gb"
  unsigned compute = 0, memory = 0, max = 0, multiprocessors = 0;  // slices; instances; of one
  std::uint64_t memory_mib = 0;
  std::vector<unsigned> starts;  // memory slices
};
struct MigInstance {
  unsigned id = 0;       // the driver's
  unsigned profile = 0;  // index in MigGpu::profiles
  unsigned start = 0;
  unsigned compute_instances = 0;  // 0: it holds its slices and nobody can use it
  std::vector<unsigned> processes;
};
struct MigGpu {
  unsigned index = 0;  // as the driver counts
  std::string uuid, name;
  bool on = false, pending = false;  // pending: the mode changes when the GPU is reset
  std::string hidden;                // why its instances or their processes cannot be seen; empty: they can
  std::vector<MigProfile> profiles;
  std::vector<MigInstance> instances;
};

struct MigPlace {
  std::string profile;
  unsigned start = 0;
};
struct MigWanted {
  std::string uuid;
  std::vector<MigPlace> instances;
};

// Indexes: into instances (keep, finish, destroy), and profile and start (create).
struct MigSteps {
  std::vector<unsigned> keep, finish, destroy;
  std::vector<std::pair<unsigned, unsigned>> create;
  [[nodiscard]] bool any() const noexcept { return !finish.empty() || !destroy.empty() || !create.empty(); }
};

// The steps, or why there are none to be taken.
Result<MigSteps> steps_to(const MigGpu& gpu, const MigWanted& wanted);
// One line a step, as it would be done or has been.
std::vector<std::string> text_of(const MigGpu& gpu, const MigSteps& steps);

// Schema leat-mig-layout/1: {"gpus": [{"uuid": ..., "instances": [{"profile": ..., "start": ...}]}]}.
Result<std::vector<MigWanted>> parse_layout(const std::string& text);
// Schema leat-mig/1, what leat-plan mig reads: the GPUs that are cut as the first one is.
std::string as_mig_host(const std::vector<MigGpu>& gpus);

class MigDriver {
 public:
  static Result<std::unique_ptr<MigDriver>> open();
  ~MigDriver();

  [[nodiscard]] std::vector<MigGpu> read() const;
  // Destroys first. Stops at the first step that the driver refuses: *done says how many were taken.
  Status take(const MigGpu& gpu, const MigSteps& steps, unsigned* done) const;

 private:
  struct Library;
  explicit MigDriver(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

}  // namespace leat::partitions
