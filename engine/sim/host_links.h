// The links between a simulated machine's hosts: how long a transfer takes, and when they are free. A transfer holds
// the sender's uplink and the receiver's downlink together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/core/model/topology.h"

namespace leat::sim {

class HostLinks {
 public:
  // `topology` outlives this.
  explicit HostLinks(const core::Topology& topology)
      : topology_(topology), up_free_(topology.hosts.size(), 0), down_free_(topology.hosts.size(), 0) {}

  [[nodiscard]] core::TimeNs takes_ns(std::int64_t bytes, core::PartitionId from, core::PartitionId to) const {
    const core::Topology& t = topology_;
    const std::uint32_t a = t.partitions[from].host, b = t.partitions[to].host;
    if (t.hosts.empty() || a == b || bytes == 0) return 0;
    double speed = 0;
    for (double s : {t.hosts[a].up_bytes_per_ns, t.hosts[b].down_bytes_per_ns}) {
      if (s > 0 && (speed == 0 || s < speed)) speed = s;
    }
    return speed > 0 ? static_cast<core::TimeNs>(static_cast<double>(bytes) / speed) : 0;
  }
  // When a transfer has ended that begins when both links are free.
  [[nodiscard]] core::TimeNs use(core::TimeNs now, core::PartitionId from, core::PartitionId to, core::TimeNs takes) {
    const std::uint32_t a = topology_.partitions[from].host, b = topology_.partitions[to].host;
    const core::TimeNs done = std::max({now, up_free_[a], down_free_[b]}) + takes;
    up_free_[a] = down_free_[b] = done;
    return done;
  }

 private:
  const core::Topology& topology_;
  std::vector<core::TimeNs> up_free_, down_free_;  // of each host's links
};

}  // namespace leat::sim
