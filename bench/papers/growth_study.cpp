// growth_study: the pooled solver's seconds against GPUs, GPU types, blocks and DNNs, as a table, JSON and a plot.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "bench/papers/growth_cases.h"
#include "bench/study.h"
#include "planner/pooled/checker.h"
#include "planner/pooled/solver.h"
#include "tools/base/cli/svg.h"
#include "tools/base/documents/text_file.h"

namespace leat::planner {
namespace {

constexpr cli::Option kOptions[] = {
    {.name = "data",
     .type = cli::Type::path,
     .value = "DIR",
     .required = true,
     .help = "PPipe's data, as pooled_study reads it"},
    {.name = "svg", .type = cli::Type::path, .value = "FILE", .help = "draw the plot"},
    cli::json_option(),
};
constexpr cli::Command kCommand = {.name = "growth_study",
                                   .summary = "how the solver's time grows with GPUs, GPU types, blocks and DNNs",
                                   .options = kOptions};

struct Point {
  double log_seconds = 0, worst = 0, gap = 0;
  std::size_t count = 0, proven = 0;
  double mean() const { return std::exp(log_seconds / static_cast<double>(count)); }
};
using Points = std::map<std::string, std::map<double, Point>>;

std::string draw(const Points& points) {
  const std::map<std::string, std::pair<std::string, bool>> axes = {{"gpus", {"GPUs", true}},
                                                                    {"types", {"GPU types (100 GPUs)", false}},
                                                                    {"blocks", {"blocks a model", false}},
                                                                    {"dnns", {"DNNs", false}}};
  std::vector<cli::Plot> plots;
  for (const char* axis : {"gpus", "types", "blocks", "dnns"}) {
    const auto it = points.find(axis);
    if (it == points.end()) continue;
    cli::Plot plot{std::string("Planning time against ") + axes.at(axis).first,
                   axes.at(axis).first,
                   "seconds",
                   axes.at(axis).second,
                   true,
                   false,
                   {{"geometric mean", {}, false}, {"worst", {}, true}},
                   640,
                   300};
    for (const auto& [size, p] : it->second) {
      plot.series[0].points.emplace_back(size, p.mean());
      plot.series[1].points.emplace_back(size, p.worst);
    }
    plots.push_back(std::move(plot));
  }
  return cli::plots_svg(plots);
}

int run(const cli::Arguments& args) {
  const auto set = read_scenarios(args.text("data"));
  if (!set) return cli::fail("growth_study", set.error());
  std::vector<std::vector<Profile>> own;
  const auto cases = growth_cases(*set, own);
  if (cases.empty())
    return cli::fail("growth_study", args.text("data") + ": has no scenario of family maf19 or equal to grow");
  Points points;
  {
    cli::Progress progress("growth", cases.size(), "problems");
    for (const GrowthCase& c : cases) {
      const PooledSolution s = solve_pooled(c.problem);
      if (s.feasible) {
        const std::string wrong = problem_of(c.problem, s.dnns, {});
        if (!wrong.empty())
          return cli::fail("growth_study", c.axis + ", " + c.id + ": the plan breaks its rules: " + wrong);
      }
      Point& p = points[c.axis][c.size];
      ++p.count;
      p.log_seconds += std::log(std::max(1e-9, s.certificate.seconds));
      p.worst = std::max(p.worst, s.certificate.seconds);
      p.gap = std::max(p.gap, s.certificate.gap);
      p.proven += s.feasible && s.certificate.gap <= 0;
      progress.add(1);
    }
  }
  const cli::JsonOutput json(args);
  Json out = {{"points", Json::array()}};
  for (const auto& [axis, sizes] : points) {
    for (const auto& [size, p] : sizes) {
      out["points"].push_back({{"axis", axis},
                               {"size", size},
                               {"problems", p.count},
                               {"proven", p.proven},
                               {"widest_gap", p.gap},
                               {"seconds_geometric_mean", p.mean()},
                               {"seconds_worst", p.worst}});
      if (!json.alone()) {
        std::printf(
            "%-7s %8.0f: %2zu problems, %2zu proven optimal, widest gap %.6f, seconds: geometric mean %.4f, worst "
            "%.4f\n",
            axis.c_str(), size, p.count, p.proven, p.gap, p.mean(), p.worst);
      }
    }
  }
  if (const int failed = json.write(out.dump(1)); failed != 0) return failed;
  if (args.given("svg")) {
    if (const Status s = write_text_file(args.text("svg"), draw(points)); !s)
      return cli::fail("growth_study", s.error());
  }
  return 0;
}

}  // namespace

}  // namespace leat::planner

int main(int argc, char** argv) {
  return leat::planner::run(leat::cli::parse_or_exit(leat::planner::kCommand, argc, argv));
}
