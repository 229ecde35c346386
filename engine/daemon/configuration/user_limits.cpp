#include "engine/daemon/configuration/user_limits.h"

#include <algorithm>

#include "engine/daemon/configuration/config.h"
#include "leat/leat.h"

namespace leat::daemon {
namespace {

constexpr std::uint32_t kAllRules = 1u << LEAT_OVERLOAD_fifo | 1u << LEAT_OVERLOAD_latest |
                                    1u << LEAT_OVERLOAD_latest_per_key | 1u << LEAT_OVERLOAD_never_drop;
constexpr std::uint32_t kSessions = 16;
constexpr std::uint32_t kDescriptors = 64, kTrustedDescriptors = 256;

// Of what all share a user may have half: one alone cannot take everything.
UserLimits defaults(const LimitsConfig& all, bool trusted) {
  const auto part = [&](auto whole) { return trusted ? whole : std::max<decltype(whole)>(1, whole / 2); };
  return {.sessions = trusted ? UINT32_MAX : kSessions,
          .streams = part(all.streams),
          .requests = trusted ? UINT32_MAX : part(all.requests),
          .descriptors = trusted ? kTrustedDescriptors : kDescriptors,
          .memory_bytes = part(all.memory_bytes),
          .priority = trusted ? LEAT_PRIORITY_PROTECTED : LEAT_PRIORITY_NORMAL,
          .min_slo_ns = trusted ? 0 : UserLimits::kQuarterOfApplication,
          .overload_set = trusted ? kAllRules : kAllRules & ~(1u << LEAT_OVERLOAD_never_drop),
          .coordinated_share = trusted ? 1.0 : 0.5};
}

void apply(const UserOverride& from, UserLimits& to) {
  const auto take = [](const auto& value, auto& into) {
    if (value) into = *value;
  };
  take(from.sessions, to.sessions);
  take(from.streams, to.streams);
  take(from.requests, to.requests);
  take(from.descriptors, to.descriptors);
  take(from.memory_bytes, to.memory_bytes);
  take(from.priority, to.priority);
  take(from.min_slo_ns, to.min_slo_ns);
  take(from.overload_set, to.overload_set);
  take(from.share_permille, to.share_permille);
  take(from.coordinated_share, to.coordinated_share);
}

// The more generous of both, key by key.
void widen(const UserOverride& from, UserOverride& to) {
  const auto larger = [](const auto& value, auto& into) {
    if (value) into = into ? std::max(*into, *value) : *value;
  };
  larger(from.sessions, to.sessions);
  larger(from.streams, to.streams);
  larger(from.requests, to.requests);
  larger(from.descriptors, to.descriptors);
  larger(from.memory_bytes, to.memory_bytes);
  larger(from.priority, to.priority);
  larger(from.share_permille, to.share_permille);
  larger(from.coordinated_share, to.coordinated_share);
  if (from.min_slo_ns) to.min_slo_ns = to.min_slo_ns ? std::min(*to.min_slo_ns, *from.min_slo_ns) : *from.min_slo_ns;
  if (from.overload_set) to.overload_set = to.overload_set.value_or(0) | *from.overload_set;
}

}  // namespace

UserLimits limits_of(const LimitsConfig& limits, const shm::Peer& peer, bool trusted) {
  const UserTables& tables = limits.user;
  UserLimits out = defaults(limits, trusted);
  if (!trusted) {
    apply(tables.everybody, out);
    UserOverride groups;
    for (const auto& [gid, table] : tables.groups)
      if (peer.in_group(gid)) widen(table, groups);
    apply(groups, out);
  }
  for (const auto& [uid, table] : tables.users)
    if (uid == peer.uid) apply(table, out);
  return out;
}

std::string cap_memory(LimitsConfig& limits, const shm::MemoryRoom& room) {
  if (room.bytes >= limits.memory_bytes) return {};
  const std::uint64_t wanted_mib = limits.memory_bytes >> 20;
  limits.memory_bytes = std::max<std::uint64_t>(room.bytes >> 20, 1) << 20;
  limits.memory_capped_by = room.where;
  return "frames of all clients may take " + std::to_string(limits.memory_bytes >> 20) +
         " MiB, not memory_mib = " + std::to_string(wanted_mib) + ": " + room.where +
         " leaves no more; raise that limit, or lower memory_mib in [limits]";
}

}  // namespace leat::daemon
