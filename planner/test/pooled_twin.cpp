#include "planner/test/pooled_twin.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace leat::planner {
namespace {

struct Stage {
  std::uint32_t type, share;
  double rps;
};

double row_us(const Profile& p, const std::string& type, std::uint32_t share, std::uint32_t batch, std::uint32_t from,
              std::uint32_t to) {
  for (const ProfileRow& r : p.rows) {
    if (r.partition_class != type || r.share != share || r.batch != batch) continue;
    double us = 0;
    for (std::uint32_t k = from; k < to; ++k) us += static_cast<double>(r.blocks[k].p50_ns) / 1000;
    return us;
  }
  return -1;
}

// Every pipeline of one or two stages that meets the budget.
std::vector<std::vector<Stage>> pipelines(const PooledProblem& problem, const PooledDnn& dnn) {
  const Profile& p = *dnn.profile;
  std::vector<std::vector<Stage>> out;
  const bool pairs = !problem.pair_gbps.empty();
  const auto gbps = [&](std::uint32_t from, std::uint32_t to) {
    return pairs ? problem.pair_gbps[from * problem.types.size() + to] : problem.bandwidth_gbps;
  };
  const auto bits_us = [&](std::uint32_t cut, std::uint32_t from, std::uint32_t to) {
    return gbps(from, to) > 0 ? static_cast<double>(p.boundary_bytes[cut - 1]) * 8 / (gbps(from, to) * 1000) : 0;
  };
  // Of a virtual GPU of this type at a cut that is an open end, or between two types.
  const auto open_cap = [&](std::uint32_t share, std::uint32_t type) {
    return pairs ? INFINITY : 1e6 / (share * problem.types[type].gpus_per_server);
  };
  const auto cap = [&](std::uint32_t cut, std::uint32_t share, std::uint32_t type, std::uint32_t from,
                       std::uint32_t to) {
    const double us = bits_us(cut, from, to);
    return us > 0 ? 1e6 / us / (share * (pairs ? 1 : problem.types[type].gpus_per_server)) : INFINITY;
  };
  for (std::uint32_t batch = 1; batch <= 4; ++batch) {
    const double build = problem.batch_build_factor * 1e6 * (batch - 1) / dnn.est_rps;
    for (std::uint32_t a = 0; a < problem.types.size(); ++a) {
      for (std::uint32_t v = 1; v <= problem.types[a].max_share; ++v) {
        for (std::uint32_t cut = 1; cut <= p.blocks; ++cut) {
          const double first = row_us(p, problem.types[a].name, v, batch, 0, cut);
          if (first < 0) continue;
          if (cut == p.blocks) {
            if (build + first <= dnn.budget_us) out.push_back({{a, v, std::min(1e6 * batch / first, open_cap(v, a))}});
            continue;
          }
          for (std::uint32_t b = 0; b < problem.types.size(); ++b) {
            for (std::uint32_t w = 1; w <= problem.types[b].max_share; ++w) {
              const double second = row_us(p, problem.types[b].name, w, batch, cut, p.blocks);
              if (second < 0 || build + first + batch * bits_us(cut, a, b) + second > dnn.budget_us) continue;
              out.push_back({{a, v, std::min({1e6 * batch / first, open_cap(v, a), cap(cut, v, a, a, b)})},
                             {b, w, std::min({1e6 * batch / second, open_cap(w, b), cap(cut, w, b, a, b)})}});
            }
          }
        }
      }
    }
  }
  return out;
}

using Use = std::vector<std::uint32_t>;  // [stage * 2 + type], in units

// Best rate for every use of the pools, slot by slot.
std::map<Use, double> best_rates(const PooledProblem& problem, const PooledDnn& dnn, std::uint32_t unit) {
  const auto all = pipelines(problem, dnn);
  std::map<Use, double> best{{Use(4, 0), 0.0}};
  for (std::uint32_t slot = 0; slot < 4; ++slot) {
    const std::uint32_t types[2] = {slot / 2, slot % 2};
    std::map<Use, double> next = best;
    for (const auto& p : all) {
      bool fits = p.size() <= 2;
      for (std::size_t s = 0; s < p.size(); ++s) fits = fits && p[s].type == types[s];
      if (!fits) continue;
      const auto max = [&](std::size_t s) { return problem.types[p[s].type].count * (unit == 1 ? 1 : p[s].share); };
      for (std::uint32_t n = 1; n <= max(0); ++n) {
        for (std::uint32_t m = 1; m <= (p.size() == 2 ? max(1) : 1); ++m) {
          const auto rate = [&](std::size_t s, std::uint32_t count) {
            return count * p[s].rps * (unit == 1 ? p[s].share : 1);
          };
          const double rps = p.size() == 2 ? std::min(rate(0, n), rate(1, m)) : rate(0, n);
          for (const auto& [use, before] : best) {
            Use then = use;
            then[types[0]] += n * (unit == 1 ? 1 : unit / p[0].share);
            if (p.size() == 2) then[2 + types[1]] += m * (unit == 1 ? 1 : unit / p[1].share);
            bool room = true;
            for (std::uint32_t g = 0; g < 2; ++g) {
              room = room && (then[g] + unit - 1) / unit + (then[2 + g] + unit - 1) / unit <= problem.types[g].count;
            }
            if (!room) continue;
            double& entry = next[then];
            entry = std::max(entry, before + rps);
          }
        }
      }
    }
    best = std::move(next);
  }
  return best;
}

}  // namespace

double twin_optimum(const PooledProblem& problem, std::uint32_t unit) {
  const std::uint32_t a_max = problem.types[0].count, b_max = problem.types[1].count;
  const auto index = [&](std::uint32_t a, std::uint32_t b) { return a * (b_max + 1) + b; };
  std::vector<double> z((a_max + 1) * (b_max + 1), INFINITY);
  for (const PooledDnn& dnn : problem.dnns) {
    std::vector<double> own(z.size(), 0), next(z.size(), 0);
    for (const auto& [use, rps] : best_rates(problem, dnn, unit)) {
      const std::uint32_t a = (use[0] + unit - 1) / unit + (use[2] + unit - 1) / unit,
                          b = (use[1] + unit - 1) / unit + (use[3] + unit - 1) / unit;
      for (std::uint32_t x = a; x <= a_max; ++x) {
        for (std::uint32_t y = b; y <= b_max; ++y) own[index(x, y)] = std::max(own[index(x, y)], rps / dnn.weight);
      }
    }
    for (std::uint32_t x = 0; x <= a_max; ++x) {
      for (std::uint32_t y = 0; y <= b_max; ++y) {
        for (std::uint32_t i = 0; i <= x; ++i) {
          for (std::uint32_t j = 0; j <= y; ++j) {
            next[index(x, y)] = std::max(next[index(x, y)], std::min(z[index(x - i, y - j)], own[index(i, j)]));
          }
        }
      }
    }
    z = std::move(next);
  }
  return z[index(a_max, b_max)];
}

}  // namespace leat::planner
