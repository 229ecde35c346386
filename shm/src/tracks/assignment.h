// Who goes with whom for the least cost in all.
//
// Rows and columns are matched one to one, or not at all: only pairs that cost less than `limit` count, and of all
// matchings the one with the largest sum of (limit - cost) is found (Kuhn and Munkres, by shortest augmenting paths;
// at most rows^2 (rows + columns) steps). Thread rule: a value for each thread; it keeps its memory. Errors: none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace leat::tracks {

class Assignment {
 public:
  static constexpr std::int32_t kNone = -1;
  // costs: finite, rows x columns, row by row. The result, a column or kNone for each row, is valid until the next
  // call.
  std::span<const std::int32_t> solve(std::span<const float> costs, std::size_t rows, std::size_t columns, float limit);

 private:
  void augment(std::span<const float> costs, std::size_t row, std::size_t columns, float limit);

  // Row and column 0 are nobody; columns behind the real ones are one for each row: it stays alone.
  std::vector<double> row_price_, column_price_, slack_;
  std::vector<std::size_t> row_of_, way_;
  std::vector<char> seen_;
  std::vector<std::int32_t> column_of_;
};

}  // namespace leat::tracks
