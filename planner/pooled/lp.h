// The relaxation of the pooled problem: fractions of GPUs, any number of pipelines. Gives the upper bound, prices that
// prove it, and, for one DNN, what any plan within a budget of waste must look like. One thread an object.
#pragma once

#include <cstdint>
#include <vector>

namespace leat::planner {

// A way to serve one DNN through one slot: GPUs of each type for one request per second.
struct LpColumn {
  std::uint32_t dnn = 0, slot = 0;   // slot: position in that DNN's list of slots
  std::vector<double> gpus_per_rps;  // [type]
  double rps = 0;                    // in the optimum; filled by PooledLp
};

class PooledLp {
 public:
  // Precondition: every DNN has a column, counts and weights positive. Columns another of the same DNN and slot beats
  // should be left out.
  PooledLp(std::vector<double> counts, std::vector<double> weights, std::vector<LpColumn> columns);

  double bound() const { return bound_; }  // no plan has a larger z
  const std::vector<std::vector<LpColumn>>& columns() const {
    return columns_;
  }  // [dnn], with their rates at the optimum
  // Prices with sum over types of gpu_price * count = bound, and for every column price of its GPUs >= rps_price[dnn];
  // sum of weight * rps_price = 1. So a plan's waste, price of its GPUs less the price of its rates, is at most bound -
  // z.
  const std::vector<double>& gpu_price() const { return gpu_price_; }
  const std::vector<double>& rps_price() const { return rps_price_; }

  struct Range {
    double min = 0, max = 0;
  };
  struct Shape {
    bool possible = false;
    std::vector<Range> rps;        // [slot]: rate through it
    std::vector<double> min_gpus;  // [type]
  };
  // Over all ways to serve `rps` of this DNN with at most `most_gpus` of each type and at most `waste`. `slots`: how
  // many it has; 0: only least_gpus is wanted.
  Shape shape(std::uint32_t dnn, double rps, double waste, const std::vector<double>& max_gpus,
              std::uint32_t slots) const;

 private:
  std::vector<double> counts_, weights_;
  std::vector<double> scale_;                   // [dnn]: rate of a GPU, so that numbers stay near 1
  std::vector<std::vector<LpColumn>> columns_;  // [dnn]
  double bound_ = 0;
  std::vector<double> gpu_price_, rps_price_;
};

}  // namespace leat::planner
