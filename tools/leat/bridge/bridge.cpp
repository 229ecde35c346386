// leat bridge: detectors of other programs as clients of leatd.
#include <poll.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "leat/leat.h"
#include "tools/base/cli/json_output.h"
#include "tools/leat/bridge/detector_door.h"
#include "tools/leat/bridge/leatd_link.h"
#include "tools/leat/commands.h"

namespace leat::tools {
namespace {

using cli::Type;

constexpr cli::Option kOptions[] = {
    {.name = "endpoint",
     .letter = 'e',
     .type = Type::text,
     .value = "ENDPOINT",
     .fallback = "tcp://127.0.0.1:5555",
     .repeat = true,
     .help = "where to listen, as ZeroMQ writes it: tcp://ADDRESS:PORT or ipc://FILE; whoever reaches it may ask"},
    {.name = "model",
     .letter = 'm',
     .type = Type::text,
     .value = "NAME=APPLICATION",
     .repeat = true,
     .help = "which application answers for the model NAME (without it: one of the same name, or the only one)"},
    {.name = "application",
     .letter = 'a',
     .type = Type::text,
     .value = "NAME",
     .help = "answers for models of any other name"},
    {.name = "answer-ms",
     .type = Type::real,
     .value = "MS",
     .fallback = "190",
     .min = 1,
     .max = 60000,
     .help = "every question is answered by then; less than the detector's own time-out, which is 200 by default"},
    cli::integer_option("depth", "16", 1, 64, "crops of one size waiting or running at once"),
    {.name = "pixels",
     .type = Type::choice,
     .choices = "rgb|bgr",
     .fallback = "rgb",
     .help = "the detector's input_pixel_format"},
    {.name = "priority",
     .type = Type::choice,
     .choices = "background|normal|high|protected",
     .fallback = "normal",
     .help = "of every stream"},
    cli::real_option("every", "60", 0, 86400, "say what was counted after each S seconds; 0: at the end alone", "S"),
    {.name = "seconds", .letter = 's', .type = Type::real, .value = "S", .min = 0, .help = "stop after this time"},
    kSocketOption,
    cli::json_option("print what was counted as JSON, a line each time"),
};
constexpr cli::Positional kPositionals[] = {{.name = "PROTOCOL", .help = "zmq: Frigate's detector of that type"}};
constexpr cli::Example kExamples[] = {
    {.line = "leat bridge zmq", .text = "one application, detectors on this host"},
    {.line = "leat bridge zmq --endpoint tcp://172.17.0.1:5555 --model yolov9.onnx=cameras",
     .text = "detectors in containers, at the host's address on their network"},
};
constexpr cli::Command kCommand = {
    .name = "leat bridge",
    .summary = "lets the detectors of Frigate use a daemon's applications",
    .description =
        "One endpoint serves any number of detectors; each is a client that asks for one crop after the other, and "
        "crops of all of them share the application's batches. A model is told by the name of its file. Questions "
        "for models are answered while leatd is away, too, because a detector that waits in vain for that never asks "
        "again.\n\n"
        "Every question is answered by --answer-ms. What cannot be, or is refused by leatd, is answered by zeros, "
        "which mean that nothing was seen; they are counted by cause: a reason of leatd, or no_daemon, not_in_time, "
        "unknown_model, no_stream, too_many, bad_message, stopping.\n\n"
        "The application must take pictures and find boxes. Classes are its own numbers: give the detector the labels "
        "of the same model.",
    .options = kOptions,
    .positionals = kPositionals,
    .examples = kExamples,
    .see_also = "leat-status(1), leatd(8)",
};

constexpr std::string_view kPriorities[] = {"background", "normal", "high", "protected"};

Fd signals_as_descriptor() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return Fd(::signalfd(-1, &set, SFD_CLOEXEC));
}

void report(const BridgeCounts& counts, const cli::JsonOutput& json) {
  if (json.alone())
    std::printf("%s\n", counts.json().dump().c_str());
  else
    std::printf("%s\n", counts.text().c_str());
  std::fflush(stdout);
}

std::int64_t ns_of(double seconds) { return static_cast<std::int64_t>(seconds * 1e9); }

// Until it is told to stop, saying what was counted at times.
void serve(DetectorDoor& door, const Fd& signals, const cli::Arguments& args, const cli::JsonOutput& json) {
  const std::int64_t end = args.given("seconds") ? leat_now_ns() + ns_of(args.real("seconds")) : -1;
  const std::int64_t every = ns_of(args.real("every"));
  for (;;) {
    const std::int64_t next = every > 0 ? leat_now_ns() + every : -1;
    door.serve(signals.get(), end < 0 || (next >= 0 && next < end) ? next : end);
    pollfd stop{signals.get(), POLLIN, 0};
    if (::poll(&stop, 1, 0) > 0 || (end >= 0 && leat_now_ns() >= end)) break;
    report(door.counts(), json);
  }
}

int run(const cli::Arguments& args) {
  const cli::JsonOutput json(args);
  if (args.positionals()[0] != "zmq")
    return cli::fail(kCommand.name, "there is no protocol '" + args.positionals()[0] + "'; there is 'zmq'");
  ModelNames names{.given = {}, .otherwise = args.text("application"), .served = {}};
  for (const std::string& text : args.texts("model")) {
    auto model = parse_model(text);
    if (!model.ok()) return cli::fail(kCommand.name, model.error());
    names.given.push_back(std::move(*model));
  }
  const Fd signals = signals_as_descriptor();  // before there is another thread
  CropExchange exchange(std::move(names));
  const std::int64_t answer_ns = ns_of(args.real("answer-ms") / 1000);
  auto door = DetectorDoor::open(exchange, {.endpoints = args.texts("endpoint"), .answer_ns = answer_ns});
  if (!door.ok()) return cli::fail(kCommand.name, door.error());
  for (const std::string& endpoint : door->endpoints())
    std::fprintf(stderr, "leat bridge: listening at %s\n", endpoint.c_str());
  const auto priority = std::ranges::find(kPriorities, args.text("priority")) - std::begin(kPriorities);
  {
    // leatd's answer needs a moment to get out: a twentieth less than the detectors' time.
    const LeatdLink link(exchange, {.socket = args.text("socket"),
                                    .slo_ns = answer_ns - answer_ns / 20,
                                    .depth = static_cast<std::uint32_t>(args.integer("depth")),
                                    .priority = static_cast<std::uint32_t>(priority),
                                    .bgr = args.text("pixels") == "bgr"});
    serve(*door, signals, args, json);
    door->close();
  }
  report(door->counts(), json);
  return json.write(door->counts().json().dump());
}

}  // namespace

extern const cli::Subcommand kLeatBridge;
const cli::Subcommand kLeatBridge = {.command = &kCommand, .run = run};

}  // namespace leat::tools
