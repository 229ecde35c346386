// The ledger over several hosts: every request that came to a node was answered once, every frame that a gateway gave
// its leatd too, and every leatd's own ledger adds up. With an HAProxy in front: what its clients sent it answered, and
// what it sent its nodes is what they count, but for those it sent twice. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/base/json/json.h"
#include "tools/leat/gateway/fleet/fetch.h"

namespace leat::gateway {

struct NodeLedger {
  std::string host;
  std::string unreachable;  // why; else empty
  double requests = 0, answers = 0, in_flight = 0;
  double submitted = 0, framed = 0, lost = 0;  // frames: given to leatd, answered by it, gone with it
  double taken = 0, ended = 0, in_leatd = 0;   // leatd's total
  std::vector<std::string> wrong;              // what does not add up
};
[[nodiscard]] NodeLedger node_ledger(const std::string& host, const Samples& samples);

// What a balancer sends one node.
struct BalancedNode {
  std::string name;
  double weight = 0, sent = 0, refused = 0;  // refused: sent elsewhere, or answered by 5xx
};
struct BalancerLedger {
  double requests = 0, answers = 0;  // of the frontend
  double sent = 0, retried = 0, redispatched = 0, own_errors = 0;
  std::vector<BalancedNode> nodes;
  std::vector<std::string> wrong;
};
// Nodes that refuse much more of what they are sent than all do, one line each: they say that they have more free than
// they have, or are broken.
[[nodiscard]] std::vector<std::string> suspects(const std::vector<BalancedNode>& nodes);
// Of `show stat`'s CSV. Nothing: it is none.
[[nodiscard]] std::optional<BalancerLedger> balancer_ledger(std::string_view csv);

struct FleetLedger {
  std::vector<NodeLedger> nodes;
  std::optional<BalancerLedger> balancer;
  [[nodiscard]] bool exact() const noexcept;
};
[[nodiscard]] std::string text_of(const FleetLedger& ledger);
[[nodiscard]] Json json_of(const FleetLedger& ledger);

}  // namespace leat::gateway
