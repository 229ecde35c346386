// Random small problems of pools. Tests only.
#pragma once

#include <random>
#include <string>

#include "planner/pooled/problem.h"

namespace leat::planner {

// A model of `blocks` blocks on classes "A" (fast) and "B" (slow), shares 1..2, batches 1..2; latencies drawn.
inline Profile random_profile(std::mt19937_64& random, std::uint32_t blocks) {
  Profile p;
  p.model = "m" + std::to_string(random() % 100000);
  p.blocks = blocks;
  std::uniform_int_distribution<std::int64_t> bytes(1000, 400000), us(800, 9000);
  for (std::uint32_t k = 1; k < blocks; ++k) p.boundary_bytes.push_back(bytes(random));
  std::vector<std::int64_t> base;
  for (std::uint32_t k = 0; k < blocks; ++k) base.push_back(us(random));
  for (const char* type : {"A", "B"}) {
    std::vector<double> factor;  // some blocks suit the slow class
    for (std::uint32_t k = 0; k < blocks; ++k)
      factor.push_back(type[0] == 'A' ? 1 : 1.2 + static_cast<double>(random() % 30) / 10);
    for (std::uint32_t share = 1; share <= 2; ++share) {
      for (std::uint32_t batch = 1; batch <= 2; ++batch) {
        ProfileRow row{type, share, batch, {}};
        for (std::uint32_t k = 0; k < blocks; ++k) {
          const double ns =
              1000.0 * static_cast<double>(base[k]) * factor[k] * (share == 1 ? 1 : 1.7) * (batch == 1 ? 1 : 1.8);
          row.blocks.push_back({static_cast<std::int64_t>(ns), static_cast<std::int64_t>(ns), 1});
        }
        p.rows.push_back(std::move(row));
      }
    }
  }
  return p;
}

// A few devices of both classes for these models; D = 2. Points into `profiles`.
inline PooledProblem small_problem(std::mt19937_64& random, std::vector<Profile>& profiles) {
  PooledProblem p;
  p.types = {{"A", static_cast<std::uint32_t>(1 + random() % 3), static_cast<double>(1 + random() % 2),
              static_cast<std::uint32_t>(1 + random() % 2)},
             {"B", static_cast<std::uint32_t>(1 + random() % 3), 1, static_cast<std::uint32_t>(1 + random() % 2)}};
  p.bandwidth_gbps = 0.5 + static_cast<double>(random() % 20);
  p.max_stages = 2;
  for (const Profile& f : profiles) {
    std::int64_t whole = 0;
    for (const Latency& l : f.rows[0].blocks) whole += l.p50_ns;
    p.dnns.push_back({&f, static_cast<double>(whole) / 1000 * (1.5 + static_cast<double>(random() % 30) / 10),
                      0.2 + static_cast<double>(random() % 10) / 10, 200});
  }
  return p;
}

}  // namespace leat::planner
