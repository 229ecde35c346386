#include "planner/pooled/lp.h"

#include <algorithm>
#include <cmath>

#include "planner/small_lp.h"

namespace leat::planner {
namespace {

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
  return sum;
}

}  // namespace

PooledLp::PooledLp(std::vector<double> counts, std::vector<double> weights, std::vector<LpColumn> columns)
    : counts_(std::move(counts)), weights_(std::move(weights)) {
  const auto types = static_cast<std::uint32_t>(counts_.size());
  const auto dnns = static_cast<std::uint32_t>(weights_.size());
  scale_.assign(dnns, 0);
  columns_.resize(dnns);
  for (const LpColumn& c : columns) {
    double sum = 0;
    for (const double g : c.gpus_per_rps) sum += g;
    scale_[c.dnn] = std::max(scale_[c.dnn], 1 / sum);
  }
  // Rows: GPUs of each type, then weight * z - rates <= 0 for each DNN. Column 0 is z.
  SmallLp lp = SmallLp::empty(types + dnns, 1 + static_cast<std::uint32_t>(columns.size()));
  for (std::uint32_t g = 0; g < types; ++g) lp.right[g] = counts_[g];
  for (std::uint32_t i = 0; i < dnns; ++i) lp.at(types + i, 0) = weights_[i] / scale_[i];
  for (std::uint32_t c = 1; c < lp.columns; ++c) {
    const LpColumn& column = columns[c - 1];
    for (std::uint32_t g = 0; g < types; ++g) lp.at(g, c) = column.gpus_per_rps[g] * scale_[column.dnn];
    lp.at(types + column.dnn, c) = -1;
  }
  lp.gain[0] = 1;
  lp.maximize();
  for (std::uint32_t r = 0; r < lp.rows; ++r) {
    if (lp.basic[r] >= 1 && lp.basic[r] < lp.columns)
      columns[lp.basic[r] - 1].rps = lp.right[r] * scale_[columns[lp.basic[r] - 1].dnn];
  }
  for (const LpColumn& c : columns) columns_[c.dnn].push_back(c);
  gpu_price_.assign(types, 0);
  for (std::uint32_t c = 0; c < lp.columns; ++c) {
    const std::uint32_t slack = lp.other[c] - lp.columns;
    if (lp.other[c] >= lp.columns && slack < types) gpu_price_[slack] = std::max(0.0, -lp.gain[c]);
  }
  // Made exactly feasible, so that rounding cannot spoil the bound.
  rps_price_.assign(dnns, INFINITY);
  for (const LpColumn& c : columns) rps_price_[c.dnn] = std::min(rps_price_[c.dnn], dot(gpu_price_, c.gpus_per_rps));
  const double norm = dot(weights_, rps_price_);
  for (double& p : gpu_price_) p /= norm;
  for (double& p : rps_price_) p /= norm;
  bound_ = dot(gpu_price_, counts_);
}

PooledLp::Shape PooledLp::shape(std::uint32_t dnn, double rps, double waste, const std::vector<double>& max_gpus,
                                std::uint32_t slots) const {
  const auto types = static_cast<std::uint32_t>(counts_.size());
  const std::vector<LpColumn>& columns = columns_[dnn];
  const double scale = scale_[dnn];
  Shape out;
  out.rps.resize(slots);
  out.min_gpus.assign(types, 0);
  // Rows: GPUs of each type; waste; rates <= rps, then held at rps.
  SmallLp lp = SmallLp::empty(types + 2, static_cast<std::uint32_t>(columns.size()));
  for (std::uint32_t c = 0; c < columns.size(); ++c) {
    for (std::uint32_t g = 0; g < types; ++g) lp.at(g, c) = columns[c].gpus_per_rps[g] * scale;
    lp.at(types, c) = std::max(0.0, dot(gpu_price_, columns[c].gpus_per_rps) - rps_price_[dnn]) / rps_price_[dnn];
    lp.at(types + 1, c) = 1;
  }
  for (std::uint32_t g = 0; g < types; ++g) lp.right[g] = max_gpus[g];
  lp.right[types] = waste / (rps_price_[dnn] * scale);
  lp.right[types + 1] = rps / scale;
  const std::uint32_t rest = lp.columns + types + 1;  // slack of the last row
  std::vector<double> objective(columns.size(), 1.0);
  lp.set_objective(objective);
  lp.maximize();
  if (lp.value < rps / scale * (1 - 1e-9)) return out;
  // Whatever rounding left of the last row's slack is zero.
  const auto row = std::find(lp.basic.begin(), lp.basic.end(), rest);
  if (row != lp.basic.end()) lp.right[static_cast<std::size_t>(row - lp.basic.begin())] = 0;
  out.possible = lp.fix_at_zero(rest);
  const auto extreme = [&](double sign, auto&& of) {
    for (std::uint32_t c = 0; c < columns.size(); ++c) objective[c] = sign * of(columns[c]);
    lp.set_objective(objective);
    lp.maximize();
    return sign * lp.value;
  };
  for (std::uint32_t g = 0; g < types; ++g) {
    out.min_gpus[g] = extreme(-1, [&](const LpColumn& c) { return c.gpus_per_rps[g] * scale; });
  }
  for (std::uint32_t s = 0; s < slots; ++s) {
    const auto through = [&](const LpColumn& c) { return c.slot == s ? scale : 0.0; };
    out.rps[s] = {std::max(0.0, extreme(-1, through)), extreme(1, through)};
  }
  return out;
}

}  // namespace leat::planner
