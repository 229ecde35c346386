// The gateway's own counts as metrics: leat_gateway_*. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "tools/leat/gateway/http/connection.h"
#include "tools/leat/gateway/serving/admission.h"
#include "tools/leat/metrics/metric_text.h"

namespace leat::gateway {

struct GatewayFigures {
  const std::map<std::string, ModelCounts>& counts;
  const HttpCounts& http;
  std::size_t connections = 0;
  const HeldBytes& held_bytes;
  bool ready = false, draining = false;
  int agent_percent = 0;
};
void add_gateway_metrics(tools::MetricText& out, const GatewayFigures& figures);

}  // namespace leat::gateway
