// What one user may have and ask for. Authority belongs to the user the kernel names (SO_PEERCRED), not to a connection
// or to what a client says: [limits.user] holds for everybody, [limits.groups.NAME] and [limits.users.NAME] override it
// key by key. Root and leatd's own user (trusted) have everything unless a table of their own says otherwise.
// Thread rule: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shm/src/protocol/listener.h"
#include "shm/src/segments/available_memory.h"

namespace leat::daemon {

// Coordinated streams of an application, at most: a turn that plans for all of them several times over (some come, some
// go) must not keep the others waiting. bench/micro/plan_cost measures one plan.
inline constexpr std::uint32_t kMaxCoordinated = 256;

struct LimitsConfig;

struct UserLimits {
  std::uint32_t sessions = 0;     // connections: clients, observers, and who has not said hello
  std::uint32_t streams = 0;      // open, of all his clients
  std::uint32_t requests = 0;     // in flight: the depths of his streams together
  std::uint32_t descriptors = 0;  // sent to him and not received yet
  std::uint64_t memory_bytes = 0;
  std::uint32_t priority = 0;           // highest, leat_priority
  std::int64_t min_slo_ns = 0;          // kQuarterOfApplication: of the application's own
  std::uint32_t overload_set = 0;       // bit 1 << leat_overload for each rule allowed
  std::uint32_t share_permille = 1000;  // weight beside other users' where they compete for partitions
  double coordinated_share = 1;  // of a partition, that each coordinated stream of his may ask for; 0: he may have none

  static constexpr std::int64_t kQuarterOfApplication = -1;
  std::int64_t min_slo_of(std::int64_t application_slo_ns) const noexcept {
    return min_slo_ns == kQuarterOfApplication ? application_slo_ns / 4 : min_slo_ns;
  }
};

// What one table of the configuration says; a key that it does not name is empty.
struct UserOverride {
  std::optional<std::uint32_t> sessions, streams, requests, descriptors;
  std::optional<std::uint64_t> memory_bytes;
  std::optional<std::uint32_t> priority;
  std::optional<std::int64_t> min_slo_ns;
  std::optional<std::uint32_t> overload_set, share_permille;
  std::optional<double> coordinated_share;
};

struct UserTables {
  UserOverride everybody;
  std::vector<std::pair<gid_t, UserOverride>> groups;
  std::vector<std::pair<uid_t, UserOverride>> users;
};

// His own table before his groups' (of several the most generous, key by key) before everybody's before the built-in
// defaults. Of a trusted user only his own table counts.
UserLimits limits_of(const LimitsConfig& limits, const shm::Peer& peer, bool trusted);

// What clients may hold together is no more than there is room for, where a memory cgroup is smaller than the
// configuration thinks. The line that says so; empty: it fits.
std::string cap_memory(LimitsConfig& limits, const shm::MemoryRoom& room);

}  // namespace leat::daemon
