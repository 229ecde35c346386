// What a tracker's own certainty (leat/certainty.hpp) tells on kinds of videos, and on videos, that its rule was not
// made of: whether it knows at one and the same age which frames have lost more, and whether it knows frames that have
// lost much better than their age does.
#include <cstdio>
#include <string>
#include <vector>

#include "bench/coordinated/certainty_folds.h"
#include "bench/study.h"

namespace {

using namespace leat;
using namespace leat::bench;
using scene::DropTable;

constexpr std::size_t kSteady = 8;  // kinds; the last two swing

constexpr cli::Option kOptions[] = {
    cli::integer_option("seed", "1", 1, 3, "of the videos; the rules are made of the two others"),
    cli::integer_option("frames", "600", 120, 3600, "of every video"),
    {.name = "tracker",
     .type = cli::Type::choice,
     .choices = scene::kTrackers,
     .fallback = "blocks",
     .help = "lk needs OpenCV"},
    {.name = "rule", .type = cli::Type::flag, .help = "prints the rule made of all kinds, seeds 2 and 3, and ends"},
    cli::integer_option("threads", "2", 1, 256, "to use"),
    cli::json_option(),
};
constexpr cli::Command kCommand = {
    .name = "certainty_study", .summary = "how well a tracker tells what it has lost", .options = kOptions};

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  const cli::JsonOutput json(args);
  const auto seed = static_cast<std::uint64_t>(args.integer("seed"));
  const auto frames = static_cast<std::uint32_t>(args.integer("frames"));
  const auto threads = static_cast<std::size_t>(args.integer("threads"));
  const std::string tracker = args.text("tracker");
  if (const auto known = scene::AnyTracker::make(tracker); !known.ok()) return cli::fail(kCommand.name, known.error());
  std::vector<std::uint64_t> others;
  for (std::uint64_t s = 1; s <= 3; ++s)
    if (s != (args.flag("rule") ? 1 : seed)) others.push_back(s);
  const CertaintyFolds folds = certainty_folds(others, frames, threads, tracker);
  if (args.flag("rule")) {
    for (const float weight : folds.all.rule().weight) std::printf("%.5gf, ", static_cast<double>(weight));
    std::printf("\n");
    return 0;
  }
  Json out = {{"seed", seed}, {"tracker", tracker}};
  std::vector<double> at[scene::kWorthAges.size()], late, late_by_age;
  for (std::size_t k = 0; k < std::size(scene::kMotionKinds); ++k) {
    const scene::MotionKind& kind = scene::kMotionKinds[k];
    DropTable table = scene::record_drops(kind, seed, frames, 3, std::move(*scene::AnyTracker::make(tracker)));
    table.expect(folds.rule_for(k));
    const scene::CertaintyWorth w = scene::worth(table);
    Json& row = out["videos"][std::string(kind.name)] = {{"late", w.late}, {"late_by_age", w.late_by_age}};
    for (std::size_t a = 0; a < scene::kWorthAges.size(); ++a) {
      row["r"][std::to_string(scene::kWorthAges[a])] = w.at[a];
      if (k < kSteady) at[a].push_back(w.at[a]);
    }
    if (k >= kSteady || w.late == 0) continue;
    late.push_back(w.late);
    late_by_age.push_back(w.late_by_age);
  }
  for (std::size_t a = 0; a < scene::kWorthAges.size(); ++a)
    out["mean"]["r"][std::to_string(scene::kWorthAges[a])] = mean(at[a]);
  out["mean"]["late"] = mean(late);
  out["mean"]["late_by_age"] = mean(late_by_age);
  const std::vector<Bar> bars = {{.name = "mean correlation at a stride of 8", .value = mean(at[1]), .bar = 0.25},
                                 {.name = "mean correlation at a stride of 16", .value = mean(at[2]), .bar = 0.45},
                                 {.name = "chance that more than .06 lost is told", .value = mean(late), .bar = 0.89}};
  out["bars"] = to_json(bars);
  if (const int failed = json.write(out.dump(1)); failed != 0 || json.alone()) return failed;
  std::printf("%-14s correlation at 4, 8, 16, 24; more than .06 lost: told, by age\n", "");
  for (const auto& [video, row] : out["videos"].items())
    std::printf("%-14s %.2f %.2f %.2f %.2f   %.3f %.3f\n", video.c_str(), row["r"]["4"].get<double>(),
                row["r"]["8"].get<double>(), row["r"]["16"].get<double>(), row["r"]["24"].get<double>(),
                row["late"].get<double>(), row["late_by_age"].get<double>());
  print(bars);
  return 0;
}
