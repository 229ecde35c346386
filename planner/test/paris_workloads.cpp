#include "planner/test/paris_workloads.h"

#include <cmath>
#include <random>

#include "planner/mig/geometry.h"
#include "planner/test/uniform.h"

namespace leat::planner {

ParisWorkload paris_workload(std::uint64_t seed, std::uint32_t index) {
  std::mt19937_64 random(seed * 0x9E3779B97F4A7C15ull + index);
  ParisWorkload out;
  const std::vector<std::string> names = mig_table_names();
  out.geometry = names[random() % names.size()];
  out.gpus = 1 + static_cast<std::uint32_t>(random() % 8);
  out.model.name = "random";
  out.model.fixed_s = uniform(random, 0.001, 0.006);
  out.model.work_s = 0.0008 * std::pow(40.0, uniform(random, 0, 1));  // 0.8 to 32 ms, log-uniform
  const std::uint32_t max = 8u << (random() % 3);                     // 8, 16 or 32
  out.batch_share = lognormal_batches(uniform(random, 0.0, 2.2), uniform(random, 0.5, 1.3), max);
  out.sla_factor = uniform(random, 1.2, 3.0);
  return out;
}

LayoutChoice random_layout(const LayoutSpace& space, std::uint64_t seed, const SizeDemand& demand) {
  std::mt19937_64 random(seed);
  std::vector<std::uint32_t> layouts;
  for (std::uint32_t g = 0; g < space.gpus(); ++g)
    layouts.push_back(static_cast<std::uint32_t>(random() % space.layouts().size()));
  return space.choice_of(std::move(layouts), demand);
}

}  // namespace leat::planner
