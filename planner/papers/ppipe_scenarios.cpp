#include "planner/papers/ppipe_scenarios.h"

#include <algorithm>
#include <filesystem>

#include "planner/io/profile_io.h"
#include "tools/base/documents/document.h"
#include "tools/base/documents/text_file.h"

namespace leat::planner {
namespace {

void read_problem(const JsonCursor& c, const std::vector<Profile>& profiles, PooledProblem& p) {
  for (const auto& g : c.at("gpus").items()) {
    p.types.push_back({g.at("type").text(), static_cast<std::uint32_t>(g.at("count").integer(1, 100'000'000)),
                       g.at("gpus_per_server").number(1e-3, 1e6),
                       static_cast<std::uint32_t>(g.at("max_mps_denominator").integer(1, 64))});
  }
  p.bandwidth_gbps = c.at("bandwidth_gbps").number(1e-9, kHuge);
  p.max_stages = static_cast<std::uint32_t>(c.at("max_partitions").integer(1, kMaxStages));
  p.batch_build_factor = c.at("batch_build_factor").number(0, 1e6);
  for (const auto& d : c.at("dnns").items()) {
    const std::string model = d.at("model").text();
    const auto it = std::find_if(profiles.begin(), profiles.end(), [&](const Profile& f) { return f.model == model; });
    if (it == profiles.end()) {
      d.at("model").fail("unknown model '" + model + "'; add its profile");
      return;
    }
    p.dnns.push_back({&*it, d.at("slo_us").number(1e-3, kHuge) - d.at("margin_us").number(0, kHuge),
                      d.at("weight").number(1e-9, kHuge), d.at("est_rps").number(0, kHuge)});
    if (p.dnns.back().budget_us <= 0) d.at("margin_us").fail("is not below slo_us; lower it");
  }
  if (p.types.empty() || p.dnns.empty()) c.fail("needs at least one GPU type and one DNN");
}

std::vector<PooledDnnPlan> read_stored(const JsonCursor& list, const PooledProblem& problem) {
  std::vector<PooledDnnPlan> out;
  for (const auto& d : list.items()) {
    PooledDnnPlan plan;
    plan.rps = d.at("rps").number(0, kHuge);
    for (const auto& p : d.at("pipelines").items()) {
      PooledPipeline pipe;
      pipe.rps = p.at("rps").number(0, kHuge);
      pipe.batch = static_cast<std::uint32_t>(p.at("batch").integer(1, 4096));
      for (const auto& s : p.at("stages").items()) {
        const std::string type = s.at("gpu").text();
        const auto it =
            std::find_if(problem.types.begin(), problem.types.end(), [&](const GpuType& t) { return t.name == type; });
        if (it == problem.types.end()) {
          s.at("gpu").fail("unknown GPU type '" + type + "'");
          return out;
        }
        const auto blocks = s.at("blocks").items();
        if (blocks.size() != 2) s.at("blocks").fail("must be [first, end)");
        PooledStage stage;
        stage.type = static_cast<std::uint32_t>(it - problem.types.begin());
        stage.share = static_cast<std::uint32_t>(s.at("mps_denominator").integer(1, 64));
        if (blocks.size() == 2) {
          stage.first_block = static_cast<std::uint32_t>(blocks[0].integer(0, 4096));
          stage.end_block = static_cast<std::uint32_t>(blocks[1].integer(1, 4096));
        }
        stage.vgpus = static_cast<std::uint64_t>(s.at("vgpus").integer(0, 1'000'000'000));
        stage.latency_us = s.at("latency_us").number(0, kHuge);
        stage.transfer_us = s.at("transfer_us").number(0, kHuge);
        pipe.stages.push_back(stage);
      }
      plan.pipelines.push_back(std::move(pipe));
    }
    out.push_back(std::move(plan));
  }
  return out;
}

Status read_plans(const std::string& path, std::vector<Scenario>& scenarios) {
  if (!std::filesystem::exists(path)) return Done{};
  const auto text = read_text_file(path);
  if (!text) return Error{text.error()};
  JsonDocument document(path, *text);
  for (Scenario& s : scenarios) {
    if (!document.root().has(s.id)) continue;
    const JsonCursor methods = document.root().at(s.id);
    for (const char* method : {"np", "dart_r", "ppipe"}) {
      if (methods.has(method)) s.plans[method] = read_stored(methods.at(method), s.problem);
    }
  }
  if (document.failed()) return document.error();
  return Done{};
}

}  // namespace

Result<ScenarioSet> read_scenarios(const std::string& directory) {
  auto profiles = read_profiles(directory);
  if (!profiles) return Error{profiles.error()};
  ScenarioSet out;
  out.profiles = std::move(*profiles);
  const std::string path = directory + "/scenarios.json";
  const auto text = read_text_file(path);
  if (!text) return Error{text.error()};
  JsonDocument document(path, *text);
  for (const auto& c : document.root().items()) {
    Scenario s;
    s.id = c.at("id").text();
    s.family = c.at("family").text();
    read_problem(c, out.profiles, s.problem);
    for (const auto& d : c.at("dnns").items()) s.slo_us.push_back(d.at("slo_us").number(1e-3, kHuge));
    if (c.has("reference")) {
      for (const char* method : {"np", "dart_r", "ppipe"}) {
        if (!c.at("reference").has(method)) continue;
        const JsonCursor r = c.at("reference").at(method);
        s.reference[method] = r.at("normalized_rps").number(0, kHuge);
        if (r.has("solver_seconds") && r.at("solver_seconds").is_number())
          s.reference_seconds[method] = r.at("solver_seconds").number(0, kHuge);
      }
    }
    if (c.has("independent_check")) {
      const JsonCursor check = c.at("independent_check");
      s.whole_gpu_optimum = check.number_or("whole_gpu_optimum_normalized_rps", 0, 0, kHuge);
    }
    out.scenarios.push_back(std::move(s));
  }
  if (!document.failed() && out.scenarios.empty()) document.root().fail("holds no scenario");
  if (document.failed()) return document.error();
  const Status plans = read_plans(directory + "/reference_plans.json", out.scenarios);
  if (!plans) return Error{plans.error()};
  return out;
}

}  // namespace leat::planner
