#include "tools/leat/top/pages/distribution.h"

#include <algorithm>

#include "tools/leat/top/facts/text.h"
#include "tools/leat/top/pages/signs.h"

namespace leat::tools::top {

void draw_distribution(Canvas& canvas, const Buckets& buckets, double end_ns, double late_from_ns, Place p) {
  const int cells = p.width, rows = p.height - 1;
  if (cells < 1 || rows < 1) return;
  std::vector<double> heights(static_cast<std::size_t>(std::max(cells, 0)));
  for (std::uint32_t b = 0; b < shm::kBuckets; ++b) {
    if (buckets[b] == 0) continue;
    // A bucket is spread over the cells that it covers.
    const double low = static_cast<double>(shm::bucket_low_ns(b)) / end_ns * cells,
                 high = static_cast<double>(shm::bucket_low_ns(b + 1)) / end_ns * cells;
    const int from = std::clamp(static_cast<int>(low), 0, cells - 1),
              to = std::clamp(static_cast<int>(high), 0, cells - 1);
    for (int c = from; c <= to; ++c) {
      const double covered = std::min(high, c + 1.0) - std::max(low, static_cast<double>(c));
      if (covered > 0)
        heights[static_cast<std::size_t>(c)] += static_cast<double>(buckets[b]) * covered / (high - low);
      else if (c == cells - 1)
        heights[static_cast<std::size_t>(c)] += static_cast<double>(buckets[b]);
    }
  }
  const int late = late_from_ns > 0 && late_from_ns < end_ns ? static_cast<int>(late_from_ns / end_ns * cells) : -1;
  heap(canvas, p.row, p.column, rows, heights, late);
  for (int i = 0; i < cells; ++i) canvas.put_sign(p.row + rows, p.column + i, U'─', {Meaning::idle, Stress::none});
  for (int tick = 0; tick < 5; ++tick) {
    const std::string text = tick == 0 ? "0 " : " " + three(end_ns / 1e6 * tick / 5) + " ";
    canvas.put(p.row + rows, p.column + cells * tick / 5, text, {Meaning::idle, Stress::none});
  }
  canvas.put_right(p.row + rows, p.column + cells, " " + three(end_ns / 1e6) + " ms", {Meaning::idle, Stress::none});
}

}  // namespace leat::tools::top
