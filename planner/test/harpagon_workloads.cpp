#include "planner/test/harpagon_workloads.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "planner/dag.h"
#include "planner/test/uniform.h"

namespace leat::planner {
namespace {

// Hardware 0 and 1 stand for the paper's P100 and V100: prices in the ratio of their rent (1 : 1.7).
constexpr double kPrice[2] = {1.0, 1.7};
constexpr std::array<std::uint32_t, 6> kBatches = {1, 2, 4, 8, 16, 32};

// d(b) = fixed + per_item * b on hardware 0, and so many times faster on hardware 1 (below 1.7 the cheap one has the
// better ratio, above it the dear one). fixed / per_item lies between 2 and 5, as in Table I.
struct Model {
  const char* name;
  double fixed_s, per_item_s, speedup_fixed, speedup_item;
};
constexpr Model kModels[] = {
    {"ssd", 0.060, 0.022, 1.5, 1.9},         {"ssd-vehicle", 0.030, 0.012, 1.3, 1.65},
    {"ssd-person", 0.026, 0.014, 1.4, 1.5},  {"face-detect", 0.020, 0.009, 1.3, 1.4},
    {"prnet", 0.045, 0.016, 1.6, 2.1},       {"person-crop", 0.024, 0.008, 1.2, 1.3},
    {"openpose", 0.080, 0.034, 1.7, 2.0},    {"frame-features", 0.035, 0.011, 1.5, 1.8},
    {"s2vt-encode", 0.050, 0.012, 1.4, 1.5}, {"s2vt-decode", 0.060, 0.014, 1.3, 1.6},
    {"track", 0.018, 0.010, 1.2, 1.25},      {"reid", 0.028, 0.013, 1.5, 1.9},
    {"action", 0.055, 0.025, 1.6, 2.2},      {"merge", 0.012, 0.004, 1.1, 1.2},
};

struct Node {
  const char* model;
  double rate_factor;  // requests here for one of the application's
  std::vector<std::uint32_t> after;
};
struct Shape {
  const char* name;
  std::vector<Node> nodes;
};

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {
      {"traffic", {{"ssd", 1, {}}, {"ssd-vehicle", 1.6, {0}}, {"ssd-person", 0.9, {0}}}},
      {"face", {{"face-detect", 1, {}}, {"prnet", 1.4, {0}}}},
      {"pose", {{"person-crop", 1, {}}, {"openpose", 1.2, {0}}}},
      {"caption", {{"frame-features", 1, {}}, {"s2vt-encode", 0.5, {0}}, {"s2vt-decode", 0.5, {1}}}},
      {"actdet",
       {{"ssd-person", 1, {}}, {"track", 1.5, {0}}, {"reid", 1.5, {0}}, {"action", 0.8, {1, 2}}, {"merge", 1, {3}}}},
  };
  return all;
}

HarpagonModule module_of(const Node& node, double rate_rps, std::mt19937_64& random) {
  const Model* model = std::find_if(std::begin(kModels), std::end(kModels),
                                    [&](const Model& m) { return std::string(m.name) == node.model; });
  HarpagonModule out;
  out.name = node.model;
  out.rate_rps = std::round(rate_rps * node.rate_factor * 10) / 10;
  out.after = node.after;
  for (std::uint32_t hardware = 0; hardware < 2; ++hardware)
    for (std::uint32_t batch : kBatches) {
      const double fixed = hardware == 0 ? model->fixed_s : model->fixed_s / model->speedup_fixed;
      const double item = hardware == 0 ? model->per_item_s : model->per_item_s / model->speedup_item;
      const double measured = (fixed + item * batch) * uniform(random, 0.97, 1.03);  // profiles are never smooth
      out.configurations.push_back({batch, std::round(measured * 1e4) / 1e4, kPrice[hardware], hardware});
    }
  order_by_ratio(out.configurations);
  return out;
}

}  // namespace

std::vector<std::string> harpagon_applications() {
  std::vector<std::string> out;
  for (const Shape& s : shapes()) out.push_back(s.name);
  return out;
}

HarpagonProblem harpagon_workload(std::uint64_t seed, std::uint32_t index) {
  std::mt19937_64 random(seed * 0x9E3779B97F4A7C15ull + index);
  const Shape& shape = shapes()[index % shapes().size()];
  HarpagonProblem problem;
  problem.name = shape.name;
  const double rate = 20 * std::pow(20.0, uniform(random, 0, 1));  // 20 to 400 requests per second, log-uniform
  std::vector<std::vector<std::uint32_t>> after;
  std::vector<double> min;
  for (const Node& node : shape.nodes) {
    problem.modules.push_back(module_of(node, rate, random));
    double first = kNoPlan;  // batch 1 on the dear hardware
    for (const Configuration& c : problem.modules.back().configurations)
      if (c.batch == 1) first = std::min(first, c.duration_s + 1 / problem.modules.back().rate_rps);
    after.push_back(node.after);
    min.push_back(first);
  }
  problem.slo_s = std::round(longest_path(after, min) * uniform(random, 1.5, 4.5) * 1e3) / 1e3;
  return problem;
}

}  // namespace leat::planner
