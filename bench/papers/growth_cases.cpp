#include "bench/papers/growth_cases.h"

#include <algorithm>
#include <cmath>

#include "planner/pooled/solver.h"

namespace leat::planner {
namespace {

// est_rps as PPipe finds it: a first solve without partitions and without batch building.
void estimate(PooledProblem& p) {
  for (PooledDnn& d : p.dnns) d.est_rps = 0;
  const PooledSolution whole = solve_whole_models(p);
  for (std::size_t i = 0; i < p.dnns.size(); ++i) p.dnns[i].est_rps = whole.feasible ? whole.dnns[i].rps : 1;
}

GpuType gpu(const char* name, std::uint32_t count) {
  const bool p4 = std::string(name) == "P4";
  return {name, count, p4 ? 1.0 : 2.0, p4 ? 1u : 4u};
}

const Scenario* find(const ScenarioSet& set, const std::string& id) {
  const auto it =
      std::find_if(set.scenarios.begin(), set.scenarios.end(), [&](const Scenario& s) { return s.id == id; });
  return it == set.scenarios.end() ? nullptr : &*it;
}

void add_types(const ScenarioSet& set, std::vector<GrowthCase>& out) {
  const std::vector<std::vector<GpuType>> clusters = {{gpu("L4", 25), gpu("T4", 75)},
                                                      {gpu("V100", 20), gpu("L4", 20), gpu("T4", 60)},
                                                      {gpu("V100", 15), gpu("L4", 15), gpu("T4", 35), gpu("P4", 35)}};
  for (const char* group : {"G1", "G2", "G3", "G4"}) {
    const Scenario* s = find(set, std::string("maf19-") + group + "-L4-T4");
    for (const auto& types : clusters) {
      if (s == nullptr) continue;
      GrowthCase c{"types", static_cast<double>(types.size()), group, s->problem};
      c.problem.types = types;
      estimate(c.problem);
      out.push_back(std::move(c));
    }
  }
}

void add_blocks(const ScenarioSet& set, std::vector<GrowthCase>& out, std::vector<std::vector<Profile>>& own) {
  for (const char* group : {"G1", "G2", "G3", "G4"}) {
    const Scenario* s = find(set, std::string("maf19-") + group + "-L4-T4");
    for (const std::uint32_t blocks : {5u, 10u, 15u, 20u}) {
      if (s == nullptr) continue;
      GrowthCase c{"blocks", static_cast<double>(blocks), group, s->problem};
      own.emplace_back();
      own.back().reserve(c.problem.dnns.size());
      for (PooledDnn& d : c.problem.dnns) {
        own.back().push_back(with_blocks(*d.profile, blocks));
        d.profile = &own.back().back();
      }
      out.push_back(std::move(c));
    }
  }
}

void add_dnns(const ScenarioSet& set, std::vector<GrowthCase>& out) {
  PooledProblem all;
  for (const char* group : {"G1", "G2", "G3", "G4"}) {
    const Scenario* s = find(set, std::string("equal-") + group + "-L4-T4");
    if (s == nullptr) continue;
    if (all.dnns.empty())
      all = s->problem;
    else
      all.dnns.insert(all.dnns.end(), s->problem.dnns.begin(), s->problem.dnns.end());
  }
  for (const std::size_t n : {1u, 2u, 4u, 8u, 12u}) {
    if (n > all.dnns.size()) continue;
    GrowthCase c{"dnns", static_cast<double>(n), "first models", all};
    c.problem.dnns.resize(n);
    estimate(c.problem);
    out.push_back(std::move(c));
  }
}

}  // namespace

Profile with_blocks(const Profile& profile, std::uint32_t blocks) {
  Profile out = profile;
  out.blocks = blocks;
  out.boundary_bytes.clear();
  out.block_memory_bytes.clear();
  const double step = static_cast<double>(profile.blocks) / blocks;
  for (std::uint32_t k = 1; k < blocks; ++k) {
    const auto cut = static_cast<std::uint32_t>(std::lround(step * k));
    out.boundary_bytes.push_back(profile.boundary_bytes[std::clamp(cut, 1u, profile.blocks - 1) - 1]);
  }
  for (ProfileRow& row : out.rows) {
    const std::vector<Latency> before = std::move(row.blocks);
    row.blocks.assign(blocks, {});
    for (std::uint32_t k = 0; k < blocks; ++k) {
      double ns = 0;
      for (std::uint32_t b = 0; b < before.size(); ++b) {
        const double part = std::min(step * (k + 1), b + 1.0) - std::max(step * k, static_cast<double>(b));
        if (part > 0) ns += part * static_cast<double>(before[b].p50_ns);
      }
      row.blocks[k].p50_ns = row.blocks[k].p99_ns = std::max<std::int64_t>(1, std::llround(ns));
    }
  }
  return out;
}

std::vector<GrowthCase> growth_cases(const ScenarioSet& set, std::vector<std::vector<Profile>>& own) {
  std::vector<GrowthCase> out;
  for (const Scenario& s : set.scenarios) {
    if (s.family != "maf19") continue;
    for (const std::uint32_t times : {1u, 10u, 100u, 1000u}) {
      GrowthCase c{"gpus", 0, s.id, s.problem};
      for (GpuType& t : c.problem.types) t.count *= times, c.size += t.count;
      // A fleet so much larger is that much faster at collecting a batch.
      for (PooledDnn& d : c.problem.dnns) d.est_rps *= times;
      out.push_back(std::move(c));
    }
  }
  add_types(set, out);
  add_blocks(set, out, own);
  add_dnns(set, out);
  return out;
}

}  // namespace leat::planner
