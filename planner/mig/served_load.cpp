#include "planner/mig/served_load.h"

#include <cmath>
#include <cstddef>

namespace leat::planner {
namespace {

constexpr double kZero = 1e-12;

// Dense tableau in the slack basis; all right-hand sides are >= 0, so it starts feasible. Bland's rule: no cycling.
class Tableau {
 public:
  Tableau(std::size_t rows, std::size_t columns)
      : rows_(rows), width_(columns + rows + 1), cells_((rows + 1) * width_), basis_(rows) {
    for (std::size_t r = 0; r < rows; ++r) {
      at(r, columns + r) = 1;
      basis_[r] = columns + r;
    }
  }
  double& at(std::size_t row, std::size_t column) { return cells_[row * width_ + column]; }
  double& right(std::size_t row) { return cells_[row * width_ + width_ - 1]; }
  std::size_t objective() const { return rows_; }  // row of reduced costs, negated objective

  // Maximises; false when the pivots run out.
  bool solve() {
    for (int pivots = 0; pivots < 20000; ++pivots) {
      const std::size_t column = entering(pivots);
      if (column == width_) return true;
      std::size_t row = rows_;
      for (std::size_t r = 0; r < rows_; ++r) {
        if (at(r, column) <= kZero) continue;
        if (row == rows_) {
          row = r;
          continue;
        }
        const double x = right(r) / at(r, column), y = right(row) / at(row, column);
        if (x < y - kZero || (x <= y + kZero && basis_[r] < basis_[row])) row = r;
      }
      if (row == rows_) return false;  // unbounded: cannot be with positive latencies
      pivot(row, column);
    }
    return false;
  }

 private:
  // Steepest coefficient first; Bland's rule after a while, since the class rows are degenerate.
  std::size_t entering(int pivots) {
    std::size_t best = width_;
    for (std::size_t c = 0; c + 1 < width_; ++c) {
      if (at(rows_, c) >= -1e-10) continue;
      if (pivots > 300) return c;
      if (best == width_ || at(rows_, c) < at(rows_, best)) best = c;
    }
    return best;
  }
  void pivot(std::size_t row, std::size_t column) {
    const double by = at(row, column);
    for (std::size_t c = 0; c < width_; ++c) at(row, c) /= by;
    for (std::size_t r = 0; r <= rows_; ++r) {
      const double factor = at(r, column);
      if (r == row || std::abs(factor) < 1e-15) continue;
      for (std::size_t c = 0; c < width_; ++c) at(r, c) -= factor * at(row, c);
    }
    basis_[row] = column;
  }

  std::size_t rows_, width_;
  std::vector<double> cells_;
  std::vector<std::size_t> basis_;
};

}  // namespace

ServedLoad served_load(const SizeDemand& demand, const std::vector<double>& instances) {
  const std::size_t sizes = demand.latency_s.size();
  struct Use {
    std::size_t size, row;
    double latency_s;
  };
  std::vector<Use> uses;
  std::vector<double> share;
  double scale = 0;  // seconds: keeps the tableau's entries near 1
  for (std::size_t b = 0; b < demand.batch_share.size(); ++b) {
    if (demand.batch_share[b] <= 0) continue;
    for (std::size_t k = 0; k < sizes; ++k)
      if (demand.latency_s[k][b] <= demand.sla_s) {
        uses.push_back({k, share.size(), demand.latency_s[k][b]});
        scale = std::max(scale, demand.latency_s[k][b]);
      }
    share.push_back(demand.batch_share[b]);
  }
  ServedLoad out;
  out.price.assign(sizes, 0);
  if (uses.empty()) return out;
  // Columns: the rate (in requests per `scale`), then y of every use. Rows: capacity of each size, then each class.
  Tableau tableau(sizes + share.size(), 1 + uses.size());
  for (std::size_t k = 0; k < sizes; ++k) tableau.right(k) = instances[k];
  for (std::size_t c = 0; c < share.size(); ++c) tableau.at(sizes + c, 0) = share[c];
  for (std::size_t u = 0; u < uses.size(); ++u) {
    tableau.at(uses[u].size, 1 + u) = uses[u].latency_s / scale;
    tableau.at(sizes + uses[u].row, 1 + u) = -1;
  }
  tableau.at(tableau.objective(), 0) = -1;
  if (!tableau.solve()) return out;
  out.rate_rps = tableau.right(tableau.objective()) / scale;
  for (std::size_t k = 0; k < sizes; ++k) out.price[k] = tableau.at(tableau.objective(), 1 + uses.size() + k) / scale;
  return out;
}

}  // namespace leat::planner
