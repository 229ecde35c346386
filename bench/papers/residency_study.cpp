// What it is worth to change the sets of models that partitions hold while they serve, where memory does not hold all:
// `replan = "auto"` in the simulator, with the daemon's own scheduler, rule and search, beside sets that stay and
// beside sets chosen anew each minute by who knows the next one (residency_simulation.h).
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "bench/papers/residency_simulation.h"
#include "bench/study.h"

namespace {

using namespace leat;

constexpr cli::Option kOptions[] = {
    cli::integer_option("partitions", "8", 2, 64, "partitions"),
    cli::integer_option("hold", "3", 1, 9, "modules that a partition has room for"),
    cli::integer_option("minutes", "30", 2, 600, "of every load"),
    cli::integer_option("seeds", "1", 1, 100, "runs of each load"),
    cli::real_option("level", "0.85", 0.1, 2, "work of the 95th-percentile minute at batches of 8 over the host's",
                     "PART"),
    cli::real_option("load-s", "1", 0, 60, "how long a partition is out while it takes other models", "SECONDS"),
    {.name = "loads",
     .type = cli::Type::text,
     .value = "LIST",
     .fallback = "steady,diurnal,bursty,rotate",
     .help = "which loads: steady, diurnal, bursty, rotate"},
    cli::json_option("print the figures as JSON in place of text"),
};
constexpr cli::Command kCommand = {
    .name = "residency_study",
    .summary = "what changing the models that partitions hold is worth, in the simulator",
    .description =
        "In time, of all requests and of the application that fares worst, for sets that stay, for those of "
        "replan = \"auto\", for an oracle's of each minute and for all models everywhere.",
    .options = kOptions,
    .exit_status = "0: bars reached; 1: one is not; 2: bad input"};

struct Row {
  double total = 0, worst = 0;
  int swaps = 0, loads = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  const auto partitions = static_cast<std::size_t>(args.integer("partitions"));
  const int minutes = static_cast<int>(args.integer("minutes")), seeds = static_cast<int>(args.integer("seeds"));
  bench::ResidencySimulation study(bench::resident_applications(), partitions,
                                   static_cast<std::size_t>(args.integer("hold")), args.real("load-s"));
  const cli::JsonOutput json(args);
  Json cells = Json::object();
  std::vector<bench::Bar> bars;
  for (const std::string name : {"steady", "diurnal", "bursty", "rotate"}) {
    if (("," + args.text("loads") + ",").find("," + name + ",") == std::string::npos) continue;
    std::map<std::string, Row> rows;
    double over_oracle = 0, over_fixed = 1e9, most_swaps = 0;
    for (int seed = 1; seed <= seeds; ++seed) {
      const bench::ResidentLoad load =
          bench::resident_load(bench::resident_applications(), name, minutes, args.real("level"), partitions,
                               static_cast<std::uint64_t>(seed));
      std::map<std::string, double> total;
      const auto add = [&](const std::string& how, const bench::ResidencySimulation::Changes& changes) {
        const auto in_time = study.in_time(load, changes, static_cast<std::uint64_t>(seed));
        Row& row = rows[how];
        total[how] = in_time.front();
        row.total += in_time.front() / seeds;
        row.worst += *std::min_element(in_time.begin(), in_time.end()) / seeds;
        row.swaps += changes.swaps;
        row.loads += changes.loads;
      };
      add("all", study.all());
      add("fixed, mean", study.fixed(load.mean()));
      add("fixed, peak", study.fixed(load.peak()));
      add("rule", study.by_rule(load, load.mean()));
      add("oracle", study.oracle(load));
      over_oracle = std::max(over_oracle, total["oracle"] - total["rule"]);
      over_fixed = std::min(over_fixed, total["rule"] - std::max(total["fixed, mean"], total["fixed, peak"]));
      most_swaps = std::max(most_swaps, static_cast<double>(rows["rule"].swaps) / (seed * minutes));
    }
    if (!json.alone()) std::printf("%s\n", name.c_str());
    for (const char* how : {"all", "fixed, mean", "fixed, peak", "rule", "oracle"}) {
      const Row& r = rows[how];
      if (!json.alone())
        std::printf("  %-12s in time %6.2f, worst application %6.2f, %d changes, %d models loaded\n", how, r.total,
                    r.worst, r.swaps, r.loads);
      cells[name][how] = {{"in_time", r.total}, {"worst", r.worst}, {"swaps", r.swaps}, {"loads", r.loads}};
    }
    bars.push_back({name + ": points below the oracle, at most", over_oracle, 1.5, false, ""});
    bars.push_back({name + ": changes a minute", most_swaps, 1, false, ""});
    if (name == "rotate" && minutes >= 30)  // all six have had their turn
      bars.push_back({name + ": points above the better fixed sets", over_fixed, 8, true, ""});
  }
  if (!json.alone()) bench::print(bars);
  if (const int failed = json.write(Json{{"loads", cells}, {"bars", bench::to_json(bars)}}.dump(1)); failed != 0)
    return failed;
  return std::all_of(bars.begin(), bars.end(), [](const bench::Bar& b) { return b.reached(); }) ? 0 : 1;
}
