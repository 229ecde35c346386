// Leat beside what people would write instead: the same cameras, models, pre- and post-processing and settings of ONNX
// Runtime, so that only the way differs in which pictures come to the models.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "bench/alternatives/report.h"
#include "bench/alternatives/trial.h"
#include "bench/serving/leatd_child.h"
#include "bench/study.h"
#include "tools/base/cores/cores.h"
#include "tools/base/documents/text_file.h"

namespace {

using namespace leat;
using namespace leat::bench::alternatives;

constexpr cli::Option kOptions[] = {
    {.name = "contenders",
     .type = cli::Type::text,
     .value = "NAME,NAME,...",
     .help = "which, in which order (default: all that the source suits)"},
    {.name = "cameras",
     .letter = 'n',
     .type = cli::Type::text,
     .value = "N,N,...",
     .fallback = "8,24,32,48",
     .help = "how many, 30 pictures a second each"},
    {.name = "deadlines",
     .type = cli::Type::text,
     .value = "MS,MS,...",
     .fallback = "50,100,200",
     .help = "from when a picture is due to its answer"},
    cli::real_option("seconds", "3", .2, 120, "measured in each run", "S"),
    cli::real_option("rate", "30", 1, 240, "pictures a second of each camera", "HZ"),
    cli::integer_option("rounds", "3", 1, 50, "runs of each case, the order reversed every other time"),
    {.name = "source",
     .type = cli::Type::choice,
     .choices = "raw|h264",
     .fallback = "raw",
     .help = "what the cameras give; h264 is decoded by each camera's reader"},
    {.name = "case",
     .type = cli::Type::choice,
     .choices = "alike|classes|users",
     .fallback = "alike",
     .help = "whose the cameras are: nobody's in particular; every sixth protected and the others not; or a third one "
             "user's and the rest another's, which needs root"},
    cli::integer_option("pictures", "30", 1, 3000, "that are drawn of each of four scenes, and repeated"),
    {.name = "add",
     .type = cli::Type::path,
     .value = "FILE",
     .repeat = true,
     .help = "what an earlier call wrote by --json is told with the rest"},
    {.name = "once", .help = "make no run again, whatever others took of the cores"},
    {.name = "only-tell", .help = "measure nothing: tell what --add names"},
    {.name = "page", .type = cli::Type::path, .value = "FILE", .help = "write the tables as Markdown"},
    {.name = "svg", .type = cli::Type::path, .value = "FILE", .help = "draw what was in time by count of cameras"},
    bench::kLeatdOption,
    cli::json_option(),
};
constexpr cli::Command kCommand = {
    .name = "alternatives",
    .summary = "puts Leat beside what people would write instead",
    .description =
        "The demo's application `shapes` on cameras whose pictures are due one camera after the other. process: a "
        "process a camera takes the newest picture again and again. fifo: a thread a camera puts pictures into a queue "
        "before a worker a core. round-robin, edf: the same with the latest picture of each camera, served in turn or "
        "by deadline. pulled: workers read the newest picture of the camera whose turn it is. leat: leatd with cpu = "
        "\"auto\" and the deadline as its objective, a connection a camera. leat-grants: the same, whose cameras make "
        "only "
        "what leatd wants. leat-feed: leatd and `leat feed` on the cameras' videos. leat-gateway, leat-bridge, "
        "leat-session, leat-gstreamer: leatd by the doors of existing clients, each camera one that asks, waits, and "
        "asks "
        "again, but for GStreamer's. Latency is from when a picture is "
        "due to when its answer is in the hands of whoever asked.",
    .options = kOptions};

// Empty: it is not a list of whole numbers from 1 to `most`.
std::vector<std::uint32_t> numbers(const std::string& list, long most) {
  std::vector<std::uint32_t> out;
  std::istringstream in(list);
  for (std::string word; std::getline(in, word, ',');) {
    char* end = nullptr;
    const long n = std::strtol(word.c_str(), &end, 10);
    if (n < 1 || n > most || *end != '\0') return {};
    out.push_back(static_cast<std::uint32_t>(n));
  }
  return out;
}

Result<std::vector<const Contender*>> chosen(const std::string& list, bool videos) {
  std::vector<const Contender*> out;
  if (list.empty())
    for (const Contender& c : contenders())
      if (videos ? !c.of_raw : !c.of_videos) out.push_back(&c);
  std::istringstream in(list);
  for (std::string word; std::getline(in, word, ',');) {
    const Contender* const contender = find_contender(word);
    if (contender == nullptr) {
      std::string names;
      for (const Contender& c : contenders()) names += (names.empty() ? "" : ", ") + std::string(c.name);
      return Error{"there is no contender '" + word + "'; there are " + names};
    }
    if (contender->of_videos && !videos) return Error{"'" + word + "' needs videos; give --source h264"};
    if (contender->of_raw && videos) return Error{"'" + word + "' cannot decode; give --source raw"};
    out.push_back(contender);
  }
  if (out.empty()) return Error{"--contenders names none"};
  return out;
}

struct Plan {
  std::string source;
  std::vector<const Contender*> contenders;
  std::vector<std::uint32_t> cameras, deadlines_ms;
  std::uint64_t rounds = 1;
};

std::int64_t ns(std::uint32_t ms) { return std::int64_t{ms} * 1'000'000; }

// What does not depend on the deadline runs once, and is held against each.
Status measure(const cli::Arguments& args, const Plan& plan, Report& report) {
  const auto cores = usable_cores();
  if (!cores.ok()) return Error{cores.error()};
  const auto count = static_cast<std::uint64_t>(args.integer("pictures"));
  const auto pictures = plan.source == "raw" ? draw_raw(count) : draw_coded(count);
  if (!pictures.ok()) return Error{pictures.error()};
  TrialOptions options{.parties = parties_named(args.text("case")),
                       .rate = args.real("rate"),
                       .seconds = args.real("seconds"),
                       .once = args.flag("once"),
                       .leatd = bench::leatd_of(args),
                       .cores = *cores};
  std::uint64_t runs = 0;
  for (const Contender* c : plan.contenders) runs += c->by_deadline ? plan.deadlines_ms.size() : 1;
  cli::Progress progress("alternatives", plan.rounds * plan.cameras.size() * runs, "runs");
  for (std::uint64_t round = 0; round < plan.rounds; ++round) {
    auto order = plan.contenders;
    if (round % 2 == 1) std::reverse(order.begin(), order.end());
    for (const std::uint32_t cameras : plan.cameras) {
      options.cameras = cameras;
      for (const Contender* const contender : order) {
        for (std::size_t d = 0; d < (contender->by_deadline ? plan.deadlines_ms.size() : 1); ++d, progress.add(1)) {
          options.deadline_ns = ns(plan.deadlines_ms[d]);
          const auto measured = run_trial(*contender, **pictures, options);
          if (!measured.ok()) return Error{measured.error()};
          for (const std::uint32_t ms : plan.deadlines_ms)
            if (!contender->by_deadline || ns(ms) == options.deadline_ns)
              report.add(plan.source, contender->name, cameras, ms, *measured);
        }
      }
    }
  }
  return Done{};
}

int run(const cli::Arguments& args) {
  const auto contenders = chosen(args.text("contenders"), args.text("source") != "raw");
  if (!contenders.ok()) return cli::fail(kCommand.name, contenders.error());
  const Plan plan{.source = args.text("source"),
                  .contenders = *contenders,
                  .cameras = numbers(args.text("cameras"), 256),
                  .deadlines_ms = numbers(args.text("deadlines"), 10000),
                  .rounds = static_cast<std::uint64_t>(args.integer("rounds"))};
  if (args.text("case") != "alike" && args.text("source") != "raw")
    return cli::fail(kCommand.name, "--case is for raw cameras; leave out --source, or --case");
  if (plan.cameras.empty() || plan.deadlines_ms.empty())
    return cli::fail(kCommand.name, "--cameras and --deadlines are whole numbers, with commas between");
  Report report;
  const cli::JsonOutput json(args);
  if (args.text("case") == "users" && ::geteuid() != 0 && !args.flag("only-tell")) {
    const int failed =
        cli::fail(kCommand.name, "only root can connect as two users; run this as root, or another --case");
    return json.alone() ? json.write(report.json().dump(1)) : failed;
  }
  Status status = Done{};
  for (const std::string& file : args.texts("add"))
    if (status.ok()) status = report.read(file);
  if (status.ok() && !args.flag("only-tell")) status = measure(args, plan, report);
  if (status.ok() && args.given("page")) status = write_text_file(args.text("page"), page_of(report.cases()));
  if (status.ok() && args.given("svg")) status = write_text_file(args.text("svg"), picture_of(report.cases()));
  if (!status.ok()) return cli::fail(kCommand.name, status.error());
  if (const int failed = json.write(report.json().dump(1)); failed != 0 || json.alone()) return failed;
  std::printf("%s", report.text().c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return run(cli::parse_or_exit(kCommand, argc, argv)); }
