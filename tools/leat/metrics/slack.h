// How much of a node is free, from two looks at its counters: 1, nothing to do; 0, full. What balancers and operators
// are told. Pure.
//
//   slack = (1 - busy) * (1 - refused) * (1 - waited / slo)
//
// busy: the share of the time that partitions that are up ran batches; refused: the share of the frames that were given
// up for want of time or room; waited: the median wait before a frame was first sent to a worker, of the shortest
// objective of the streams there are (none: not counted).
#pragma once

#include <optional>

#include "tools/leat/top/sample.h"

namespace leat::tools {

struct Slack {
  double free = 1;  // the product
  double busy = 0, refused = 0, waited = 0;
};
// Nothing: the two samples are not of one daemon, or too near.
[[nodiscard]] std::optional<Slack> slack_of(const Window& window);

}  // namespace leat::tools
