#include "tools/leat/top/pages/signs.h"

#include <algorithm>
#include <cmath>

namespace leat::tools::top {
namespace {

constexpr char32_t kEighths[] = {U' ', U'▁', U'▂', U'▃', U'▄', U'▅', U'▆', U'▇', U'█'};

}  // namespace

char32_t sign_of(Mark mark) noexcept {
  switch (mark) {
    case Mark::failing:
      return U'×';
    case Mark::dropping:
      return U'▼';
    case Mark::late:
      return U'▲';
    case Mark::silent:
      return U'·';
    case Mark::near:
      return U'~';
    case Mark::well:
      break;
  }
  return U' ';
}

Meaning meaning_of(Mark mark) noexcept {
  switch (mark) {
    case Mark::failing:
      return Meaning::failed;
    case Mark::dropping:
      return Meaning::dropped;
    case Mark::late:
    case Mark::near:
      return Meaning::late;
    case Mark::silent:
      return Meaning::idle;
    case Mark::well:
      break;
  }
  return Meaning::plain;
}

Meaning meaning_of(State state) noexcept {
  switch (state) {
    case State::no_leatd:
    case State::stuck:
    case State::failing:
    case State::worker_down:
      return Meaning::failed;
    case State::overload:
    case State::silent:
    case State::refusing:
      return Meaning::dropped;
    case State::late:
    case State::tight:
    case State::starting:
      return Meaning::late;
    case State::watching:
    case State::idle:
      return Meaning::idle;
    case State::all_well:
      break;
  }
  return Meaning::good;
}

void slo_bar(Canvas& canvas, int row, int column, int width, double p50, double p99, double slo) {
  canvas.put_sign(row, column + width, U'│', {Meaning::idle, Stress::none});
  if (!known(p99) || !known(slo) || slo <= 0) return;
  const Meaning meaning = p99 > slo ? Meaning::dropped : p99 > 0.85 * slo ? Meaning::late : Meaning::plain;
  const double low = known(p50) ? p50 / slo * width : 0, high = p99 / slo * width;
  for (int i = 0; i < width; ++i) {
    if (i + 0.75 < low)
      canvas.put_sign(row, column + i, U'━', {meaning, Stress::none});
    else if (i + 0.25 < low)
      canvas.put_sign(row, column + i, U'╸', {meaning, Stress::none});
    else if (i + 0.5 < high)
      canvas.put_sign(row, column + i, U'─', {meaning, Stress::none});
  }
  if (p99 > slo) canvas.put_sign(row, column + width, U'»', {meaning, Stress::strong});
}

void busy_bar(Canvas& canvas, int row, int column, int width, double busy, double over, Ink ink) {
  canvas.put_sign(row, column, U'[');
  canvas.put_sign(row, column + width + 1, U']');
  if (!known(busy)) return;
  const double low = busy / 100 * width, high = (busy + (known(over) ? over : 0)) / 100 * width;
  for (int i = 0; i < width; ++i) {
    const char32_t sign = i + 0.75 < low ? U'━' : i + 0.25 < low ? U'╸' : i + 0.5 < high ? U'─' : U' ';
    canvas.put_sign(row, column + 1 + i, sign, ink);
  }
}

void used_bar(Canvas& canvas, int row, int column, int width, double now, double most) {
  busy_bar(canvas, row, column, width, known(now) && known(most) && most > 0 ? 100 * now / most : kUnknownFigure, 0,
           {known(most) && now > 0.9 * most ? Meaning::late : Meaning::plain, Stress::none});
}

void Missed::add(const StreamFigures& second) noexcept {
  const auto sum = [](double* to, float value) {
    if (known(value)) *to = (known(*to) ? *to : 0) + value;
  };
  sum(&came, second.came);
  sum(&done, second.done);
  sum(&lost, second.lost);
}

void miss_strip(Canvas& canvas, int row, int column, std::span<const Missed> cells, Meaning meaning) {
  static constexpr double kSteps[] = {0, 1, 5, 10, 20, 40};  // per cent
  for (const Missed& m : cells) {
    const int at = column++;
    if (!known(m.came) && !known(m.done)) continue;
    if (m.came <= 0 && m.done <= 0) {
      canvas.put_sign(row, at, U'·', {Meaning::idle, Stress::none});
      continue;
    }
    const double percent = m.done > 0 ? 100 * m.lost / m.done : 0;
    std::size_t step = 0;
    while (step < std::size(kSteps) && percent > kSteps[step]) ++step;
    const Meaning of = meaning == Meaning::plain || meaning == Meaning::idle ? Meaning::dropped : meaning;
    canvas.put_sign(row, at, kEighths[step + 1], {step == 0 ? Meaning::plain : of, Stress::none});
  }
}

void draw_frame(Canvas& canvas, int row, int column, Outcome outcome, double of_slo) {
  switch (outcome) {
    case Outcome::completed:
      return canvas.put_sign(row, column, kEighths[std::clamp(static_cast<int>(std::ceil(of_slo * 7)), 1, 7)]);
    case Outcome::late:
      return canvas.put_sign(row, column, sign_of(Mark::late), {Meaning::late, Stress::strong});
    case Outcome::dropped:
      return canvas.put_sign(row, column, sign_of(Mark::dropping), {Meaning::dropped, Stress::strong});
    case Outcome::failed:
    case Outcome::rejected:
    case Outcome::pending:
      return canvas.put_sign(row, column, sign_of(Mark::failing), {Meaning::failed, Stress::strong});
  }
}

void level_strip(Canvas& canvas, int row, int column, std::span<const double> cells, Ink ink) {
  for (const double v : cells) {
    const int at = column++;
    if (!known(v)) continue;
    const int level = 1 + static_cast<int>(std::lround(std::clamp(v, 0.0, 1.0) * 6));
    canvas.put_sign(row, at, kEighths[level], ink);
  }
}

double scale_over(double value) noexcept {
  if (!(value > 0)) return 1;
  const double ten = std::pow(10, std::floor(std::log10(value)));
  for (const double step : {1.0, 2.0, 4.0, 8.0})
    if (value <= step * ten) return step * ten;
  return 10 * ten;
}

void graph(Canvas& canvas, int row, int column, int rows, std::span<const Stacked> cells, double scale, Meaning upper) {
  for (const Stacked& cell : cells) {
    const int at = column++;
    if (!known(cell.good)) continue;
    const double good = std::max(0.0, cell.good) / scale * rows;
    const double all = good + std::max(0.0, known(cell.missed) ? cell.missed : 0) / scale * rows;
    for (int i = 0; i < rows; ++i) {
      const double low = good - i, high = all - i;  // of this cell's height
      if (high <= 1.0 / 16) break;
      const bool is_good = low >= 1.0 / 16;
      const bool split = is_good && high > low + 1.0 / 16 && low < 0.5;  // more missed than good within
      const int level = static_cast<int>(std::lround(std::clamp(is_good && !split ? low : high, 0.0, 1.0) * 8));
      if (level == 0) break;
      const char32_t sign = is_good && !split ? kEighths[level] : level == 8 ? U'░' : kEighths[level];
      canvas.put_sign(row + rows - 1 - i, at, sign, {is_good && !split ? Meaning::good : upper, Stress::none});
    }
  }
}

void heap(Canvas& canvas, int row, int column, int rows, std::span<const double> cells, int late_from) {
  double most = 0;
  for (const double v : cells) most = std::max(most, v);
  if (most <= 0) return;
  for (int c = 0; c < static_cast<int>(cells.size()); ++c) {
    const double height = cells[static_cast<std::size_t>(c)] / most * rows;
    if (cells[static_cast<std::size_t>(c)] <= 0) continue;
    const Meaning meaning = late_from >= 0 && c >= late_from ? Meaning::late : Meaning::good;
    for (int i = 0; i < rows; ++i) {
      const int level = static_cast<int>(std::lround(std::clamp(height - i, i == 0 ? 0.125 : 0.0, 1.0) * 8));
      if (level == 0) break;
      canvas.put_sign(row + rows - 1 - i, column + c, kEighths[level], {meaning, Stress::none});
    }
  }
}

}  // namespace leat::tools::top
