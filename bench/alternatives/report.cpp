#include "bench/alternatives/report.h"

#include <algorithm>
#include <map>

#include "bench/study.h"
#include "tools/base/text/formatted.h"

namespace leat::bench::alternatives {

namespace {

using ByGroup = std::map<std::string, double>;

double sum(const ByGroup& groups) {
  double out = 0;
  for (const auto& [group, value] : groups) out += value;
  return out;
}

// The median of each group.
ByGroup median_groups(const std::vector<ByGroup>& runs) {
  std::map<std::string, std::vector<double>> all;
  for (const ByGroup& run : runs)
    for (const auto& [group, value] : run) all[group].push_back(value);
  ByGroup out;
  for (const auto& [group, values] : all) out[group] = median(values);
  return out;
}

Json spread(const std::vector<double>& v) { return {{"median", median(v)}, {"least", min_of(v)}, {"most", max_of(v)}}; }

}  // namespace

void Report::add(std::string_view contender, std::uint32_t cameras, std::uint32_t deadline_ms, const Measured& run) {
  auto at = std::find_if(cases_.begin(), cases_.end(), [&](const Case& c) {
    return c.contender == contender && c.cameras == cameras && c.deadline_ms == deadline_ms;
  });
  if (at == cases_.end())
    at = cases_.insert(cases_.end(), Case{.contender = std::string(contender),
                                          .cameras = cameras,
                                          .deadline_ms = deadline_ms,
                                          .runs = {},
                                          .figures = {}});
  at->runs.push_back(run);
  at->figures.push_back(figures_of(run, std::int64_t{deadline_ms} * 1'000'000));
}

std::vector<double> Report::Case::all(double Figures::*figure) const {
  std::vector<double> out;
  for (const Figures& f : figures) out.push_back(f.*figure);
  return out;
}

std::vector<double> Report::Case::memory_mb() const {
  std::vector<double> out;
  for (const Measured& run : runs)
    if (run.memory_mb) out.push_back(sum(*run.memory_mb));
  return out;
}

Json Report::json() const {
  Json cases = Json::array();
  std::uint64_t lost = 0, twice = 0, failed = 0, wrong = 0;
  for (const Case& c : cases_) {
    std::vector<ByGroup> cores, switches, memory;
    Json runs = Json::array();
    std::uint64_t answered = 0;
    for (std::size_t i = 0; i < c.runs.size(); ++i) {
      const Measured& run = c.runs[i];
      lost += run.lost, twice += run.decided_twice, failed += run.failed, answered += run.answered,
          wrong += !run.adds_up();
      cores.push_back(run.cores);
      ByGroup a_picture;
      for (const auto& [group, value] : run.switches)
        a_picture[group] = value * run.seconds / static_cast<double>(std::max<std::uint64_t>(run.answered, 1));
      switches.push_back(a_picture);
      if (run.memory_mb) memory.push_back(*run.memory_mb);
      runs.push_back({{"offered", run.offered},
                      {"answered", run.answered},
                      {"passed", run.passed},
                      {"failed", run.failed},
                      {"lost", run.lost},
                      {"in_time_fps", c.figures[i].in_time_fps}});
    }
    cases.push_back({{"contender", c.contender},
                     {"cameras", c.cameras},
                     {"deadline_ms", c.deadline_ms},
                     {"offered_fps", median(c.all(&Figures::offered_fps))},
                     {"answered", answered},
                     {"in_time_fps", spread(c.all(&Figures::in_time_fps))},
                     {"in_time_share", median(c.all(&Figures::in_time_share))},
                     {"worst_camera", median(c.all(&Figures::worst_camera))},
                     {"p50_ms", median(c.all(&Figures::p50_ms))},
                     {"p99_ms", median(c.all(&Figures::p99_ms))},
                     {"late_share", median(c.all(&Figures::late))},
                     {"cores", median(c.all(&Figures::cores))},
                     {"cores_by_group", median_groups(cores)},
                     {"switches_a_picture", median(c.all(&Figures::switches_a_picture))},
                     {"switches_a_picture_by_group", median_groups(switches)},
                     {"memory_mb", memory.empty() ? Json() : Json(median(c.memory_mb()))},
                     {"memory_mb_by_group", memory.empty() ? Json() : Json(median_groups(memory))},
                     {"rounds", runs}});
  }
  return {{"lost", lost}, {"decided_twice", twice}, {"failed", failed}, {"ledgers_wrong", wrong}, {"cases", cases}};
}

std::string Report::text() const {
  std::string out;
  std::uint32_t cameras = 0, deadline_ms = 0;
  for (const Case& c : by_size()) {
    if (c.cameras != cameras || c.deadline_ms != deadline_ms) {
      cameras = c.cameras, deadline_ms = c.deadline_ms;
      out +=
          formatted("%u cameras, %.0f pictures a second, %u ms\n", cameras, c.figures.front().offered_fps, deadline_ms);
      out += formatted("  %-12s %8s %17s %6s %6s %6s %6s %6s %9s %7s  %s\n", "", "in time", "[least, most]", "worst",
                       "p50", "p99", "late %", "cores", "switches", "MB", "cores by group");
    }
    const auto fps = c.all(&Figures::in_time_fps);
    const auto middle = [&](double Figures::*figure) { return median(c.all(figure)); };
    out += formatted("  %-12s %8.1f [%7.1f,%7.1f] %6.2f %6.1f %6.1f %6.1f %6.2f %9.1f %7.0f ", c.contender.c_str(),
                     median(fps), min_of(fps), max_of(fps), middle(&Figures::worst_camera), middle(&Figures::p50_ms),
                     middle(&Figures::p99_ms), middle(&Figures::late) * 100, middle(&Figures::cores),
                     middle(&Figures::switches_a_picture), median(c.memory_mb()));
    std::vector<ByGroup> cores;
    for (const Measured& run : c.runs) cores.push_back(run.cores);
    for (const auto& [group, value] : median_groups(cores)) out += formatted(" %s %.2f", group.c_str(), value);
    out += "\n";
  }
  return out;
}

std::vector<Report::Case> Report::by_size() const {
  std::vector<Case> out = cases_;
  std::stable_sort(out.begin(), out.end(), [](const Case& a, const Case& b) {
    return std::pair(a.cameras, a.deadline_ms) < std::pair(b.cameras, b.deadline_ms);
  });
  return out;
}

}  // namespace leat::bench::alternatives
