// What leatd counts, as metrics: every counter of every record, from the counters segment alone, named by its table.
// leat_<record>_<counter>, in base units: seconds, bytes, ratios. Pure.
#pragma once

#include <string>
#include <vector>

#include "tools/leat/metrics/metric_text.h"
#include "tools/leat/top/sample.h"

namespace leat::tools {

void add_daemon_metrics(MetricText& out, const Sample& sample);
// leat_slack and its parts.
void add_slack(MetricText& out, const Window& window);

}  // namespace leat::tools
