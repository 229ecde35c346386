#include "shm/src/tracks/assignment.h"

#include <algorithm>
#include <limits>

namespace leat::tracks {

void Assignment::augment(std::span<const float> costs, std::size_t row, std::size_t columns, float limit) {
  const std::size_t all = column_price_.size() - 1;
  std::fill(slack_.begin(), slack_.end(), std::numeric_limits<double>::infinity());
  std::fill(seen_.begin(), seen_.end(), char{0});
  row_of_[0] = row;
  std::size_t column = 0;
  do {
    seen_[column] = 1;
    const std::size_t r = row_of_[column];
    double least = std::numeric_limits<double>::infinity();
    std::size_t next = 0;
    for (std::size_t c = 1; c <= all; ++c) {
      if (seen_[c] != 0) continue;
      const double gain = c <= columns ? static_cast<double>(limit - costs[(r - 1) * columns + c - 1]) : 0;
      const double reduced = -std::max(gain, 0.0) - row_price_[r] - column_price_[c];
      if (reduced < slack_[c]) slack_[c] = reduced, way_[c] = column;
      if (slack_[c] < least) least = slack_[c], next = c;
    }
    for (std::size_t c = 0; c <= all; ++c) {
      if (seen_[c] != 0)
        row_price_[row_of_[c]] += least, column_price_[c] -= least;
      else
        slack_[c] -= least;
    }
    if (next == 0) return;  // costs that are no numbers: the row stays alone
    column = next;
  } while (row_of_[column] != 0);
  for (; column != 0; column = way_[column]) row_of_[column] = row_of_[way_[column]];
}

std::span<const std::int32_t> Assignment::solve(std::span<const float> costs, std::size_t rows, std::size_t columns,
                                                float limit) {
  column_of_.assign(rows, kNone);
  if (rows == 0 || columns == 0) return column_of_;
  const std::size_t all = columns + rows + 1;
  row_price_.assign(rows + 1, 0);
  column_price_.assign(all, 0);
  slack_.resize(all);
  row_of_.assign(all, 0);
  way_.assign(all, 0);
  seen_.resize(all);
  for (std::size_t row = 1; row <= rows; ++row) augment(costs, row, columns, limit);
  for (std::size_t c = 1; c <= columns; ++c)
    if (const std::size_t r = row_of_[c]; r != 0 && costs[(r - 1) * columns + c - 1] < limit)
      column_of_[r - 1] = static_cast<std::int32_t>(c - 1);
  return column_of_;
}

}  // namespace leat::tracks
