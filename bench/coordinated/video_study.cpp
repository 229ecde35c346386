// What trackers lose on a real video, and how far the estimate of it is off: real_footage.h says what is detected and
// what stands for the truth. Beside the trackers: the last answer held.
#include <cstdio>
#include <string>
#include <vector>

#include "bench/coordinated/arise_world.h"
#include "bench/coordinated/real_footage.h"
#include "bench/study.h"
#include "engine/core/streams/asking.h"
#include "engine/core/streams/coordinator/coordinator.h"
#include "tools/leat/certainty/asking_replay.h"
#include "tools/scene/tracking/certainty_fit.h"

namespace {

using namespace leat;
using namespace leat::bench;
using core::streams::Estimation;

constexpr cli::Option kOptions[] = {
    {.name = "video",
     .type = cli::Type::path,
     .value = "FILE",
     .fallback = "/usr/share/doc/opencv-doc/examples/data/vtest.avi",
     .help = "from a camera that stands still; the default is of Debian's package opencv-doc"},
    cli::integer_option("every", "3", 1, 100, "track from every so manieth frame"),
    cli::json_option(),
};
constexpr cli::Command kCommand = {.name = "video_study",
                                   .summary = "what trackers lose on a real video with a classical detector",
                                   .options = kOptions};

constexpr std::uint32_t kStrides[] = {1, 2, 4, 8, 12, 16, 24, 36};

// By stride: what the answer to an earlier frame is off where it is simply held.
std::vector<double> held(const scene::Footage& f, std::uint32_t every) {
  std::vector<double> out;
  for (const std::uint32_t s : kStrides) {
    std::vector<double> drops;
    for (std::size_t at = 0; at + s < f.detected.size(); at += every)
      drops.push_back(distance(f.detected[at], f.truth[at + s]) - distance(f.detected[at + s], f.truth[at + s]));
    out.push_back(mean(drops));
  }
  return out;
}

// A client that asks by what its tracker expects, beside one that sends by the clock as often; and what leatd makes of
// that client: it looks at what the answers show (asking.h), and lets it ask only where that is worth something.
struct Asked {
  double clock = 0, asking = 0;     // lost in the mean
  std::uint32_t sent = 0, may = 0;  // frames; and of those by the clock, behind which leatd lets it ask
  double worth = 0;                 // at the end, as leatd has it
};
constexpr std::uint32_t kIntervals[] = {4, 8, 16, 24};

Asked asked(const scene::DropTable& table, std::uint32_t interval) {
  constexpr core::TimeNs kSecondNs = 1'000'000'000;
  const std::uint32_t frames = table.frames / table.every * table.every;
  Asked out;
  tools::Replay how{.interval = interval, .answer = 1};
  const tools::Replayed clock = tools::replay(table, 0, frames, how);
  const tools::Replayed asking = tools::replay_asking(table, 0, frames, how, clock.sent);
  out.clock = mean(clock.lost), out.asking = mean(asking.lost), out.sent = clock.sent;
  const core::streams::CoordinatorSettings usual;
  const core::streams::StrideCurve curve(usual.bend, usual.hidden);
  core::streams::DropEstimator estimator(usual.estimator);
  core::streams::SharedAsking shared;
  core::streams::Asking client;
  for (std::uint32_t source = 0; source + interval < frames; source += interval) {
    const auto now = static_cast<core::TimeNs>(static_cast<double>(source + interval) / table.fps * kSecondNs);
    const double seen = table.observed(source, interval);
    estimator.observe(now, interval, seen, curve);
    client.observed(shared, table.expected(source, interval), curve.at(interval), estimator.loss(seen), 0.06,
                    usual.asking);
    out.may += client.asks();
  }
  out.worth = client.worth();
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  const cli::JsonOutput json(args);
  const auto every = static_cast<std::uint32_t>(args.integer("every"));
  const auto footage = real_footage(args.text("video"));
  if (!footage.ok()) {
    // Not measured is no failure: the figures are there, and unknown.
    std::fprintf(stderr, "video_study: not measured: %s\n", footage.error().c_str());
    const Json none = {{"boxes_per_frame", nullptr},
                       {"estimator_error", {{"lk", {{"leat", nullptr}}}}},
                       {"asking", {{"blocks", {{"8", {{"may_ask_after", nullptr}}}}}}}};
    return json.write(none.dump(1));
  }
  std::vector<double> boxes, off;
  for (std::size_t f = 0; f < footage->detected.size(); ++f) {
    boxes.push_back(static_cast<double>(footage->detected[f].size()));
    off.push_back(distance(footage->detected[f], footage->truth[f]));
  }
  Json out = {{"video", footage->video},
              {"frames", footage->detected.size()},
              {"fps", footage->fps},
              {"boxes_per_frame", mean(boxes)},
              {"detector_off", mean(off)}};
  const std::vector<double> last = held(*footage, every);
  for (std::size_t i = 0; i < last.size(); ++i) out["lost"]["held"][std::to_string(kStrides[i])] = last[i];
  for (const char* name : {"blocks", "lk"}) {
    const DropTable table = record_drops(*footage, every, std::move(*scene::AnyTracker::make(name)));
    for (const std::uint32_t s : kStrides) {
      out["lost"][name][std::to_string(s)] = table.mean_extra(s);
      out["seen"][name][std::to_string(s)] = table.mean_observed(s);
    }
    out["estimator_error"][name] = {{"leat", estimator_error(table, Estimation::line)},
                                    {"thesis", estimator_error(table, Estimation::ratio)}};
    out["tracking_us_per_frame"][name] = table.step_us;
    const scene::CertaintyWorth w = scene::worth(table);  // by the rule that the tracker comes with
    out["certainty"][name] = {{"late", w.late}, {"late_by_age", w.late_by_age}};
    for (std::size_t a = 0; a < scene::kWorthAges.size(); ++a)
      out["certainty"][name]["r"][std::to_string(scene::kWorthAges[a])] = w.at[a];
    for (const std::uint32_t interval : kIntervals) {
      const Asked a = asked(table, interval);
      out["asking"][name][std::to_string(interval)] = {{"lost_by_clock", a.clock},
                                                       {"lost_asking", a.asking},
                                                       {"sent", a.sent},
                                                       {"may_ask_after", a.may},
                                                       {"worth", a.worth}};
    }
  }
  if (const int failed = json.write(out.dump(1)); failed != 0 || json.alone()) return failed;
  std::printf("%s: %zu frames at %.0f/s, %.1f boxes a frame, the detector itself is %.3f off\nlost at stride",
              footage->video.c_str(), footage->detected.size(), footage->fps, mean(boxes), mean(off));
  for (const std::uint32_t s : kStrides) std::printf(" %6u", s);
  std::printf("   us a frame, error of the estimate: leat, thesis\n");
  for (const char* name : {"held", "blocks", "lk"}) {
    std::printf("%-14s", name);
    for (const std::uint32_t s : kStrides) std::printf(" %6.3f", out["lost"][name][std::to_string(s)].get<double>());
    if (out["estimator_error"].contains(name))
      std::printf(" %12.0f %.4f %.4f", out["tracking_us_per_frame"][name].get<double>(),
                  out["estimator_error"][name]["leat"].get<double>(),
                  out["estimator_error"][name]["thesis"].get<double>());
    std::printf("\n");
  }
  for (const auto& [name, told] : out["certainty"].items())
    std::printf(
        "%-14s correlation of what is expected with what is lost at 4, 8, 16, 24: %.2f %.2f %.2f %.2f; more than "
        ".06 lost: %.3f told, %.3f by age\n",
        name.c_str(), told["r"]["4"].get<double>(), told["r"]["8"].get<double>(), told["r"]["16"].get<double>(),
        told["r"]["24"].get<double>(), told["late"].get<double>(), told["late_by_age"].get<double>());
  for (const auto& [name, intervals] : out["asking"].items())
    for (const std::uint32_t interval : kIntervals) {
      const Json& a = intervals[std::to_string(interval)];
      std::printf(
          "%-14s every %2u: lost %.3f by the clock, %.3f asking as often; leatd finds its certainty worth %.3f "
          "and lets it ask after %u of %u answers\n",
          name.c_str(), interval, a["lost_by_clock"].get<double>(), a["lost_asking"].get<double>(),
          a["worth"].get<double>(), a["may_ask_after"].get<unsigned>(), a["sent"].get<unsigned>());
    }
  return 0;
}
