#include "tools/leat/gateway/fleet/haproxy.h"

#include <algorithm>
#include <cmath>

namespace leat::gateway {
namespace {

// The fastest has 100.
int weight_of(const FleetHost& host, double fastest) {
  if (fastest <= 0 || host.items_per_second <= 0) return 100;
  return std::clamp(static_cast<int>(std::lround(100 * host.items_per_second / fastest)), 1, 100);
}

}  // namespace

std::string haproxy_config(const std::vector<FleetHost>& hosts, const HaproxyOptions& options) {
  double fastest = 0;
  for (const FleetHost& h : hosts) fastest = std::max(fastest, h.items_per_second);
  const std::uint64_t buffer = std::max<std::uint64_t>(16 * 1024, options.body_bytes) + 16 * 1024;
  std::string out =
      R"(# Made by leat gateway --haproxy. A request goes to the node with the fewest in flight for its weight.
global
    maxconn 4096
    # A request that lies whole in one buffer can be sent again when its node is lost.
    tune.bufsize )" +
      std::to_string(buffer) +
      R"(
    stats socket /run/haproxy-leat.sock mode 600 level admin

defaults
    mode http
    option http-keep-alive
    option redispatch 1
    retries 1
    # Not 429: that is the client's own limit, and no other node has more of it.
    retry-on conn-failure empty-response response-timeout 503
    timeout connect 250ms
    timeout client 60s
    timeout http-request 5s
    timeout http-keep-alive 60s
    timeout queue )" +
      std::to_string(std::max<std::int64_t>(1, options.timeout_ms / 4)) +
      R"(ms
    timeout server )" +
      std::to_string(options.timeout_ms) +
      R"(ms

frontend leat
    bind )" +
      options.bind +
      R"(
    default_backend nodes
    http-request set-header X-Leat-Via %[hostname]

backend nodes
    balance leastconn
    option http-buffer-request
    option httpchk
    http-check send meth GET uri /v2/health/ready ver HTTP/1.1 hdr Host leat
    http-check expect status 200
    # What a node has that is no longer ready goes on: it may be draining.
    default-server check inter 500ms fastinter 100ms downinter 250ms fall 2 rise 1
)";
  for (const FleetHost& h : hosts) {
    out += "    server " + h.name + " " + h.address + " weight " + std::to_string(weight_of(h, fastest));
    const std::size_t colon = h.agent.rfind(':');
    if (colon != std::string::npos)
      out += " agent-check agent-addr " + h.agent.substr(0, colon) + " agent-port " + h.agent.substr(colon + 1) +
             " agent-inter " + std::to_string(options.agent_ms) + "ms";
    out += "\n";
  }
  return out;
}

}  // namespace leat::gateway
