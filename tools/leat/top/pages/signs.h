// What marks, bars, strips and graphs look like. Every sign has an ASCII one (canvas.h): cells stay where they are.
#pragma once

#include <span>
#include <vector>

#include "tools/leat/top/facts/figures.h"
#include "tools/leat/top/pages/canvas.h"

namespace leat::tools::top {

inline constexpr Ink kIdleInk{Meaning::idle, Stress::none};

[[nodiscard]] char32_t sign_of(Mark mark) noexcept;
[[nodiscard]] Meaning meaning_of(Mark mark) noexcept;
[[nodiscard]] Meaning meaning_of(State state) noexcept;

// Capture to answer against the stream's own SLO, which is the right end: p50, p99, and what lies beyond.
void slo_bar(Canvas& canvas, int row, int column, int width, double p50, double p99, double slo);
// Busy, and overhead behind it, of 100 %: "[━━━━╸─    ]".
void busy_bar(Canvas& canvas, int row, int column, int width, double busy, double over, Ink ink = {});
// Something of a limit: "[━╸      ]".
void used_bar(Canvas& canvas, int row, int column, int width, double now, double most);

// Of a span of time, what came of a stream. Not watched: a blank.
struct Missed {
  double came = kUnknownFigure, done = kUnknownFigure, lost = kUnknownFigure;
  void add(const StreamFigures& second) noexcept;
};
void miss_strip(Canvas& canvas, int row, int column, std::span<const Missed> cells, Meaning meaning);
// A share of a whole, 0 to 1, never full height, so that rows do not touch. Unknown: a blank.
void level_strip(Canvas& canvas, int row, int column, std::span<const double> cells, Ink ink = {});

// The next of 1, 2, 4, 8 times a power of ten.
[[nodiscard]] double scale_over(double value) noexcept;
// Columns of a stacked graph, from 0 to scale: the lower part good, what is on it missed.
struct Stacked {
  double good = kUnknownFigure, missed = kUnknownFigure;
};
void graph(Canvas& canvas, int row, int column, int rows, std::span<const Stacked> cells, double scale,
           Meaning upper = Meaning::dropped);
// One frame: how much of its objective its answer took, or what became of it instead.
void draw_frame(Canvas& canvas, int row, int column, Outcome outcome, double of_slo);
// A distribution, from 0 at the left.
void heap(Canvas& canvas, int row, int column, int rows, std::span<const double> cells, int late_from);

}  // namespace leat::tools::top
