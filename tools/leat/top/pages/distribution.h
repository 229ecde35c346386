// A histogram of times as a heap over an axis in milliseconds.
#pragma once

#include "tools/leat/top/facts/spans.h"
#include "tools/leat/top/pages/parts.h"

namespace leat::tools::top {

// From 0 to end_ns, the last row is the axis; from late_from_ns on (0: nowhere) it is late.
void draw_distribution(Canvas& canvas, const Buckets& buckets, double end_ns, double late_from_ns, Place place);

}  // namespace leat::tools::top
