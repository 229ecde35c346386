// The configuration of an HAProxy in front of several gateways. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace leat::gateway {

struct FleetHost {
  std::string name, address;    // "127.0.0.2:8000"
  std::string agent;            // "127.0.0.2:9000"; empty: it reports nothing
  double items_per_second = 0;  // measured by it; 0: unknown
};

struct HaproxyOptions {
  std::string bind = "127.0.0.1:8080";
  std::uint64_t body_bytes = 0;  // the largest request
  std::int64_t timeout_ms = 1000;
  std::uint32_t agent_ms = 200;
};
[[nodiscard]] std::string haproxy_config(const std::vector<FleetHost>& hosts, const HaproxyOptions& options);

}  // namespace leat::gateway
