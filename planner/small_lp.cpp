#include "planner/small_lp.h"

#include <algorithm>
#include <cmath>

namespace leat::planner {
namespace {

constexpr double kTiny = 1e-11;
constexpr std::uint32_t kDantzigPivots = 2000;

}  // namespace

SmallLp SmallLp::empty(std::uint32_t rows, std::uint32_t columns) {
  SmallLp lp;
  lp.rows = rows;
  lp.columns = columns;
  lp.coefficient.assign(std::size_t{rows} * columns, 0);
  lp.right.assign(rows, 0);
  lp.gain.assign(columns, 0);
  for (std::uint32_t c = 0; c < columns; ++c) lp.other.push_back(c);
  for (std::uint32_t r = 0; r < rows; ++r) lp.basic.push_back(columns + r);
  return lp;
}

void SmallLp::pivot(std::uint32_t row, std::uint32_t column) {
  const double p = at(row, column);
  double* pivot_row = &coefficient[std::size_t{row} * columns];
  for (std::uint32_t c = 0; c < columns; ++c) pivot_row[c] /= p;
  pivot_row[column] = 1 / p;
  right[row] /= p;
  for (std::uint32_t r = 0; r < rows; ++r) {
    if (r == row) continue;
    double* other_row = &coefficient[std::size_t{r} * columns];
    const double f = other_row[column];
    if (f == 0) continue;
    other_row[column] = 0;
    for (std::uint32_t c = 0; c < columns; ++c) other_row[c] -= f * pivot_row[c];
    right[r] = std::max(0.0, right[r] - f * right[row]);
  }
  const double f = gain[column];
  gain[column] = 0;
  for (std::uint32_t c = 0; c < columns; ++c) gain[c] -= f * pivot_row[c];
  value += f * right[row];
  std::swap(basic[row], other[column]);
}

void SmallLp::maximize() {
  for (std::uint32_t pivots = 0; pivots < 20 * kDantzigPivots; ++pivots) {
    const bool bland = pivots >= kDantzigPivots;
    std::uint32_t enter = columns;
    for (std::uint32_t c = 0; c < columns; ++c) {
      if (gain[c] <= kTiny) continue;
      if (enter == columns || (bland ? other[c] < other[enter] : gain[c] > gain[enter])) enter = c;
    }
    if (enter == columns) return;
    std::uint32_t leave = rows;
    double best = INFINITY;
    for (std::uint32_t r = 0; r < rows; ++r) {
      if (at(r, enter) <= kTiny) continue;
      const double ratio = right[r] / at(r, enter);
      if (ratio < best - kTiny || (ratio <= best && leave < rows && basic[r] < basic[leave])) best = ratio, leave = r;
    }
    if (leave == rows) return;
    pivot(leave, enter);
  }
}

void SmallLp::set_objective(const std::vector<double>& of_variable) {
  const auto of = [&](std::uint32_t v) { return v < of_variable.size() ? of_variable[v] : 0; };
  value = 0;
  for (std::uint32_t c = 0; c < columns; ++c) gain[c] = of(other[c]);
  for (std::uint32_t r = 0; r < rows; ++r) {
    const double k = of(basic[r]);
    if (k == 0) continue;
    value += k * right[r];
    for (std::uint32_t c = 0; c < columns; ++c) gain[c] -= k * at(r, c);
  }
}

bool SmallLp::fix_at_zero(std::uint32_t variable) {
  const auto it = std::find(other.begin(), other.end(), variable);
  if (it == other.end()) {
    // Basic at zero: swap it out over any column it depends on; the vertex stays where it is.
    const auto row = static_cast<std::uint32_t>(std::find(basic.begin(), basic.end(), variable) - basic.begin());
    if (row == rows || right[row] > 1e-9) return false;
    std::uint32_t best = 0;
    for (std::uint32_t c = 1; c < columns; ++c) {
      if (std::abs(at(row, c)) > std::abs(at(row, best))) best = c;
    }
    if (std::abs(at(row, best)) <= kTiny) return true;
    pivot(row, best);
    return fix_at_zero(variable);
  }
  const auto column = static_cast<std::uint32_t>(it - other.begin());
  std::vector<double> narrower;
  for (std::uint32_t r = 0; r < rows; ++r) {
    for (std::uint32_t c = 0; c < columns; ++c) {
      if (c != column) narrower.push_back(at(r, c));
    }
  }
  coefficient = std::move(narrower);
  gain.erase(gain.begin() + column);
  other.erase(other.begin() + column);
  --columns;
  return true;
}

}  // namespace leat::planner
