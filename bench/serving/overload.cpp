// What is left of the goodput as streams are added: the demo's cameras through `leat feed` and leatd's defaults, first
// as H.264, where decoding wants the partitions' cores, then as raw pictures, beside a plan that leatd asks for and the
// best division of the cores by hand.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "bench/serving/leatd_child.h"
#include "bench/serving/shapes_application.h"
#include "bench/serving/street_videos.h"
#include "bench/study.h"
#include "leat/client.hpp"
#include "tools/base/cores/cores.h"
#include "tools/base/subprocess/run.h"
#include "tools/scene/scene.h"

namespace {

using namespace leat;
using bench::median;
namespace fs = std::filesystem;

constexpr std::uint32_t kWidth = 1280, kHeight = 720, kRate = 30;
constexpr std::uint32_t kRawPictures = 30;
constexpr double kShareOfBest = .7, kShareOfHand = .95, kShareOfNone = .97;

constexpr cli::Option kOptions[] = {
    cli::real_option("seconds", "8", 1, 120, "of each run", "S"),
    cli::integer_option("repeats", "3", 1, 50, "runs of each case, in turn"),
    {.name = "streams",
     .type = cli::Type::text,
     .value = "N,N,...",
     .fallback = "4,8,12,16,24",
     .help = "H.264 streams"},
    {.name = "raw-streams", .type = cli::Type::text, .value = "N,N,...", .fallback = "8,12,24", .help = "raw streams"},
    {.name = "scenes",
     .type = cli::Type::path,
     .value = "DIR",
     .help =
         "street0.mp4 ... street3.mp4, as tools/demo leaves them in build/scenes (default: drawn and encoded anew)"},
    cli::integer_option("pictures", "300", 30, 3000, "of each camera that is drawn anew"),
    cli::json_option(),
};
constexpr cli::Command kCommand = {
    .name = "overload",
    .summary = "measures what is left of the goodput as streams are added",
    .description =
        "H.264: as tools/demo feeds them, 30 pictures a second each, an SLO of 200 ms. "
        "A count's goodput is set against the "
        "best count's, and against what it could have at most: the best, or the "
        "pictures its cameras take. Raw: the same "
        "pictures undecoded, with leatd's cpu = \"auto\", with plan = \"auto\" beside it "
        "(the models profiled first), and with the cores divided by hand; the runs of a "
        "count follow each other, the ratio is of the medians of all rounds.",
    .options = kOptions};

std::vector<unsigned> counts_of(const std::string& list) {
  std::vector<unsigned> out;
  std::istringstream in(list);
  for (std::string word; std::getline(in, word, ',');) {
    const long n = std::strtol(word.c_str(), nullptr, 10);
    if (n < 1 || n > 256) return {};
    out.push_back(static_cast<unsigned>(n));
  }
  return out;
}

constexpr const char* kDefault = "default";
constexpr const char* kPlanned = "plan = \"auto\"";

// One way of dividing the cores: TOML before and behind [daemon]; by hand unless it is one of the two above.
struct Division {
  std::string name, first, config;
  [[nodiscard]] bool by_hand() const { return name != kDefault && name != kPlanned; }
};

std::string partition_toml(const std::string& cores) {
  return "[[partition]]\nname = \"p" + cores + "\"\nkind = \"cpu\"\ncores = \"" + cores + "\"\n";
}

std::vector<Division> by_hand(const std::vector<std::uint32_t>& cores) {
  Division every{.name = "every core a partition", .first = "", .config = ""},
      but_one{.name = "every core but one",
              .first = "",
              .config = "scheduler_core = " + std::to_string(cores.back()) + "\n"};
  for (const std::uint32_t core : cores) {
    every.config += partition_toml(std::to_string(core));
    if (core != cores.back()) but_one.config += partition_toml(std::to_string(core));
  }
  Division one{.name = "one partition of all cores", .first = "", .config = partition_toml(cores_text(cores))};
  if (cores.size() < 2) return {every};
  return {every, but_one, one};
}

// Runs the built `leat`. What it prints, or why it failed.
Result<std::string> run_leat(std::vector<std::string> words) {
  words.insert(words.begin(), bench::built("tools/leat/leat"));
  return subprocess::output_of({.words = std::move(words)}, {.limit = std::chrono::minutes(10)});
}

// Both models as leatd runs them on one core, as somebody would who wants plan = "auto".
Status profile(const std::string& folder) {
  const auto app = bench::shapes_application();
  if (!app.ok()) return Error{app.error()};
  const std::string config = folder + "/profile.toml";
  std::ofstream(config) << "cpu = \"auto\"\n" << *app;
  for (const auto& [model, batches] : {std::pair{"detect", "1,2,4"}, std::pair{"classify", "1,2,4,8,16"}}) {
    const auto profiled = run_leat({"profile", std::string(LEAT_MODELS "/") + model + ".onnx", "--config", config,
                                    "--batches", batches, "--seconds", "1", "-o", folder + "/" + model + ".json"});
    if (!profiled.ok()) return Error{profiled.error()};
  }
  return Done{};
}

// `leat feed` against the daemon; its figures.
Result<Json> feed(const bench::LeatdChild& daemon, unsigned streams, double seconds, std::vector<std::string> words) {
  std::vector<std::string> all = {"feed",          "--socket",
                                  daemon.socket(), "--quiet",
                                  "--json",        "--loop",
                                  "--overload",    "fifo",
                                  "--depth",       "6",
                                  "--streams",     std::to_string(streams),
                                  "--seconds",     std::to_string(seconds)};
  all.insert(all.end(), words.begin(), words.end());
  const auto printed = run_leat(std::move(all));
  if (!printed.ok()) return Error{printed.error()};
  const auto json = Json::try_parse(*printed);
  if (!json) return Error{"leat feed printed no JSON"};
  return json->at("total");
}

struct Folder {
  std::string path;
  Folder() {
    char name[] = "/tmp/leat-overload-XXXXXX";
    if (::mkdtemp(name) != nullptr) path = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code none;
    fs::remove_all(path, none);
  }
};

Status write_raw(const std::string& path) {
  scene::Scene street({.seed = 1, .width = kWidth, .height = kHeight, .fps = kRate});
  std::vector<std::uint8_t> rgb(street.rgb_bytes()), nv12(street.nv12_bytes());
  std::ofstream file(path, std::ios::binary);
  for (std::uint32_t i = 0; i < kRawPictures; ++i) {
    street.render(i, rgb.data(), std::size_t{3} * kWidth);
    scene::to_nv12(rgb.data(), std::size_t{3} * kWidth, kWidth, kHeight, nv12.data());
    file.write(reinterpret_cast<const char*>(nv12.data()), static_cast<std::streamsize>(nv12.size()));
  }
  return file ? Status(Done{}) : Status(Error{path + ": cannot be written"});
}

Json spread(const std::vector<double>& v) { return {bench::min_of(v), bench::max_of(v)}; }

using Samples = std::map<unsigned, std::vector<double>>;  // goodput by streams

struct Study {
  Samples coded;
  std::map<unsigned, Json> skipped;  // of the last round
  std::uint64_t past_deadline = 0;
  std::map<std::string, Samples> raw;  // by division
  std::vector<Division> divisions;
};

Status measure(const cli::Arguments& args, const std::vector<unsigned>& coded, const std::vector<unsigned>& raw,
               Study& study) {
  const Folder folder;
  auto videos =
      bench::street_videos(args.text("scenes"), folder.path, static_cast<std::uint64_t>(args.integer("pictures")));
  if (!videos.ok()) return Error{videos.error()};
  const std::string pictures = folder.path + "/street.nv12";
  if (const Status written = write_raw(pictures); !written) return written;
  const auto cores = usable_cores();
  if (!cores.ok()) return Error{cores.error()};
  const auto app = bench::shapes_application();
  if (!app.ok()) return Error{app.error()};
  if (const Status profiled = profile(folder.path); !profiled) return profiled;
  const auto planned = bench::shapes_application({.profiles = folder.path});
  if (!planned.ok()) return Error{planned.error()};
  const std::string whole = "cpu = \"auto\"\n";
  std::vector<Division> divisions = {{.name = kDefault, .first = whole, .config = ""},
                                     {.name = kPlanned, .first = whole, .config = "plan = \"auto\"\n"}};
  for (Division& d : by_hand(*cores)) divisions.push_back(std::move(d));
  study.divisions = divisions;

  const double seconds = args.real("seconds");
  const auto repeats = static_cast<std::uint64_t>(args.integer("repeats"));
  cli::Progress progress("overload", repeats * (coded.size() + divisions.size() * raw.size()), "runs");
  std::uint64_t done = 0;
  const std::string size = std::to_string(kWidth) + "x" + std::to_string(kHeight);
  for (std::uint64_t round = 0; round < repeats; ++round) {
    std::vector<std::unique_ptr<bench::LeatdChild>> daemons;  // all at a time, one of them at work
    for (const Division& d : divisions) {
      auto daemon =
          bench::LeatdChild::start(bench::leatd_beside(), d.config + (d.name == kPlanned ? *planned : *app), d.first);
      if (!daemon.ok()) return Error{daemon.error()};
      if (const Status ready = (*daemon)->serves(std::chrono::seconds(60)); !ready) return ready;
      daemons.push_back(std::move(*daemon));
    }
    for (const unsigned n : raw) {
      for (std::size_t d = 0; d < divisions.size(); ++d) {
        const auto total =
            feed(*daemons[d], n, seconds, {"--rate", std::to_string(kRate), "--raw", "nv12", "--size", size, pictures});
        if (!total.ok()) return Error{total.error()};
        study.raw[divisions[d].name][n].push_back(total->value("completed", 0.0) / seconds);
        study.past_deadline += total->value("submitted_past_deadline", std::uint64_t{0});
        progress.set(++done);
      }
    }
    for (const unsigned n : coded) {
      std::vector<std::string> words = {"--realtime"};
      for (std::size_t v = 0; v < std::min<std::size_t>(n, videos->size()); ++v) words.push_back((*videos)[v]);
      const auto total = feed(*daemons.front(), n, seconds, words);
      if (!total.ok()) return Error{total.error()};
      study.coded[n].push_back(total->value("completed", 0.0) / seconds);
      study.skipped[n] = (*total)["skipped_by_reason"];
      study.past_deadline += total->value("submitted_past_deadline", std::uint64_t{0});
      progress.set(++done);
    }
  }
  return Done{};
}

int run(const cli::Arguments& args) {
  const std::vector<unsigned> coded = counts_of(args.text("streams")), raw = counts_of(args.text("raw-streams"));
  if (coded.empty() || raw.empty())
    return cli::fail(kCommand.name, "--streams and --raw-streams are numbers from 1 to 256, with commas between");
  Study study;
  if (const Status measured = measure(args, coded, raw, study); !measured)
    return cli::fail(kCommand.name, measured.error());

  double best = 0, min_of_best = 1, min_of_possible = 1, min_of_hand = 1e9, min_of_none = 1e9;
  for (const auto& [n, v] : study.coded) best = std::max(best, median(v));
  Json goodput, offered, over_best, over_possible, range, raw_fps, over_hand, over_none, raw_range;
  for (const auto& [n, v] : study.coded) {
    const std::string key = std::to_string(n);
    const double possible = std::min<double>(best, n * kRate);
    goodput[key] = median(v), range[key] = spread(v), offered[key] = n * kRate;
    over_best[key] = best > 0 ? median(v) / best : 0;
    over_possible[key] = possible > 0 ? median(v) / possible : 0;
    min_of_best = std::min(min_of_best, over_best[key].get<double>());
    min_of_possible = std::min(min_of_possible, over_possible[key].get<double>());
  }
  for (const unsigned n : raw) {
    const std::string key = std::to_string(n);
    double hand = 0;
    for (const Division& d : study.divisions) {
      const std::vector<double>& v = study.raw[d.name][n];
      raw_fps[key][d.name] = median(v), raw_range[key][d.name] = spread(v);
      if (d.by_hand()) hand = std::max(hand, median(v));
    }
    const double none = median(study.raw[kDefault][n]), planned = median(study.raw[kPlanned][n]);
    over_hand[key] = hand > 0 ? none / hand : 0;
    over_none[key] = none > 0 ? planned / none : 0;
    min_of_hand = std::min(min_of_hand, over_hand[key].get<double>());
    min_of_none = std::min(min_of_none, over_none[key].get<double>());
  }
  const std::vector<bench::Bar> bars = {
      {.name = "H.264: goodput over what the count could have, at the worst count",
       .value = min_of_possible,
       .bar = kShareOfBest},
      {.name = "frames submitted past their deadline",
       .value = static_cast<double>(study.past_deadline),
       .bar = 0,
       .at_least = false},
      {.name = "raw: goodput by default over the best division by hand, at the worst count",
       .value = min_of_hand,
       .bar = kShareOfHand},
      {.name = "raw: goodput with plan = \"auto\" over the default's, at the worst count",
       .value = min_of_none,
       .bar = kShareOfNone},
  };
  const cli::JsonOutput json(args);
  Json skipped;
  for (const auto& [n, reasons] : study.skipped) skipped[std::to_string(n)] = reasons;
  const Json out = {{"goodput_fps", goodput},
                    {"goodput_range", range},
                    {"offered_fps", offered},
                    {"goodput_over_best", over_best},
                    {"goodput_over_possible", over_possible},
                    {"skipped_by_reason", skipped},
                    {"submitted_past_deadline", study.past_deadline},
                    {"raw_fps", raw_fps},
                    {"raw_range", raw_range},
                    {"raw_default_over_best_by_hand", over_hand},
                    {"raw_planned_over_default", over_none},
                    {"bars", bench::to_json(bars)}};
  if (const int failed = json.write(out.dump(1)); failed != 0 || json.alone()) return failed;
  std::printf("H.264 cameras, 30 pictures a second each: completed in time per second, median [least, most]\n");
  for (const auto& [n, v] : study.coded)
    std::printf("  %3u streams %7.1f [%.1f, %.1f]  %.2f of the best, %.2f of what they could have; skipped: %s\n", n,
                median(v), bench::min_of(v), bench::max_of(v), over_best[std::to_string(n)].get<double>(),
                over_possible[std::to_string(n)].get<double>(), study.skipped[n].dump().c_str());
  std::printf("raw cameras\n");
  for (const unsigned n : raw) {
    std::printf("  %3u streams", n);
    for (const Division& d : study.divisions) {
      const std::vector<double>& v = study.raw[d.name][n];
      std::printf("%s %s %.1f [%.1f, %.1f]", d.name == kDefault ? "" : ",", d.name.c_str(), median(v), bench::min_of(v),
                  bench::max_of(v));
    }
    std::printf("\n");
  }
  bench::print(bars);
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return run(cli::parse_or_exit(kCommand, argc, argv)); }
