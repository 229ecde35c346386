#include "cuda/partitions/mig.h"

#include <algorithm>

#include "tools/base/json/json.h"

namespace leat::partitions {
namespace {

std::string place(const MigGpu& gpu, unsigned profile, unsigned start) {
  return gpu.profiles[profile].name + " at " + std::to_string(start);
}
std::string place(const MigGpu& gpu, const MigInstance& i) { return place(gpu, i.profile, i.start); }

std::string numbers(const std::vector<unsigned>& list) {
  std::string out;
  for (const unsigned n : list) out += (out.empty() ? "" : ", ") + std::to_string(n);
  return out;
}

// Empty: these places can be there at the same time.
std::string problem_of(const MigGpu& gpu, const std::vector<std::pair<unsigned, unsigned>>& places) {
  std::uint64_t taken = 0;
  std::vector<unsigned> count(gpu.profiles.size());
  for (const auto& [profile, start] : places) {
    const MigProfile& p = gpu.profiles[profile];
    if (std::find(p.starts.begin(), p.starts.end(), start) == p.starts.end())
      return place(gpu, profile, start) + ": it may start at " + numbers(p.starts) + " only";
    if (++count[profile] > p.max) return p.name + ": at most " + std::to_string(p.max) + " on one GPU";
    const std::uint64_t bits = ((std::uint64_t{1} << p.memory) - 1) << start;
    if ((taken & bits) != 0) return place(gpu, profile, start) + ": overlaps another instance";
    taken |= bits;
  }
  return {};
}

}  // namespace

Result<MigSteps> steps_to(const MigGpu& gpu, const MigWanted& wanted) {
  const std::string name = "GPU " + std::to_string(gpu.index) + " (" + gpu.uuid + "): ";
  if (gpu.pending)
    return Error{name +
                 "its MIG mode is about to change at its next reset; finish that first (nvidia-smi --gpu-reset)"};
  if (!gpu.on)
    return Error{name + "MIG mode is off, and is not turned on here: that needs root and an idle GPU; `nvidia-smi -i " +
                 std::to_string(gpu.index) + " -mig 1`"};
  if (!gpu.hidden.empty()) return Error{name + gpu.hidden};
  std::vector<std::pair<unsigned, unsigned>> places;
  for (const MigPlace& w : wanted.instances) {
    const auto profile = std::find_if(gpu.profiles.begin(), gpu.profiles.end(),
                                      [&](const MigProfile& p) { return p.name == w.profile; });
    if (profile == gpu.profiles.end()) return Error{name + "it has no profile '" + w.profile + "'"};
    places.emplace_back(static_cast<unsigned>(profile - gpu.profiles.begin()), w.start);
  }
  if (const std::string problem = problem_of(gpu, places); !problem.empty()) return Error{name + problem};
  MigSteps out;
  for (unsigned i = 0; i < gpu.instances.size(); ++i) {
    const MigInstance& there = gpu.instances[i];
    const auto same = std::find(places.begin(), places.end(), std::pair(there.profile, there.start));
    if (same != places.end()) {
      places.erase(same);
      (there.compute_instances == 0 ? out.finish : out.keep).push_back(i);
      continue;
    }
    if (!there.processes.empty())
      return Error{name + place(gpu, there) + " would have to go and is in use by process " + numbers(there.processes) +
                   "; stop that first"};
    out.destroy.push_back(i);
  }
  // The largest first: every start is explicit, so no order can block, and what is large is missed most.
  std::stable_sort(places.begin(), places.end(), [&](const auto& a, const auto& b) {
    return gpu.profiles[a.first].memory > gpu.profiles[b.first].memory;
  });
  out.create = std::move(places);
  return out;
}

std::vector<std::string> text_of(const MigGpu& gpu, const MigSteps& steps) {
  std::vector<std::string> out;
  for (const unsigned i : steps.keep) {
    const unsigned computes = gpu.instances[i].compute_instances;
    out.push_back("keep " + place(gpu, gpu.instances[i]) +
                  (computes > 1 ? ", which is cut into " + std::to_string(computes) + " compute instances" : ""));
  }
  for (const unsigned i : steps.finish)
    out.push_back("finish " + place(gpu, gpu.instances[i]) +
                  ": it has no compute instance, as a change that ended in the middle leaves it");
  for (const unsigned i : steps.destroy)
    out.push_back("destroy " + place(gpu, gpu.instances[i]) +
                  (gpu.instances[i].compute_instances == 0
                       ? ", which has no compute instance: a change that ended in the middle"
                       : ""));
  for (const auto& [profile, start] : steps.create) out.push_back("create " + place(gpu, profile, start));
  return out;
}

Result<std::vector<MigWanted>> parse_layout(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    if (json.at("schema").get<std::string>() != "leat-mig-layout/1")
      return Error{"schema: expected \"leat-mig-layout/1\""};
    std::vector<MigWanted> out;
    for (const Json& gpu : json.at("gpus")) {
      MigWanted wanted{gpu.at("uuid").get<std::string>(), {}};
      for (const MigWanted& other : out)
        if (other.uuid == wanted.uuid) return Error{"GPU " + wanted.uuid + " is named twice"};
      for (const Json& i : gpu.at("instances"))
        wanted.instances.push_back({i.at("profile").get<std::string>(), i.at("start").get<unsigned>()});
      out.push_back(std::move(wanted));
    }
    return out;
  } catch (const JsonError& e) {
    return Error{std::string("no layout: ") + e.what()};
  }
}

std::string as_mig_host(const std::vector<MigGpu>& gpus) {
  Json profiles = Json::array(), list = Json::array();
  const MigGpu* first = nullptr;
  const auto same = [&](const MigGpu& g) {
    return std::equal(
        g.profiles.begin(), g.profiles.end(), first->profiles.begin(), first->profiles.end(),
        [](const MigProfile& a, const MigProfile& b) { return a.name == b.name && a.starts == b.starts; });
  };
  unsigned compute = 0, memory = 0;
  for (const MigGpu& g : gpus) {
    if (g.profiles.empty()) continue;  // it cannot be cut
    if (first == nullptr) {
      first = &g;
      for (const MigProfile& p : g.profiles) {
        compute = std::max(compute, p.compute);
        for (const unsigned s : p.starts) memory = std::max(memory, s + p.memory);
        profiles.push_back({{"name", p.name},
                            {"compute", p.compute},
                            {"memory", p.memory},
                            {"most", p.max},
                            {"starts", p.starts},
                            {"memory_mib", p.memory_mib},
                            {"media", p.name.ends_with("+me")}});
      }
    }
    if (!same(g)) continue;
    Json instances = Json::array();
    for (const MigInstance& i : g.instances)
      instances.push_back({{"profile", g.profiles[i.profile].name},
                           {"start", i.start},
                           {"id", i.id},
                           {"used_by", i.processes.empty() ? "" : "process " + numbers(i.processes)}});
    list.push_back({{"index", g.index}, {"uuid", g.uuid}, {"mig_enabled", g.on}, {"instances", instances}});
  }
  if (first == nullptr) return {};
  return Json{{"schema", "leat-mig/1"},
              {"geometry",
               {{"gpu", first->name}, {"compute_slices", compute}, {"memory_slices", memory}, {"profiles", profiles}}},
              {"gpus", list}}
             .dump(2) +
         "\n";
}

}  // namespace leat::partitions
