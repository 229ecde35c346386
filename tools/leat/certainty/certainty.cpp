// leat certainty: the rule by which a tracker says what it has lost, made of one's own videos, and what it is worth.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/base/cli/json_output.h"
#include "tools/base/cli/progress.h"
#include "tools/base/json/json.h"
#include "tools/base/text/whole_file.h"
#include "tools/leat/certainty/footage.h"
#include "tools/leat/certainty/judgement.h"
#include "tools/leat/commands.h"
#include "tools/leat/feed/source/source_options.h"
#include "tools/scene/tracking/any_tracker.h"

namespace leat::tools {
namespace {

constexpr std::uint32_t kEvery = 3;  // so manieth picture is tracked from

constexpr cli::Option kOptions[] = {
    {.name = "model",
     .letter = 'm',
     .type = cli::Type::path,
     .value = "MODEL",
     .help = "what detects: an ONNX file, or a configuration of leatd (.toml); it is run on every picture"},
    LEAT_MODEL_OPTIONS,
    {.name = "application",
     .type = cli::Type::text,
     .value = "NAME",
     .help = "of a configuration with several; default: the first"},
    {.name = "answers",
     .type = cli::Type::path,
     .value = "FILE",
     .repeat = true,
     .help =
         "in place of --model, what was detected: lines of `leat feed --answers FILE VIDEO`; one for each video, in "
         "their order"},
    {.name = "tracker",
     .type = cli::Type::choice,
     .choices = scene::kTrackers,
     .fallback = "blocks",
     .help = "that the rule is for; lk needs OpenCV"},
    {.name = "out",
     .letter = 'o',
     .type = cli::Type::path,
     .value = "FILE",
     .help = "write the rule there, for `leat feed --certainty FILE` and for your own client"},
    cli::integer_option("pictures", "3600", kLeastPictures, 36'000, "of each video at most; 60 kB of memory for each"),
    cli::real_option("answer-ms", "40", 1, 1000, "from a picture that is sent until its answer serves", "MS"),
    kAsStoredOption,
    cli::json_option(),
};
constexpr cli::Positional kPositionals[] = {
    {.name = "VIDEO", .help = "a recording of what the camera sees, half a minute and more", .max = 64}};
constexpr cli::Example kExamples[] = {
    {.line = "leat certainty gate.mp4 --model yolo11n.onnx --out gate.certainty",
     .text = "made and judged on one camera's recording"},
    {.line = "leat certainty gate.mp4 yard.mp4 --answers gate.ndjson --answers yard.ndjson",
     .text = "of what `leat feed --answers` wrote while it fed them"},
    {.line = "leat feed --realtime --accuracy 0.06 --certainty gate.certainty rtsp://gate", .text = "use it"}};
constexpr cli::Command kCommand = {
    .name = "leat certainty",
    .summary = "makes and judges the rule by which a tracker says what it has lost, of your own videos",
    .description =
        "A client of a coordinated stream asks for a detection when its tracker expects to have lost much. The rule "
        "that the trackers come with was made of generated videos; this command makes one of yours. Nobody need mark "
        "what is there: it goes by what a client itself sees, how far the tracked boxes of an earlier picture are from "
        "the detections of a later one.\n\n"
        "Each video is cut into five parts, and what is said about a part is said by a rule made of all others. The "
        "table says how well it tells, among pictures of one age, which have lost more, how often of two pictures the "
        "worse one is told (and how often by age alone), and what a client would lose less with as many detections. "
        "Where asking by it gains nothing that is no chance, it says so, and so does the file: who reads it goes by "
        "the "
        "clock.",
    .options = kOptions,
    .positionals = kPositionals,
    .examples = kExamples,
    .see_also = "leat-feed(1), leat-try(1), leatd(8)",
};

std::string file_of(const std::string& tracker, const CertaintyRule& rule, const std::string& about) {
  std::string out =
      "leat-certainty 1\n# " + about + "\ntracker " + tracker + "\nasks " + (rule.asks ? "yes" : "no") + "\n";
  for (std::size_t i = 0; i < kCertaintyTerms; ++i) {
    char value[32];
    std::snprintf(value, sizeof value, "%.6g", static_cast<double>(rule.weight[i]));
    out += std::string(kCertaintyTermNames[i]) + " " + value + "\n";
  }
  return out;
}

Json to_json(const RuleWorth& w) {
  Json out = {{"late", w.late},
              {"gain", w.gain},
              {"gain_error", w.gain_error},
              {"worst_seconds_gain", w.worst_gain},
              {"asks", w.asks()}};
  for (std::size_t a = 0; a < scene::kWorthAges.size(); ++a) out["r"][std::to_string(scene::kWorthAges[a])] = w.at[a];
  return out;
}

void print_row(const char* name, const RuleWorth& w) {
  std::printf("%-28s", name);
  for (const double r : w.at) std::printf(" %5.2f", r);
  std::printf("  %8.3f  %5.1f %% +- %.1f  %5.1f %%\n", w.late, 100 * w.gain, 100 * w.gain_error, 100 * w.worst_gain);
}

std::string verdict(const RuleJudgement& j) {
  if (!j.rule.asks)
    return "nothing gained: ask by the clock" +
           std::string(j.given.asks() ? ", or by the rule that the tracker comes with" : "");
  return std::string("worth asking by") +
         (j.given.gain >= j.made.gain ? ", but not more than the rule that the tracker comes with" : "");
}

Result<std::vector<scene::DropTable>> record(const cli::Arguments& args) {
  const std::vector<std::string> answers = args.texts("answers");
  const std::vector<std::string>& videos = args.positionals();
  if (args.given("model") == !answers.empty())
    return Error{"what is detected is told by --model MODEL or by --answers FILE, one of them"};
  if (!answers.empty() && answers.size() != videos.size())
    return Error{"there are " + std::to_string(videos.size()) + " videos and " + std::to_string(answers.size()) +
                 " files of answers; give one for each video, in their order"};
  std::unique_ptr<ModelDetector> detector;
  if (answers.empty()) {
    auto started = ModelDetector::start(model_words(args, args.text("model")), args.text("application"));
    if (!started.ok()) return Error{started.error()};
    detector = std::move(*started);
  }
  SourceOptions sources;
  sources.as_stored = args.flag("as-stored");
  std::vector<scene::DropTable> out;
  cli::Progress progress("tracking", videos.size(), "videos");
  for (std::size_t i = 0; i < videos.size(); ++i) {
    auto detect = detector ? Result<Detect>(detector->detect()) : detections_of(answers[i]);
    if (!detect.ok()) return Error{detect.error()};
    const auto footage =
        read_footage(videos[i], sources, static_cast<std::uint64_t>(args.integer("pictures")), *detect);
    if (!footage.ok()) return Error{footage.error()};
    if (footage->detected.size() < kLeastPictures)
      return Error{"'" + footage->video + "' has " + std::to_string(footage->detected.size()) +
                   " pictures; to judge a rule takes " + std::to_string(kLeastPictures) + " and more"};
    out.push_back(scene::record_drops(*footage, kEvery, std::move(*scene::AnyTracker::make(args.text("tracker")))));
    progress.add(1);
  }
  return out;
}

int run(const cli::Arguments& args) {
  const std::string name = args.text("tracker");
  auto tracker = scene::AnyTracker::make(name);
  if (!tracker.ok()) return cli::fail(kCommand.name, tracker.error());
  const CertaintyRule given = tracker->rule();
  auto recordings = record(args);
  if (!recordings.ok()) return cli::fail(kCommand.name, recordings.error());
  std::uint64_t pictures = 0;
  double fps = 0;
  for (const scene::DropTable& t : *recordings)
    pictures += t.frames + scene::DropTable::kStrides, fps = std::max(fps, t.fps);
  const auto answer_frames = static_cast<std::uint32_t>(std::ceil(args.real("answer-ms") * 1e-3 * fps));
  const RuleJudgement j = judge(*recordings, given, std::max(1u, answer_frames));
  Json out = {{"tracker", name},         {"pictures", pictures},
              {"flicker", j.flicker},    {"late_by_age", j.made.late_by_age},
              {"made", to_json(j.made)}, {"comes_with", to_json(j.given)},
              {"verdict", verdict(j)}};
  for (const scene::DropTable& t : *recordings) out["videos"].push_back(t.video);
  for (std::size_t i = 0; i < kCertaintyTerms; ++i)
    out["weights"][std::string(kCertaintyTermNames[i])] = j.rule.weight[i];
  if (args.given("out")) {
    char about[200];
    std::snprintf(about, sizeof about,
                  "of %zu videos, %llu pictures; %s (loses %.1f %% +- %.1f less than by the clock)", recordings->size(),
                  static_cast<unsigned long long>(pictures), verdict(j).c_str(), 100 * j.made.gain,
                  100 * j.made.gain_error);
    const std::string failed = text::write_whole_file(args.text("out"), file_of(name, j.rule, about));
    if (!failed.empty()) return cli::fail(kCommand.name, failed);
  }
  const cli::JsonOutput json(args);
  if (const int failed = json.write(out.dump(1)); failed != 0 || json.alone()) return failed;
  std::printf("%llu pictures of %zu videos; where nothing has drifted, %.3f is seen lost\n",
              static_cast<unsigned long long>(pictures), recordings->size(), j.flicker);
  std::printf("%-28s %-23s  %-8s  %-14s  %s\n", "", "told at one age, 4 to 24", "late told", "loses less",
              "worst seconds");
  print_row("a rule made of these videos", j.made);
  print_row("that the tracker comes with", j.given);
  std::printf("%-28s %23s  %8.3f\n", "the answer's age alone", "", j.made.late_by_age);
  std::printf("%s\n", verdict(j).c_str());
  return 0;
}

}  // namespace

extern const cli::Subcommand kLeatCertainty;
const cli::Subcommand kLeatCertainty = {.command = &kCommand, .run = run};

}  // namespace leat::tools
