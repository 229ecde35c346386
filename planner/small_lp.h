// A linear program of few rows, as a dense dictionary: basic = right - coefficient * other, objective value + gain *
// other, all variables >= 0. The caller gives a feasible start (right >= 0) and may re-optimise from any optimum with
// another objective. Deterministic. One thread an object.
#pragma once

#include <cstdint>
#include <vector>

namespace leat::planner {

struct SmallLp {
  std::uint32_t rows = 0, columns = 0;
  std::vector<double> coefficient;  // [row * columns + column]
  std::vector<double> right, gain;
  double value = 0;
  std::vector<std::uint32_t> basic, other;  // names: 0..columns-1 as given, then one slack a row

  // Maximise 0 subject to coefficient * x <= right; fill coefficient (zeroed) and right (>= 0) before maximize().
  static SmallLp empty(std::uint32_t rows, std::uint32_t columns);

  double& at(std::uint32_t r, std::uint32_t c) { return coefficient[r * columns + c]; }
  double at(std::uint32_t r, std::uint32_t c) const { return coefficient[r * columns + c]; }
  // The objective in terms of variables by name; variables past the vector's end count 0. Keeps the present vertex.
  void set_objective(const std::vector<double>& of_variable);
  // To the optimum; Dantzig's rule, then Bland's, which cannot cycle. Precondition: bounded.
  void maximize();
  // Fixes a variable that is now zero (not basic) at zero. False: it is basic.
  bool fix_at_zero(std::uint32_t variable);

 private:
  void pivot(std::uint32_t row, std::uint32_t column);
};

}  // namespace leat::planner
