// AccuMO: which of a client's two tasks gets the next offloading. All pairs of unlike videos and the pair that swings
// against each other, ratios of their rates from 1 to 16, latencies of 1 to 4 frames, with and without a local
// algorithm of error .10; the exact program against round-robin, turns weighted 3:1 to 1:3, all at once, and
// round-robin with the local algorithm; rates of an oracle and the bound of constant rates beside. Errors are means
// over frames and tasks, beyond a detection of every frame; gains are of the errors of all cases together.
#include <cstdio>
#include <string>
#include <vector>

#include "bench/coordinated/accumo_world.h"
#include "bench/study.h"
#include "engine/sim/for_each_job.h"
#include "tools/base/cli/svg.h"

namespace {

using namespace leat;
using namespace leat::bench;

constexpr cli::Option kOptions[] = {
    cli::integer_option("frames", "600", 60, 3600, "of every video"),
    cli::integer_option("seeds", "8", 1, 100, "places in the videos"),
    cli::integer_option("videos", "8", 2, 8, "of the unlike ones, the first so many"),
    cli::integer_option("threads", "2", 1, 256, "to record with"),
    {.name = "plot", .type = cli::Type::path, .value = "FILE", .help = "writes the gains as SVG"},
    cli::json_option(),
};
constexpr cli::Command kCommand = {
    .name = "accumo_study",
    .summary = "error of several tasks that share one way to the server: the exact program against turns",
    .options = kOptions};

constexpr std::uint32_t kRatios[] = {1, 2, 4, 10, 16};
constexpr double kLocal = 0.1;

// Of all cases together: single errors come near to nothing, where a ratio means nothing.
struct Gain {
  double ours = 0, theirs = 0;
  void add(double a, double b) { ours += a, theirs += b; }
  [[nodiscard]] double value() const { return theirs > 0 ? 1 - ours / theirs : 0; }
};

struct Errors {
  double leat = 0, leat_local = 0, oracle = 0, oracle_local = 0, round_robin = 0, round_robin_local = 0, best = 0,
         best_local = 0;
};

Errors errors_of(AccumoCase c, std::uint32_t seeds) {
  Errors sum;
  const double n = seeds;
  double weighted[6] = {}, weighted_local[6] = {};
  constexpr AccumoPolicy kTurns[6] = {{Turns::weighted, 1, 1}, {Turns::weighted, 3, 1}, {Turns::weighted, 2, 1},
                                      {Turns::weighted, 1, 2}, {Turns::weighted, 1, 3}, {Turns::all}};
  for (std::uint32_t seed = 0; seed < seeds; ++seed) {
    c.offset = seed * 37;
    sum.leat += run_accumo(c, {.turns = Turns::leat, .local = false}) / n;
    sum.leat_local += run_accumo(c, {.turns = Turns::leat}) / n;
    sum.oracle += run_accumo(c, {.turns = Turns::oracle, .local = false}) / n;
    sum.oracle_local += run_accumo(c, {.turns = Turns::oracle}) / n;
    for (int i = 0; i < 6; ++i) {
      AccumoPolicy p = kTurns[i];
      p.local = false;
      weighted[i] += run_accumo(c, p) / n;
      p.local = true;
      weighted_local[i] += run_accumo(c, p) / n;
    }
  }
  sum.round_robin = weighted[0];
  sum.round_robin_local = weighted_local[0];
  sum.best = *std::min_element(weighted, weighted + 6);
  sum.best_local = *std::min_element(weighted_local, weighted_local + 6);
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  const auto frames = static_cast<std::uint32_t>(args.integer("frames"));
  const auto seeds = static_cast<std::uint32_t>(args.integer("seeds"));
  const auto videos = static_cast<std::size_t>(args.integer("videos"));
  std::vector<const scene::MotionKind*> kinds;
  for (std::size_t i = 0; i < videos; ++i) kinds.push_back(&scene::kMotionKinds[i]);
  const std::size_t swing = kinds.size();
  kinds.push_back(&scene::kMotionKinds[8]);
  kinds.push_back(&scene::kMotionKinds[9]);
  std::vector<DropTable> tables(kinds.size());
  {
    cli::Progress progress("recording videos", kinds.size(), "videos");
    sim::for_each_job(kinds.size(), static_cast<std::size_t>(args.integer("threads")),
                      [&](std::size_t i) { tables[i] = record_drops(*kinds[i], 1, frames, 3); });
    progress.add(kinds.size());
  }
  const auto rate = [&](std::size_t i) { return tables[i].mean_extra(12) / 12; };
  Json rows = Json::array();
  // Least over all pairs, ratios and latencies of `best baseline - leat`, each with what the client has; mean gains of
  // the program with the local algorithm over the best baseline without, and over round-robin with it.
  double min_gain = 1, min_local_gain = 1;
  Gain without_local, swing_rr, oracle;
  std::string where = "none", where_local = "none";
  std::vector<Gain> by_ratio(std::size(kRatios)), swing_by_ratio(std::size(kRatios));
  for (std::size_t a = 0; a < kinds.size(); ++a) {
    for (std::size_t b = 0; b < kinds.size(); ++b) {
      const bool swings = a == swing && b == swing + 1;
      if (!swings && (a >= b || b >= swing)) continue;
      for (std::size_t r = 0; r < std::size(kRatios); ++r) {
        for (std::uint32_t latency = 1; latency <= 4; ++latency) {
          // Both scaled around .006 a frame, so that the first is `ratio` times the second.
          const double max = 0.012 * kRatios[r] / (1.0 + kRatios[r]), other = max / kRatios[r];
          AccumoCase c{
              .tasks = {{&tables[a], max / rate(a), kLocal, latency}, {&tables[b], other / rate(b), kLocal, latency}},
              .frames = frames};
          const Errors e = errors_of(c, seeds);
          const std::string at = tables[a].video + " and " + tables[b].video + ", ratio " + std::to_string(kRatios[r]) +
                                 ", latency " + std::to_string(latency);
          if (e.best - e.leat < min_gain) min_gain = e.best - e.leat, where = at;
          if (e.best_local - e.leat_local < min_local_gain)
            min_local_gain = e.best_local - e.leat_local, where_local = at;
          without_local.add(e.leat_local, e.best);
          oracle.add(e.oracle_local, e.best);
          (swings ? swing_by_ratio : by_ratio)[r].add(e.leat, e.round_robin);
          if (swings && kRatios[r] >= 10) swing_rr.add(e.leat_local, e.round_robin_local);
          rows.push_back({{"videos", {tables[a].video, tables[b].video}},
                          {"ratio", kRatios[r]},
                          {"latency", latency},
                          {"leat", e.leat},
                          {"leat_local", e.leat_local},
                          {"oracle", e.oracle},
                          {"oracle_local", e.oracle_local},
                          {"round_robin", e.round_robin},
                          {"round_robin_local", e.round_robin_local},
                          {"best_baseline", e.best},
                          {"best_baseline_local", e.best_local},
                          {"bound_over_round_robin", max_over_round_robin(kRatios[r])}});
        }
      }
    }
  }
  const std::vector<Bar> bars = {
      {.name = "error of the best baseline less the program's, least of all, without local algorithms",
       .value = min_gain,
       .bar = -0.002,
       .where = where},
      {.name = "the same with them", .value = min_local_gain, .bar = -0.002, .where = where_local},
      {.name = "mean gain of the program with a local algorithm over the best baseline without",
       .value = without_local.value(),
       .bar = 0.1},
      {.name = "mean gain over round-robin with one, swing content, ratio >= 10",
       .value = swing_rr.value(),
       .bar = 0.04}};
  Json out = {{"frames", frames},
              {"seeds", seeds},
              {"gain_over_best_baseline", std::min(min_gain, min_local_gain)},
              {"gain_over_without_local", without_local.value()},
              {"gain_over_rr_la_swing", swing_rr.value()},
              {"gain_of_oracle_over_without_local", oracle.value()}};
  for (std::size_t r = 0; r < std::size(kRatios); ++r) {
    out["gain_over_round_robin"][std::to_string(kRatios[r])] = {
        {"unlike", by_ratio[r].value()},
        {"swing", swing_by_ratio[r].value()},
        {"bound_of_constant_rates", max_over_round_robin(kRatios[r])}};
  }
  out["bars"] = to_json(bars);
  out["cases"] = rows;
  if (args.given("plot")) {
    cli::Plot plot{.title = "AccuMO: gain over round-robin",
                   .x_label = "ratio of the tasks' rates",
                   .y_label = "share of the error",
                   .log_x = true};
    cli::Series unlike{.name = "unlike videos"}, swings{.name = "swing content"},
        bound{.name = "bound of constant rates", .dashed = true};
    for (std::size_t r = 0; r < std::size(kRatios); ++r) {
      unlike.points.emplace_back(kRatios[r], by_ratio[r].value());
      swings.points.emplace_back(kRatios[r], swing_by_ratio[r].value());
      bound.points.emplace_back(kRatios[r], max_over_round_robin(kRatios[r]));
    }
    plot.series = {unlike, swings, bound};
    std::FILE* const file = std::fopen(args.text("plot").c_str(), "w");
    if (file == nullptr)
      return cli::fail(kCommand.name, "cannot write " + args.text("plot") + "; name a file in a folder that exists");
    std::fputs(cli::plot_svg(plot).c_str(), file);
    std::fclose(file);
  }
  const cli::JsonOutput json(args);
  if (const int failed = json.write(out.dump(1)); failed != 0 || json.alone()) return failed;
  std::printf(
      "gain over round-robin without local algorithms, by ratio of the rates (unlike videos, swing content, bound of "
      "constant rates)\n");
  for (const auto& [ratio, row] : out["gain_over_round_robin"].items())
    std::printf("  %2s:1  %6.3f %6.3f %6.3f\n", ratio.c_str(), row["unlike"].get<double>(), row["swing"].get<double>(),
                row["bound_of_constant_rates"].get<double>());
  print(bars);
  return 0;
}
