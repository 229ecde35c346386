// What the stand-in drivers know of the GPUs that can be cut: SMs, memory, and the profiles of GPU instances with their
// placements, in memory slices. For tests alone: a real driver is always asked. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace leat::fake {

struct Profile {
  unsigned id;           // as NVML numbers it
  const char* name;      // "1g.10gb"
  unsigned slices;       // compute
  unsigned size;         // memory slices
  unsigned count;        // at most so many
  std::uint32_t starts;  // bit s: may begin at memory slice s
  unsigned multiprocessors;
  std::uint64_t memory_mib;
};

struct Model {
  const char* name;
  unsigned multiprocessors, mig_multiprocessors;  // whole; with MIG on
  std::uint64_t memory_mib;
  unsigned memory_slices;
  std::span<const Profile> profiles;
};

// "A30", "A100-40", "A100-80", "H100-80", "H200-141".
std::span<const Model> models() noexcept;
const Model* find_model(std::string_view name) noexcept;
const Profile* find_profile(const Model& model, unsigned id) noexcept;

}  // namespace leat::fake
