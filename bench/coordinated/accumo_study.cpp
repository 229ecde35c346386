// AccuMO: which of a client's two tasks gets the next offloading. All pairs of unlike videos and the pair that swings
// against each other, ratios of their rates from 1 to 16, latencies of 1 to 4 frames, with and without a local
// algorithm of error .10; the exact program against round-robin, turns weighted 3:1 to 1:3, all at once, and
// round-robin with the local algorithm; rates of an oracle and the bound of constant rates beside. Errors are means
// over frames and tasks, beyond a detection of every frame; gains are of the errors of all cases together.
//
// Beside it, at more rates: trackers that say what they expect to have lost, by rules made of other kinds of videos and
// of other videos, for the choice between tracker and local algorithm and for the program's slopes.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/coordinated/accumo_world.h"
#include "bench/coordinated/certainty_folds.h"
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
    cli::integer_option("seed", "1", 1, 3, "of the videos; what trackers expect is made of the two others"),
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
  double leat = 0, leat_local = 0, certain = 0, oracle = 0, oracle_local = 0, round_robin = 0, round_robin_local = 0,
         best = 0, best_local = 0;
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
    sum.certain += run_accumo(c, {.turns = Turns::leat, .certain = true}) / n;
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

// The program with a local algorithm over the best baseline without, by age and by what trackers expect.
struct Certain {
  Gain by_age, certain;
  // Of a pair of videos, all its ratios and latencies: by how much the second is ahead.
  double most = -1, least = 1;
  std::string where = "none";
  void add(const Gain& pair_by_age, const Gain& pair_certain, const std::string& pair) {
    const double ahead = pair_certain.value() - pair_by_age.value();
    by_age.add(pair_by_age.ours, pair_by_age.theirs);
    certain.add(pair_certain.ours, pair_certain.theirs);
    most = std::max(most, ahead);
    if (ahead < least) least = ahead, where = pair;
  }
};
Json to_json(const Certain& c) {
  return {{"by_age", c.by_age.value()},
          {"certain", c.certain.value()},
          {"least_ahead", c.least},
          {"most_ahead", c.most},
          {"least_ahead_at", c.where}};
}

// Of a pair of tables, with both videos' rates around `rate` a frame.
void compare(const DropTable& a, const DropTable& b, double rate, std::uint32_t frames, std::uint32_t seeds,
             Certain& out) {
  Gain by_age, certain;
  for (const double ratio : {1.0, 4.0, 16.0}) {
    for (const std::uint32_t latency : {2u, 4u}) {
      const double quick = 2 * rate * ratio / (1 + ratio), slow = quick / ratio;
      AccumoCase c{.tasks = {{&a, quick / (a.mean_extra(12) / 12), kLocal, latency},
                             {&b, slow / (b.mean_extra(12) / 12), kLocal, latency}},
                   .frames = frames};
      const Errors e = errors_of(c, seeds);
      by_age.add(e.leat_local, e.best);
      certain.add(e.certain, e.best);
    }
  }
  out.add(by_age, certain, a.video + " and " + b.video);
}

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  const auto frames = static_cast<std::uint32_t>(args.integer("frames"));
  const auto seeds = static_cast<std::uint32_t>(args.integer("seeds"));
  const auto videos = static_cast<std::size_t>(args.integer("videos"));
  const auto seed = static_cast<std::uint64_t>(args.integer("seed"));
  const auto threads = static_cast<std::size_t>(args.integer("threads"));
  std::vector<std::size_t> kinds;
  for (std::size_t i = 0; i < videos; ++i) kinds.push_back(i);
  const std::size_t swing = kinds.size();
  kinds.push_back(8);
  kinds.push_back(9);
  std::vector<std::uint64_t> others;
  for (std::uint64_t s = 1; s <= 3; ++s)
    if (s != seed) others.push_back(s);
  const CertaintyFolds folds = certainty_folds(others, frames, threads, "blocks");
  std::vector<DropTable> tables(kinds.size());
  {
    cli::Progress progress("recording videos", kinds.size(), "videos");
    sim::for_each_job(kinds.size(), threads, [&](std::size_t i) {
      tables[i] = record_drops(scene::kMotionKinds[kinds[i]], seed, frames, 3);
      tables[i].expect(folds.rule_for(kinds[i]));
    });
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
                          {"leat_certain", e.certain},
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
  for (const auto& [around, name] : {std::pair{0.006, ".006"}, {0.012, ".012"}, {0.02, ".020"}, {0.03, ".030"}}) {
    Certain unlike, swings;
    for (std::size_t a = 0; a < swing; ++a)
      for (std::size_t b = a + 1; b < swing; ++b) compare(tables[a], tables[b], around, frames, seeds, unlike);
    compare(tables[swing], tables[swing + 1], around, frames, seeds, swings);
    out["certainty"][name] = {{"unlike", to_json(unlike)}, {"swing", to_json(swings)}};
  }
  // Trackers that say nothing: the same to the last bit.
  std::uint32_t differ = 0;
  for (DropTable& table : tables) std::ranges::fill(table.expects, -1.0f);
  for (std::size_t i = 0; i + 1 < tables.size(); ++i) {
    const AccumoCase c{.tasks = {{&tables[i], 1, kLocal, 2}, {&tables[i + 1], 3, kLocal, 2}}, .frames = frames};
    differ += run_accumo(c, {.certain = true}) != run_accumo(c, {}) ? 1 : 0;
  }
  out["differ_where_nothing_is_expected"] = differ;
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
  std::printf(
      "gain over the best baseline without local algorithms, by rate (by age, by what trackers expect; least and most "
      "that the second is ahead for a pair)\n");
  for (const auto& [around, row] : out["certainty"].items())
    for (const char* content : {"unlike", "swing"})
      std::printf("  %s %-6s %6.3f %6.3f  %6.3f %6.3f\n", around.c_str(), content, row[content]["by_age"].get<double>(),
                  row[content]["certain"].get<double>(), row[content]["least_ahead"].get<double>(),
                  row[content]["most_ahead"].get<double>());
  print(bars);
  return 0;
}
