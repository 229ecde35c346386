#include <cmath>

#include "engine/sim/workload/random.h"
#include "tools/base/json/json.h"
#include "tools/base/text/formatted.h"
#include "tools/leat/sim/results.h"

namespace leat::tools {
namespace {

template <class F>
Spread percent(const SimPreset& p, F&& share) {
  return spread(p.runs, [&](const SimRun& r) { return 100 * share(r.measured); });
}

// One latency cell: nothing was delivered in some run: no figure.
std::string milliseconds(double ms) { return std::isfinite(ms) ? formatted("%9.1f", ms) : formatted("%9s", "-"); }

Json finite(double x) { return std::isfinite(x) ? Json(x) : Json(nullptr); }

Json reasons_of(const SimRun& run) {
  Json out = Json::object();
  for (std::size_t r = 1; r < kReasonCount; ++r) {
    const auto reason = static_cast<Reason>(r);
    if (run.measured.outcomes.counters.total.of(reason) > 0)
      out[std::string(name_of(reason))] = run.measured.share(reason);
  }
  return out;
}

Json to_json(const SimRun& run, bool bounded) {
  const sim::Measured& m = run.measured;
  Json drops = Json::array(), queue = Json::array();
  for (const core::ModuleCounters& module : m.outcomes.counters.modules) {
    drops.push_back(module.dropped_here);
    queue.push_back(module.tasks_run == 0
                        ? 0.0
                        : static_cast<double>(module.queue_ns_sum) / static_cast<double>(module.tasks_run) / 1e6);
  }
  return {{"seed", run.seed},
          {"load", run.load},
          {"requests", m.outcomes.requests},
          {"seconds", m.seconds},
          {"goodput_rps", m.goodput_rps()},
          {"in_time", m.outcomes.goodput()},
          {"drop_rate", m.outcomes.drop_rate()},
          {"late", m.share(Outcome::late)},
          {"reasons", reasons_of(run)},
          {"invalid_rate", m.outcomes.invalid_rate()},
          {"p50_ms", finite(m.p50_ms)},
          {"p99_ms", finite(m.p99_ms)},
          {"bound", bounded ? Json(run.bound) : Json(nullptr)},
          {"bound_share", bounded ? Json(m.bound_share) : Json(nullptr)},
          {"drops_by_module", drops},
          {"queue_ms_by_module", queue},
          {"drained", m.outcomes.drained},
          {"trace_hash", formatted("%016llx", static_cast<unsigned long long>(m.outcomes.trace_hash))}};
}

}  // namespace

std::uint64_t trace_hash(const SimResults& results) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  const auto add = [&](const SimRun& run) {
    hash = (hash ^ sim::mix(run.measured.outcomes.trace_hash)) * 0x100000001B3u;
  };
  for (const SimPreset& p : results.presets) {
    for (const SimRun& run : p.runs) add(run);
    for (const auto& seeds : p.sweep) {
      for (const SimRun& run : seeds) add(run);
    }
  }
  return hash;
}

std::string table_text(const SimResults& results) {
  std::string out = formatted("%-12s %10s %9s %9s %9s %9s %9s %9s %9s\n", "preset", "goodput/s", "in time %",
                              "of bound %", "dropped %", "late %", "invalid %", "p50 ms", "p99 ms");
  for (const SimPreset& p : results.presets) {
    const Spread in_time = percent(p, [](const sim::Measured& m) { return m.outcomes.goodput(); });
    const double late = percent(p, [](const sim::Measured& m) { return m.share(Outcome::late); }).mean;
    out += formatted("%-12s %10.2f %9.2f ", p.name.c_str(),
                     spread(p.runs, [](const SimRun& r) { return r.measured.goodput_rps(); }).mean, in_time.mean);
    out += results.bounded ? formatted("%10.2f", percent(p, [](const sim::Measured& m) { return m.bound_share; }).mean)
                           : formatted("%10s", "-");
    out += formatted(" %9.2f %9.2f %9.2f ", 100 - in_time.mean - late, late,
                     percent(p, [](const sim::Measured& m) { return m.outcomes.invalid_rate(); }).mean);
    out += milliseconds(spread(p.runs, [](const SimRun& r) { return r.measured.p50_ms; }).mean) + " " +
           milliseconds(spread(p.runs, [](const SimRun& r) { return r.measured.p99_ms; }).mean);
    if (p.runs.size() > 1) out += formatted("   in time +- %.2f", in_time.half_range);
    out += "\n";
  }
  out += "\nnot in time, in % of the requests, by reason\n";
  for (const SimPreset& p : results.presets) {
    out += formatted("%-12s", p.name.c_str());
    bool any = false;
    const double late = percent(p, [](const sim::Measured& m) { return m.share(Outcome::late); }).mean;
    if (late > 0) out += formatted(" late %.2f", late), any = true;
    for (std::size_t r = 1; r < kReasonCount; ++r) {
      const auto reason = static_cast<Reason>(r);
      const double share = percent(p, [&](const sim::Measured& m) { return m.share(reason); }).mean;
      if (share > 0)
        out += formatted("%s %s %.2f", any ? "," : "", std::string(name_of(reason)).c_str(), share), any = true;
    }
    out += any ? "\n" : " none\n";
  }
  if (results.sweep_loads.empty()) return out;
  out += formatted("\nin time, in %% of the requests, over load\n%-12s", "load");
  for (const double load : results.sweep_loads) out += formatted(" %6.2f", load);
  out += "\n";
  for (const SimPreset& p : results.presets) {
    out += formatted("%-12s", p.name.c_str());
    for (const auto& seeds : p.sweep)
      out +=
          formatted(" %6.2f", spread(seeds, [](const SimRun& r) { return 100 * r.measured.outcomes.goodput(); }).mean);
    out += "\n";
  }
  return out;
}

std::string json_text(const SimResults& results, const sim::Study& study) {
  Json modules = Json::array(), rates = Json::object();
  for (std::size_t a = 0; a < study.plan.applications.size(); ++a) {
    rates[study.plan.applications[a].name] = study.full_rps[a];
    for (const planner::Module& m : study.plan.applications[a].modules)
      modules.push_back(study.plan.applications[a].name + "/" + m.name);
  }
  Json root = {{"plan", results.plan}, {"trace", results.trace}, {"seed", results.first_seed},
               {"load", results.load}, {"full_rate_rps", rates}, {"modules", modules}};
  root["presets"] = Json::object();
  for (const SimPreset& p : results.presets) {
    Json& entry = root["presets"][p.name];
    const auto mean = [&](auto figure) { return spread(p.runs, figure).mean; };
    entry["goodput_rps"] = mean([](const SimRun& r) { return r.measured.goodput_rps(); });
    entry["in_time"] = mean([](const SimRun& r) { return r.measured.outcomes.goodput(); });
    entry["drop_rate"] = mean([](const SimRun& r) { return r.measured.outcomes.drop_rate(); });
    entry["invalid_rate"] = mean([](const SimRun& r) { return r.measured.outcomes.invalid_rate(); });
    entry["p50_ms"] = finite(mean([](const SimRun& r) { return r.measured.p50_ms; }));
    entry["p99_ms"] = finite(mean([](const SimRun& r) { return r.measured.p99_ms; }));
    entry["bound_share"] =
        results.bounded ? Json(mean([](const SimRun& r) { return r.measured.bound_share; })) : Json(nullptr);
    entry["runs"] = Json::array();
    for (const SimRun& run : p.runs) entry["runs"].push_back(to_json(run, results.bounded));
    for (const auto& seeds : p.sweep) {
      for (const SimRun& run : seeds) entry["sweep"].push_back(to_json(run, results.bounded));
    }
  }
  root["trace_hash"] = formatted("%016llx", static_cast<unsigned long long>(trace_hash(results)));
  return root.dump(1) + "\n";
}

}  // namespace leat::tools
