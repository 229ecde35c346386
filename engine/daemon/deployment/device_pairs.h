// How features get from one partition's device to another's, as leat-gpu measured it with two processes for each
// ordered pair: read in place, through a mapping of the other device's memory (peer), or by rows in pinned host memory.
// Control plane. Errors: a pair nobody could ask uses what is safe.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/daemon/configuration/config.h"
#include "leat/result.hpp"

namespace leat::daemon {

enum class Handover : std::uint8_t { in_place, peer, host };
[[nodiscard]] std::string_view name_of(Handover way) noexcept;  // "in place", "peer", "host"

struct DevicePair {
  std::string from, to;  // UUIDs
  Handover way = Handover::host;
  double gbps = 0, host_gbps = 0;  // 1e9 bit/s: by the mapping, by the host; 0: not measured
  std::string why_not;             // no mapping: one line
};

// Asks leat-gpu; seconds for each.
Result<std::vector<DevicePair>> measure_device_pairs(std::span<const std::pair<std::string, std::string>> wishes);
Result<std::vector<DevicePair>> parse_device_pairs(std::string_view json);

// By which way features get from one partition to another. A share reaches its own GPU alone, and was not asked: in
// place there unless its GPU's pair says that it does not work. Two partitions of one place that were not asked: in
// place.
[[nodiscard]] DevicePair handover(const PartitionConfig& from, const PartitionConfig& to,
                                  std::span<const DevicePair> pairs);
[[nodiscard]] std::string text_of(const DevicePair& pair);  // "peer, 210 Gbit/s, host rows 92"

}  // namespace leat::daemon
