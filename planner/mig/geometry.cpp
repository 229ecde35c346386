#include "planner/mig/geometry.h"

#include <algorithm>
#include <map>
#include <set>

namespace leat::planner {
namespace {

struct Row {
  const char* name;
  std::uint32_t compute, memory, max;
  std::vector<std::uint32_t> starts;
  std::int64_t memory_mib;
};

MigGeometry make(std::string gpu, std::uint32_t compute, std::uint32_t memory, std::initializer_list<Row> rows) {
  MigGeometry g{std::move(gpu), compute, memory, false, {}};
  for (const Row& r : rows) {
    const std::string name = r.name;
    g.profiles.push_back({name, r.compute, r.memory, r.max, r.starts, r.memory_mib, name.ends_with("+me")});
  }
  return g;
}

// Seven compute and eight memory slices, as on every large GPU so far; only names and memory differ.
MigGeometry seven(std::string gpu, std::vector<const char*> names, std::vector<std::int64_t> mib) {
  const std::vector<std::uint32_t> all = {0, 1, 2, 3, 4, 5, 6}, even = {0, 2, 4, 6};
  return make(std::move(gpu), 7, 8,
              {{names[0], 1, 1, 7, all, mib[0]},
               {names[1], 1, 1, 1, all, mib[0]},
               {names[2], 1, 2, 4, even, mib[1]},
               {names[3], 2, 2, 3, {0, 2, 4}, mib[1]},
               {names[4], 3, 4, 2, {0, 4}, mib[2]},
               {names[5], 4, 4, 1, {0}, mib[2]},
               {names[6], 7, 8, 1, {0}, mib[3]}});
}

const std::vector<MigGeometry>& tables() {
  static const std::vector<MigGeometry> all = {
      make("A30", 4, 4,
           {{"1g.6gb", 1, 1, 4, {0, 1, 2, 3}, 5836},
            {"1g.6gb+me", 1, 1, 1, {0, 1, 2, 3}, 5836},
            {"2g.12gb", 2, 2, 2, {0, 2}, 11672},
            {"2g.12gb+me", 2, 2, 1, {0, 2}, 11672},
            {"4g.24gb", 4, 4, 1, {0}, 23344}}),
      seven("A100-40", {"1g.5gb", "1g.5gb+me", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"},
            {4864, 9856, 19968, 40192}),
      seven("A100-80", {"1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"},
            {9856, 19968, 40192, 80384}),
      seven("H100-80", {"1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"},
            {9856, 19968, 40192, 80384}),
      seven("H200-141", {"1g.18gb", "1g.18gb+me", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"},
            {16384, 33280, 70656, 142336}),
  };
  return all;
}

}  // namespace

const MigGeometry* mig_table(std::string_view gpu) {
  for (const MigGeometry& g : tables())
    if (g.gpu == gpu) return &g;
  return nullptr;
}

std::vector<std::string> mig_table_names() {
  std::vector<std::string> out;
  for (const MigGeometry& g : tables()) out.push_back(g.gpu);
  return out;
}

std::string problem_of(const MigGeometry& geometry, std::span<const MigPlacement> placements) {
  std::uint32_t compute = 0;
  std::uint64_t taken = 0;
  std::vector<std::uint32_t> count(geometry.profiles.size());
  for (const MigPlacement& p : placements) {
    if (p.profile >= geometry.profiles.size()) return "no such profile";
    const MigProfile& profile = geometry.profiles[p.profile];
    const std::string where = profile.name + " at " + std::to_string(p.start);
    if (std::find(profile.starts.begin(), profile.starts.end(), p.start) == profile.starts.end())
      return where + ": it may not start there";
    if (++count[p.profile] > profile.max)
      return profile.name + ": at most " + std::to_string(profile.max) + " on one GPU";
    const std::uint64_t slices = ((1ull << profile.memory) - 1) << p.start;
    if ((taken & slices) != 0) return where + ": its memory slices are taken";
    taken |= slices;
    compute += profile.compute;
  }
  if (compute > geometry.compute_slices)
    return std::to_string(compute) + " compute slices, but the GPU has " + std::to_string(geometry.compute_slices);
  return "";
}

std::string problem_of(const MigGeometry& geometry) {
  if (geometry.compute_slices == 0 || geometry.memory_slices == 0 || geometry.memory_slices > 32)
    return "slices: 1 to 32";
  if (geometry.profiles.empty()) return "profiles: at least one";
  std::set<std::string> names;
  for (const MigProfile& p : geometry.profiles) {
    if (!names.insert(p.name).second) return p.name + ": stands twice";
    if (p.compute == 0 || p.memory == 0 || p.max == 0 || p.starts.empty())
      return p.name + ": compute, memory, most and starts must be given";
    if (p.compute > geometry.compute_slices) return p.name + ": more compute slices than the GPU has";
    for (std::uint32_t s : p.starts)
      if (s + p.memory > geometry.memory_slices)
        return p.name + " at " + std::to_string(s) + ": reaches beyond the last memory slice";
  }
  return "";
}

std::vector<std::uint32_t> profiles_for(const MigGeometry& geometry, std::int64_t memory_mib) {
  std::map<std::uint32_t, std::uint32_t> best;  // compute -> profile
  for (std::uint32_t i = 0; i < geometry.profiles.size(); ++i) {
    const MigProfile& p = geometry.profiles[i];
    if (p.media || (memory_mib > 0 && p.memory_mib < memory_mib)) continue;
    const auto at = best.find(p.compute);
    if (at == best.end() || p.memory < geometry.profiles[at->second].memory) best[p.compute] = i;
  }
  std::vector<std::uint32_t> out;
  for (const auto& [compute, profile] : best) out.push_back(profile);
  return out;
}

}  // namespace leat::planner
