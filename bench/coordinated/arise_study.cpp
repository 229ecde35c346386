// How many coordinated clients a server holds: ARISE as we run it (`leat`) and as the thesis does (`arise`), against
// Static, Clipper-like, Chameleon-like and ARISE-a, each with the thesis's estimator d/L (the plain name) and with ours
// and its margin (`+line`), and `leat+asking`: clients that say what they expect to have lost and may ask, by rules
// made of other kinds of videos and of other videos (certainty_folds.h). arise_world.h says what a client is, when it
// is within its SLA, and what is searched for the baselines: their numbers of clients and fixed settings are chosen
// with hindsight, ours are what admission makes of a crowd of clients that is half as large again as the server holds.
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "bench/coordinated/arise_world.h"
#include "bench/coordinated/certainty_folds.h"
#include "bench/study.h"
#include "engine/sim/for_each_job.h"
#include "tools/base/cli/svg.h"
#include "tools/base/text/whole_file.h"

namespace {

using namespace leat;
using namespace leat::bench;
using core::streams::Estimation;

constexpr cli::Option kOptions[] = {
    cli::integer_option("videos", "8", 1, 8, "the first so many"),
    cli::integer_option("seeds", "3", 1, 100, "of clients"),
    cli::integer_option("seconds", "30", 12, 600, "of every run; the first 10 are not counted"),
    cli::integer_option("video-seed", "1", 1, 3, "of the videos; rules are made of the two others"),
    cli::integer_option("frames", "600", 120, 3600, "of every video, then it begins again"),
    cli::integer_option("profiles", "1", 1, 3, "batches of b take 6+1.5b, 3+9b, 12+4b ms: the first so many"),
    cli::integer_option("partitions", "1", 1, 16, "of the server"),
    {.name = "baselines",
     .type = cli::Type::choice,
     .value = "WHICH",
     .choices = "all|arise-a|none",
     .fallback = "all",
     .help = "which are searched"},
    {.name = "tracker",
     .type = cli::Type::choice,
     .choices = scene::kTrackers,
     .fallback = "blocks",
     .help = "of the clients; lk needs OpenCV"},
    cli::integer_option("threads", "2", 1, 256, "to use"),
    {.name = "plot", .type = cli::Type::path, .value = "FILE", .help = "writes a picture (SVG)"},
    {.name = "plot-of",
     .type = cli::Type::choice,
     .choices = "clients|drop|batch|idle|start-error|tracking",
     .fallback = "clients",
     .help =
         "what of: clients within their SLA; the distribution of clients' drops over their SLA; mean batch; share of "
         "time that partitions idle; how far batches start from their plan, ms; CPU that a client pays for tracking, "
         "us "
         "a frame, by video"},
    cli::json_option(),
};
constexpr cli::Command kCommand = {
    .name = "arise_study",
    .summary = "clients within their accuracy SLA on one server: coordinated against reactive serving",
    .options = kOptions};

struct Profile {
  const char* name;
  double base_ms, each_ms;
};
constexpr Profile kProfiles[] = {{"6+1.5b", 6, 1.5}, {"3+9b", 3, 9}, {"12+4b", 12, 4}};
struct Sla {
  const char* name;
  double min, max;
};
constexpr Sla kSlas[] = {{"0.03", .03, .03}, {"0.06", .06, .06}, {"0.10", .1, .1}, {"mixed", .03, .1}};

std::vector<std::string> policies_of(const std::string& baselines) {
  std::vector<std::string> out = {"leat", "leat+asking", "leat+ratio", "arise", "arise+line"};
  if (baselines == "none") return out;
  for (const char* name : {"arise-a", "arise-a+line"}) out.emplace_back(name);
  if (baselines == "all")
    for (const char* name : {"chameleon", "chameleon+line", "clipper", "clipper+line", "static"})
      out.emplace_back(name);
  return out;
}

AriseResult run(const std::string& policy, const AriseCase& c, Fixed& fixed) {
  const bool line = policy.ends_with("+line");
  const Estimation estimation = line ? Estimation::line : Estimation::ratio;
  const std::string name = policy.substr(0, policy.find('+'));
  if (name == "leat") {
    core::streams::CoordinatorSettings s;
    if (policy == "leat+asking") return run_asking(c, s);
    if (policy != "leat") s.estimator.kind = Estimation::ratio;
    return run_coordinated(c, s);
  }
  if (name == "arise") return run_coordinated(c, arise_settings(estimation));
  if (name == "arise-a") return run_reactive(c, Reactive::arise_a, estimation, fixed);
  if (name == "chameleon") return run_reactive(c, Reactive::chameleon, estimation, fixed);
  return run_reactive(c, name == "clipper" ? Reactive::clipper : Reactive::static_, estimation, fixed);
}

using Curves = std::map<std::string, std::vector<cli::Series>>;  // by SLA

// Of the first profile; `arise+line` keeps no SLA: its numbers mean nothing.
std::string picture(const std::string& what, const Json& out, const std::vector<std::string>& policies,
                    const Curves& curves) {
  if (what == "drop") {
    std::vector<cli::Plot> plots;
    for (const Sla& s : kSlas) {
      cli::Plot plot{.title = std::string("SLA ") + s.name,
                     .x_label = "drop of a client over its SLA",
                     .y_label = "share of clients",
                     .from_zero = true,
                     .legend_beside = true};
      for (const cli::Series& each : curves.at(s.name))
        if (each.name != "arise+line" && !each.points.empty()) plot.series.push_back(each);
      plot.series.push_back({.name = "the SLA", .points = {{1, 0}, {1, 1}}, .dashed = true});
      plots.push_back(std::move(plot));
    }
    return cli::plots_svg(plots);
  }
  cli::Bars bars;
  if (what == "tracking") {
    bars = {.title = "CPU of a client for tracking", .y_label = "us a frame"};
    std::vector<double> heights;
    for (const auto& [video, us] : out["tracking_us"].items())
      bars.groups.push_back(video), heights.push_back(us.get<double>());
    bars.bars.emplace_back("tracking", heights);
    return cli::bars_svg(bars);
  }
  const std::string key = what == "start-error" ? "start_error_ms" : what;
  bars.title = what == "clients" ? "Clients within their SLA, by SLA"
               : what == "batch" ? "Frames in a batch, by SLA"
               : what == "idle"  ? "Partitions' idle time, by SLA"
                                 : "How far planned batches start from their plan, by SLA";
  bars.y_label = what == "clients" ? "clients" : what == "batch" ? "frames" : what == "idle" ? "share" : "ms";
  for (const Sla& s : kSlas) bars.groups.emplace_back(s.name);
  for (const std::string& policy : policies) {
    std::vector<double> heights;
    for (const Sla& s : kSlas) heights.push_back(out["profiles"][kProfiles[0].name][s.name][policy][key].get<double>());
    if (policy != "arise+line") bars.bars.emplace_back(policy, heights);
  }
  return cli::bars_svg(bars);
}

double ratio(double a, double b) { return b > 0 ? a / b : 0; }

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  const auto videos = static_cast<std::size_t>(args.integer("videos"));
  const auto seeds = static_cast<std::size_t>(args.integer("seeds"));
  const auto threads = static_cast<std::size_t>(args.integer("threads"));
  const auto profiles = static_cast<std::size_t>(args.integer("profiles"));
  const auto video_seed = static_cast<std::uint64_t>(args.integer("video-seed"));
  const std::vector<std::string> policies = policies_of(args.text("baselines"));
  std::vector<scene::AnyTracker> trackers;
  for (std::size_t i = 0; i < videos; ++i) {
    auto tracker = scene::AnyTracker::make(args.text("tracker"));
    if (!tracker.ok()) return cli::fail(kCommand.name, tracker.error());
    trackers.push_back(std::move(*tracker));
  }
  std::vector<DropTable> tables(videos);
  sim::for_each_job(videos, threads, [&](std::size_t i) {
    tables[i] = record_drops(scene::kMotionKinds[i], video_seed, static_cast<std::uint32_t>(args.integer("frames")), 3,
                             std::move(trackers[i]));
  });
  std::vector<std::uint64_t> others;
  for (std::uint64_t s = 1; s <= 3; ++s)
    if (s != video_seed) others.push_back(s);
  const CertaintyFolds folds =
      certainty_folds(others, static_cast<std::uint32_t>(args.integer("frames")), threads, args.text("tracker"));
  for (std::size_t i = 0; i < videos; ++i) tables[i].expect(folds.rule_for(i));
  struct Job {
    std::size_t profile, sla, policy, video;
    std::vector<AriseResult> results;  // by seed
  };
  std::vector<Job> jobs;
  for (std::size_t p = 0; p < profiles; ++p)
    for (std::size_t s = 0; s < std::size(kSlas); ++s)
      for (std::size_t v = 0; v < videos; ++v)
        for (std::size_t k = 0; k < policies.size(); ++k) jobs.push_back({p, s, k, v, {}});
  {
    cli::Progress progress("arise study", jobs.size(), "runs");
    sim::for_each_job(jobs.size(), threads, [&](std::size_t i) {
      Job& j = jobs[i];
      AriseCase c{.table = &tables[j.video], .partitions = static_cast<std::uint32_t>(args.integer("partitions"))};
      for (int b = 1; b <= 32; ++b)
        c.batch_ns.push_back(
            static_cast<core::TimeNs>(1e6 * (kProfiles[j.profile].base_ms + kProfiles[j.profile].each_ms * b)));
      c.sla_min = kSlas[j.sla].min;
      c.sla_max = kSlas[j.sla].max;
      c.seconds = static_cast<double>(args.integer("seconds"));
      Fixed fixed;  // chosen with the first seed, kept for the others
      for (c.seed = 1; c.seed <= seeds; ++c.seed) j.results.push_back(run(policies[j.policy], c, fixed));
    });
    progress.add(jobs.size());
  }
  Json out = {{"videos", videos},
              {"seeds", seeds},
              {"partitions", args.integer("partitions")},
              {"seconds", args.integer("seconds")}};
  Curves curves;                             // the drop's distribution
  double clients[2][std::size(kSlas)] = {};  // of the first profile: leat, the better arise-a
  double min_within = 1;
  for (std::size_t p = 0; p < profiles; ++p) {
    for (std::size_t s = 0; s < std::size(kSlas); ++s) {
      for (std::size_t k = 0; k < policies.size(); ++k) {
        std::vector<double> n, within, seconds_within, batch, idle, interval, start_error, evictions, drops;
        for (const Job& j : jobs) {
          if (j.profile != p || j.sla != s || j.policy != k) continue;
          for (const AriseResult& r : j.results) {
            n.push_back(r.clients);
            if (!r.drops_over_sla.empty()) within.push_back(r.within), seconds_within.push_back(r.windows_within);
            batch.push_back(r.batch), idle.push_back(r.idle), interval.push_back(r.interval);
            start_error.push_back(r.start_error_ms), evictions.push_back(r.evictions);
            drops.insert(drops.end(), r.drops_over_sla.begin(), r.drops_over_sla.end());
          }
        }
        std::sort(drops.begin(), drops.end());
        const auto at = [&](double q) {
          return drops.empty() ? 0 : drops[static_cast<std::size_t>(q * static_cast<double>(drops.size() - 1))];
        };
        Json row = {{"clients", mean(n)},
                    {"within_sla_share", within.empty() ? 1 : mean(within)},
                    {"seconds_within_share", seconds_within.empty() ? 1 : mean(seconds_within)},
                    {"batch", mean(batch)},
                    {"idle", mean(idle)},
                    {"interval_frames", mean(interval)},
                    {"start_error_ms", mean(start_error)},
                    {"evictions_per_s", mean(evictions)},
                    {"drop_over_sla", {{"p10", at(.1)}, {"p50", at(.5)}, {"p90", at(.9)}, {"p99", at(.99)}}}};
        out["profiles"][kProfiles[p].name][kSlas[s].name][policies[k]] = row;
        if (p > 0) continue;
        cli::Series curve{.name = policies[k]};
        for (int q = 0; q <= 100 && !drops.empty(); ++q)
          curve.points.emplace_back(std::min(at(q / 100.0), 3.0), q / 100.0);
        Json& percentiles = out["drop_over_sla_percentiles"][kSlas[s].name][policies[k]] = Json::array();
        for (const auto& [drop, share] : curve.points) percentiles.push_back(drop);
        curves[kSlas[s].name].push_back(std::move(curve));
        out["clients"][kSlas[s].name][policies[k]] = row["clients"];
        out["within_sla_share"][kSlas[s].name][policies[k]] = row["within_sla_share"];
        out["seconds_within_share"][kSlas[s].name][policies[k]] = row["seconds_within_share"];
        if (policies[k] == "leat")
          clients[0][s] = mean(n), min_within = std::min(min_within, row["within_sla_share"].get<double>());
        if (policies[k].starts_with("arise-a")) clients[1][s] = std::max(clients[1][s], mean(n));
      }
    }
  }
  std::vector<double> leat_error, thesis_error, step_us;
  for (const DropTable& t : tables) {
    leat_error.push_back(estimator_error(t, Estimation::line));
    thesis_error.push_back(estimator_error(t, Estimation::ratio));
    step_us.push_back(t.step_us);
    out["tracking_us"][t.video] = t.step_us;
    out["drop_curves"][t.video] = {{"1", t.mean_extra(1)},   {"4", t.mean_extra(4)},   {"8", t.mean_extra(8)},
                                   {"16", t.mean_extra(16)}, {"24", t.mean_extra(24)}, {"36", t.mean_extra(36)}};
  }
  out["estimator_error"] = {{"leat", mean(leat_error)}, {"thesis", mean(thesis_error)}};
  out["tracking_us_per_frame"] = mean(step_us);
  std::vector<Bar> bars;
  if (args.text("baselines") != "none") {
    bars.push_back({.name = "clients at SLA .03 over the better ARISE-a's",
                    .value = ratio(clients[0][0], clients[1][0]),
                    .bar = 1.9});
    bars.push_back({.name = "clients at SLA .06 over the better ARISE-a's",
                    .value = ratio(clients[0][1], clients[1][1]),
                    .bar = 1.25});
  }
  bars.push_back({.name = "least share of leat's clients within their SLA", .value = min_within, .bar = 0.99});
  bars.push_back({.name = "mean error of the estimated drop at strides 4 to 24",
                  .value = mean(leat_error),
                  .bar = 0.003,
                  .at_least = false});
  out["bars"] = to_json(bars);
  if (args.given("plot")) {
    const std::string failed =
        text::write_whole_file(args.text("plot"), picture(args.text("plot-of"), out, policies, curves));
    if (!failed.empty()) return cli::fail(kCommand.name, failed);
  }
  const cli::JsonOutput json(args);
  if (const int failed = json.write(out.dump(1)); failed != 0 || json.alone()) return failed;
  for (const auto& [profile, slas] : out["profiles"].items()) {
    std::printf("batches of b take %s ms: clients (share of them within, share of seconds within, batch, idle)\n",
                profile.c_str());
    for (const auto& [sla, rows] : slas.items()) {
      std::printf("  SLA %s\n", sla.c_str());
      for (const auto& [policy, r] : rows.items())
        std::printf("    %-15s %7.1f (%.3f %.3f %5.1f %5.2f)\n", policy.c_str(), r["clients"].get<double>(),
                    r["within_sla_share"].get<double>(), r["seconds_within_share"].get<double>(),
                    r["batch"].get<double>(), r["idle"].get<double>());
    }
  }
  print(bars);
  return 0;
}
