// The parts that pages are put together from: each draws into a place of a canvas. Pure.
#pragma once

#include <algorithm>
#include <functional>

#include "tools/leat/top/pages/view.h"

namespace leat::tools::top {

struct Place {
  int row = 0, column = 0, height = 0, width = 0;
};

inline constexpr int kWide = 119;  // from here on rows have more columns, and graphs stand side by side
inline constexpr int kLookRows = 24, kLookColumns = 80;

// Calls f(cell, second) for every second shown or before it that lies in one of `cells` spans of step_ns, the last of
// which ends with the second shown. Cells count from the oldest. A second reaches back to the one before, so that none
// is left empty because two samples lay a little further apart.
template <class F>
void over_time(const Scene& scene, int cells, std::int64_t step_ns, F&& f) {
  const auto& seconds = scene.facts.seconds();
  const std::int64_t end = seconds[scene.at].at_ns;
  const auto cell_of = [&](std::int64_t at_ns) { return cells - 1 - (end - at_ns) / step_ns; };
  for (std::size_t i = scene.at + 1; i-- > 0;) {
    const std::int64_t cell = cell_of(seconds[i].at_ns);
    if (cell < 0) break;
    const bool follows = i > 0 && seconds[i].at_ns - seconds[i - 1].at_ns < 3 * kSecondNs;
    const std::int64_t from = follows ? std::max<std::int64_t>(0, cell_of(seconds[i - 1].at_ns) + 1) : cell;
    for (std::int64_t c = std::min(from, cell); c <= cell; ++c) f(static_cast<int>(c), seconds[i]);
  }
}

void draw_head(Canvas& canvas, const Scene& scene, int width);
void draw_keys(Screen& screen, const Scene& scene, int row, int width);
// Six rows: a graph of a minute, or of ten; fewer: strips.
void draw_frames(Screen& screen, const Scene& scene, Place place);
// Nine rows, two graphs of ten minutes side by side.
void draw_frames_wide(Screen& screen, const Scene& scene, Place place);
[[nodiscard]] int partition_rows(const Scene& scene, int width);  // without the title
void draw_partitions(Screen& screen, const Scene& scene, Place place, bool cursor = false);
void draw_modules(Canvas& canvas, const Scene& scene, Place place);
// What became of the tasks that came to modules, and of partitions' workers.
void draw_modules_more(Canvas& canvas, const Scene& scene, Place place);
void draw_partitions_more(Canvas& canvas, const Scene& scene, Place place);
[[nodiscard]] std::string end_text(float status);  // PartitionFigures::end_status
void draw_streams(Screen& screen, const Scene& scene, Place place);
void draw_change(Canvas& canvas, const Scene& scene, const Change& change, int row, Place place);
// With a title, as many as fit; of those for which `which` is true, where it is given.
void draw_changes_of(Canvas& canvas, const Scene& scene, Place place, bool newest_first,
                     const std::function<bool(const Change&)>& which = {});
void draw_why(Canvas& canvas, const Scene& scene, Place place);
// "▁▁▂" of a stream: cells of step_ns.
void draw_misses(Canvas& canvas, const Scene& scene, int row, int column, int cells, std::int64_t step_ns, Key key,
                 Meaning meaning);
// "0 ─── 20 ─── 40": the axis under a graph of the past.
void draw_time_axis(Canvas& canvas, int row, int column, int cells, bool minutes);

// A look or a page, drawn into a screen of its own size.
void draw_stream_look(Screen& screen, const Scene& scene, Key key, Place place);
void draw_partition_look(Screen& screen, const Scene& scene, Key key, Place place);
void draw_daemon_page(Screen& screen, const Scene& scene, Place place);
void draw_users_page(Screen& screen, const Scene& scene, Place place);
void draw_changes_page(Screen& screen, const Scene& scene, Place place);
void draw_help(Canvas& canvas, int rows, int columns);

[[nodiscard]] std::string why_text(const StreamFigures& stream, std::int64_t now_ns);

}  // namespace leat::tools::top
