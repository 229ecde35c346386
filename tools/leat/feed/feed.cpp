// leat feed: video files, devices, URLs, raw files and standard input into a daemon, and the figures of what came back.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <thread>

#include "shm/src/counters/counters.h"
#include "shm/src/protocol/control_protocol.h"
#include "tools/base/cli/json_output.h"
#include "tools/base/cores/cores.h"
#include "tools/leat/commands.h"
#include "tools/leat/feed/feeder.h"
#include "tools/leat/feed/source/decoder_place.h"
#include "tools/leat/feed/source/source_options.h"

namespace leat::tools {
namespace {

using cli::Type;

constexpr cli::Option kOptions[] = {
    {.name = "application",
     .letter = 'a',
     .type = Type::text,
     .value = "NAME",
     .fallback = "shapes",
     .help = "application of the daemon that takes the frames"},
    {.name = "streams",
     .letter = 'n',
     .type = Type::integer,
     .value = "N",
     .min = 0,
     .max = 256,
     .help = "streams to open; sources are used in turn (default: one per source)"},
    {.name = "realtime",
     .letter = 'r',
     .help =
         "send each picture when it is due by its own time, and keep to the newest: pictures are skipped rather than "
         "sent too late"},
    {.name = "rate",
     .type = Type::real,
     .value = "HZ",
     .min = 0,
     .max = 100000,
     .help = "pictures per second of each stream instead of the source's own; implies sending when due"},
    {.name = "loop", .letter = 'l', .help = "begin again at the source's end"},
    {.name = "seconds", .letter = 's', .type = Type::real, .value = "S", .min = 0, .help = "stop after this time"},
    {.name = "frames",
     .type = Type::integer,
     .value = "N",
     .min = 0,
     .help = "stop each stream after this many frames"},
    {.name = "slo-ms",
     .type = Type::real,
     .value = "MS",
     .min = 0,
     .max = 3600000,
     .help = "objective from capture to answer (default: the application's)"},
    cli::integer_option("depth", "4", 1, 64, "frames of one stream waiting or running at once"),
    {.name = "overload",
     .type = Type::choice,
     .choices = "auto|latest|fifo|latest_per_key|never_drop",
     .fallback = "auto",
     .help = "what gives way when frames wait; auto: latest for cameras and with --realtime, else fifo"},
    {.name = "decoders",
     .type = Type::choice,
     .choices = "auto|apart|yield|anywhere",
     .fallback = "auto",
     .help = "where pictures are decoded: apart, on cores that no partition has; yield, giving way to everything else; "
             "auto: apart where such a core is left, else yield"},
    {.name = "priority",
     .type = Type::choice,
     .choices = "background|normal|high|protected",
     .fallback = "normal",
     .help = "of every stream"},
    {.name = "stdin",
     .help = "read standard input: y4m, or raw pictures with --raw and --size; the same as the source '-'"},
    {.name = "raw",
     .type = Type::choice,
     .choices = "nv12|i420|rgb24|bgr24|gray8",
     .help = "sources are raw pictures of this format, read straight into the frame slots"},
    {.name = "size", .type = Type::text, .value = "WIDTHxHEIGHT", .help = "of raw pictures"},
    kAsStoredOption,
    {.name = "truth",
     .type = Type::path,
     .value = "FILE",
     .repeat = true,
     .help = "ground truth of the source at the same place (leat-scene --truth); accuracy is reported"},
    {.name = "answers",
     .type = Type::path,
     .value = "FILE",
     .help = "append every answer to FILE as a line of JSON (docs/reference/answers.md); - is standard output, and the "
             "table goes to standard error"},
    {.name = "track", .help = "with --answers: detections have identities, the same from picture to picture"},
    {.name = "min-score",
     .type = Type::real,
     .value = "SCORE",
     .min = 0,
     .max = 1,
     .help = "with --answers: detections that score less are left out"},
    {.name = "classes",
     .type = Type::text,
     .value = "NAME",
     .repeat = true,
     .help = "with --answers: detections of other classes are left out; a label of the model, or a number"},
    {.name = "annotate",
     .type = Type::path,
     .value = "FILE",
     .help = "write a stream with what was answered drawn on it as a video (.mp4, .mkv), at most 30 pictures a second "
             "where it keeps its own time; with --accuracy every picture of it"},
    {.name = "annotate-stream",
     .type = Type::text,
     .value = "N|all",
     .fallback = "0",
     .help = "which stream --annotate writes, counted from 0; all: all of them side by side"},
    {.name = "accuracy",
     .type = Type::real,
     .value = "DROP",
     .min = 0,
     .max = 0.5,
     .help =
         "coordinated streams: how much accuracy each may lose between answers, in the mean over a second, such as "
         "0.06. leatd says which pictures it wants, boxes are tracked over all others, and the table says what that "
         "saved and lost; needs --realtime, --rate or a camera"},
    {.name = "task",
     .type = Type::text,
     .value = "PART",
     .repeat = true,
     .help =
         "with --accuracy, a part of every picture that is looked at by itself: WIDTHxHEIGHT+X+Y in even pixels, or "
         "'all'; with '@NAME' behind it that application takes it, and with ':2' at the end what it loses weighs "
         "twice. Two to four tasks share what is asked for, so that all together lose the least, and --accuracy is for "
         "their weighted mean; those of one application take turns"},
    {.name = "tracker",
     .type = Type::choice,
     .choices = scene::kTrackers,
     .fallback = "blocks",
     .help = "with --accuracy, what carries boxes from picture to picture: blocks, which needs no library, or lk, the "
             "tracker of Lucas and Kanade, where this was built with OpenCV"},
    kSocketOption,
    cli::json_option("print the figures as JSON, and the table on standard error"),
    {.name = "quiet", .letter = 'q', .help = "no live figures"},
};
constexpr cli::Positional kPositionals[] = {
    {.name = "SOURCE", .help = "a video file, a device such as /dev/video0, a URL, or '-'", .min = 0, .max = 256}};
constexpr cli::Example kExamples[] = {
    {.line = "leat feed --realtime street.mp4 rtsp://camera/main", .text = "a file and a camera, each in its own time"},
    {.line = "ffmpeg -i in.mkv -f yuv4mpegpipe - | leat feed --stdin", .text = "whatever ffmpeg can read"},
    {.line =
         "leat feed --realtime --accuracy 0.06 --task 640x360+0+0:2 --task 640x360+640+0 --annotate out.mp4 road.mp4",
     .text = "two views of one camera that take turns, the left one weighing twice"},
    {.line = "leat feed --realtime --answers - --track rtsp://camera/main | mosquitto_pub -l -t leat/answers",
     .text = "every answer, with identities, to whoever subscribes"},
    {.line = "leat feed --raw nv12 --size 1280x720 --rate 100 --loop frames.nv12",
     .text = "raw pictures, read into the slots by the kernel"},
};
constexpr cli::Command kCommand = {
    .name = "leat feed",
    .summary = "feeds video into a daemon and reports what came back",
    .description =
        "Each picture is written once, into a slot that the workers read in place. Without --realtime or --rate "
        "pictures go in as fast as "
        "answers come, never more than --depth of a stream at once.\n\n"
        "With --realtime or --rate, and from devices and live streams, a feeder that lags leaves pictures undecoded to "
        "which no other refers, then passes over everything up to a newer key frame. What can no longer be answered in "
        "time is not submitted, nor is what finds no free slot. The table says for each stream what was skipped, and "
        "why; "
        "with --overload never_drop nothing is skipped for being late.\n\n"
        "The figures are the client's own count: submitted = completed + late + dropped + failed + rejected + in "
        "flight, exactly. Latency is from "
        "capture (with --realtime: when the picture was due) to the answer, of completed and late frames; goodput is "
        "completed frames per second.",
    .options = kOptions,
    .positionals = kPositionals,
    .examples = kExamples,
    .see_also = "leat-top(1), leat-scene(1), leatd(8)",
};

std::atomic<bool> stop_asked{false};
static_assert(std::atomic<bool>::is_always_lock_free, "it is set by a signal handler");

void on_signal(int number) {
  stop_asked.store(
      true, std::memory_order_relaxed);  // partner: the loads in Feeder::run and watch(); nothing else is published
  std::signal(number, SIG_DFL);          // a second one ends the program at once
}

Status read_tasks(const cli::Arguments& args, FeederOptions& base) {
  for (const std::string& text : args.texts("task")) {
    auto task = parse_task(text);
    if (!task.ok()) return Error{task.error()};
    base.tasks.push_back(std::move(*task));
  }
  if (!base.tasks.empty() && base.accuracy <= 0)
    return Error{"--task is for streams whose boxes are tracked; give --accuracy too"};
  if (base.tasks.size() == 1 || base.tasks.size() > kMaxTasks)
    return Error{"tasks take turns, so there must be two to four of them; give --task as often"};
  return Done{};
}

// What all streams have in common.
Result<FeederOptions> read_options(const cli::Arguments& args) {
  FeederOptions base;
  base.socket = args.text("socket");
  base.application = args.text("application");
  base.slo_ns = static_cast<std::int64_t>(args.real("slo-ms") * 1e6);
  base.depth = static_cast<std::uint32_t>(args.integer("depth"));
  base.rate = args.real("rate");
  base.realtime = args.flag("realtime");
  base.accuracy = args.real("accuracy");
  base.tracker = args.text("tracker");
  if (const Status tasks = read_tasks(args, base); !tasks.ok()) return Error{tasks.error()};
  if (args.text("answers").empty() &&
      (args.flag("track") || args.real("min-score") > 0 || !args.texts("classes").empty()))
    return Error{"--track, --min-score and --classes are about the lines of --answers; give that too"};
  base.tracks = args.flag("track");
  base.min_score = args.real("min-score");
  base.classes = args.texts("classes");
  base.loop = args.flag("loop");
  base.max_pictures = static_cast<std::uint64_t>(args.integer("frames"));
  base.run_ns = static_cast<std::int64_t>(args.real("seconds") * 1e9);
  base.source_options.raw_format = args.text("raw");
  base.source_options.as_stored = args.flag("as-stored");
  base.source_options.rate = base.rate;
  if (const std::string size = args.text("size");
      !size.empty() &&
      std::sscanf(size.c_str(), "%ux%u", &base.source_options.width, &base.source_options.height) != 2) {
    return Error{"'--size' is '" + size + "', but must be WIDTHxHEIGHT, such as 1280x720"};
  }
  const std::string overload = args.text("overload"), priority = args.text("priority");
  base.overload_chosen = overload != "auto";
#define X(name, value, text) \
  if (overload == #name) base.overload = LEAT_OVERLOAD_##name;
  LEAT_OVERLOADS(X)
#undef X
  base.priority = priority == "background"  ? LEAT_PRIORITY_BACKGROUND
                  : priority == "high"      ? LEAT_PRIORITY_HIGH
                  : priority == "protected" ? LEAT_PRIORITY_PROTECTED
                                            : LEAT_PRIORITY_NORMAL;
  return base;
}

Result<std::vector<FeederOptions>> plan_streams(const cli::Arguments& args, const std::vector<Truth>& truths,
                                                Judge* judge, const DecodersRun& decoders, DecodeTurns* turns) {
  std::vector<std::string> sources = args.positionals();
  if (args.flag("stdin")) sources.emplace_back("-");
  if (sources.empty()) return Error{"SOURCE is missing: name a video file, a device or a URL, or give --stdin"};
  auto base = read_options(args);
  if (!base.ok()) return Error{base.error()};
  base->cores = decoders.cores;
  base->yields = decoders.yields;
  base->turns = turns;
  const std::size_t count =
      args.integer("streams") > 0 ? static_cast<std::size_t>(args.integer("streams")) : sources.size();
  if (const std::string which = args.text("annotate-stream");
      which != "all" && (which.empty() || which.find_first_not_of("0123456789") != std::string::npos ||
                         which.size() > 3 || std::stoul(which) >= count))
    return Error{"'--annotate-stream' is '" + which + "', but must be 'all' or a stream's number, 0 to " +
                 std::to_string(count - 1)};
  if (std::count(sources.begin(), sources.end(), "-") > 0 && count > 1)
    return Error{"standard input can feed one stream only; leave --streams and the other sources out"};
  std::vector<FeederOptions> streams;
  for (std::size_t i = 0; i < count; ++i) {
    FeederOptions options = *base;
    const std::size_t which = i % sources.size();
    options.source = sources[which];
    const std::size_t slash = options.source.find_last_of('/');
    options.name =
        std::to_string(i) + " " + (slash == std::string::npos ? options.source : options.source.substr(slash + 1));
    if (which < truths.size()) {
      options.truth = &truths[which];
      options.judge = judge;
    }
    if (std::to_string(i) == args.text("annotate-stream")) options.annotate = args.text("annotate");
    streams.push_back(std::move(options));
  }
  return streams;
}

// Bytes of frames that the daemon says were copied, and frames, over all streams and edges. Empty: not to be had.
struct CopyCount {
  std::uint64_t bytes = 0, frames = 0;
};
std::optional<CopyCount> copy_count(const std::string& socket) {
  leat_error error{};
  auto observer = shm::Observer::connect(socket.empty() ? ::leat_default_socket() : socket, &error);
  if (!observer.ok()) return std::nullopt;
  auto counters = observer->counters(&error);
  if (!counters.ok()) return std::nullopt;
  auto reader = shm::CountersReader::map(std::move(counters->fd), counters->bytes);
  if (!reader.ok()) return std::nullopt;
  const auto total = reader->snapshot(shm::RecordKind::total, 0);
  if (!total || !total->value(shm::StreamCounter::submitted)) return std::nullopt;
  CopyCount count{.bytes = total->value(shm::StreamCounter::bytes_copied).value_or(0),
                  .frames = *total->value(shm::StreamCounter::submitted)};
  for (const auto& edge : reader->live(shm::RecordKind::edge))
    count.bytes += edge.value(shm::EdgeCounter::bytes_copied).value_or(0);
  return count;
}

DecodersRun decoders_of(const cli::Arguments& args) {
  const std::string word = args.text("decoders"), socket = args.text("socket");
  DecoderPlace place = word == "apart"      ? DecoderPlace::apart
                       : word == "yield"    ? DecoderPlace::yield
                       : word == "anywhere" ? DecoderPlace::anywhere
                                            : DecoderPlace::automatic;
  // As fast as answers come, nothing is late, and the partitions wait for what is decoded.
  if (place == DecoderPlace::automatic && !args.flag("realtime") && args.real("rate") <= 0)
    place = DecoderPlace::anywhere;
  leat_error error{};
  std::optional<std::vector<std::uint32_t>> taken;
  if (auto observer = shm::Observer::connect(socket.empty() ? ::leat_default_socket() : socket, &error);
      observer.ok()) {
    if (const auto status = observer->status(&error); status.ok()) taken = partition_cores(*status);
  }
  const auto usable = usable_cores();
  return place_decoders(place, usable.ok() ? *usable : std::vector<std::uint32_t>{}, taken);
}

FeedReport report_of(const std::vector<std::unique_ptr<Feeder>>& feeders) {
  FeedReport report;
  std::int64_t first = 0, last = 0;
  for (const auto& feeder : feeders) {
    for (NamedLedger& stream : feeder->figures()) report.streams.push_back(std::move(stream));
    const std::int64_t from = feeder->first_submit_ns();
    if (from > 0) first = first == 0 ? from : std::min(first, from);
    last = std::max(last, feeder->last_answer_ns());
  }
  report.seconds = first > 0 && last > first ? static_cast<double>(last - first) / 1e9 : 0;
  return report;
}

// Live figures until every feeder has ended: a table redrawn in place on a terminal, else one line every five seconds.
void watch(const std::vector<std::unique_ptr<Feeder>>& feeders, const std::atomic<std::size_t>& running, bool quiet) {
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  int lines = 0, ticks = 0;
  // acquire: partner is the release decrement at the end of each feeder's thread.
  while (running.load(std::memory_order_acquire) > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (quiet || ++ticks % (terminal ? 10 : 50) != 0) continue;
    const FeedReport report = report_of(feeders);
    if (terminal) {
      const std::string table = report_table(report);
      if (lines > 0) std::fprintf(stderr, "\033[%dA\033[J", lines);
      std::fputs(table.c_str(), stderr);
      lines = static_cast<int>(std::count(table.begin(), table.end(), '\n'));
      continue;
    }
    Ledger total;
    for (const NamedLedger& stream : report.streams) total.add(stream.ledger);
    std::fprintf(
        stderr,
        "leat feed: %3.0f s: submitted %llu, completed %llu, late %llu, dropped %llu, p50 %.1f ms, p99 %.1f ms\n",
        report.seconds, static_cast<unsigned long long>(total.submitted_count()),
        static_cast<unsigned long long>(total.count(Outcome::completed)),
        static_cast<unsigned long long>(total.count(Outcome::late)),
        static_cast<unsigned long long>(total.count(Outcome::dropped)), total.latency_ms(0.5), total.latency_ms(0.99));
  }
  if (lines > 0) std::fprintf(stderr, "\033[%dA\033[J", lines);
}

void finish_answers(LineWriter& answers) {
  constexpr std::int64_t kPatienceNs = 2'000'000'000;  // for a reader who is slow
  answers.finish(kPatienceNs);
  if (const LineWriter::Figures lines = answers.figures(); lines.lost > 0)
    std::fprintf(stderr, "leat feed: %llu of %llu answers were not written%s%s\n",
                 static_cast<unsigned long long>(lines.lost),
                 static_cast<unsigned long long>(lines.written + lines.lost), lines.trouble.empty() ? "" : ": ",
                 lines.trouble.empty() ? ", since their reader was slow" : lines.trouble.c_str());
}

int run(const cli::Arguments& args) {
  std::vector<Truth> truths;
  for (const std::string& path : args.texts("truth")) {
    auto truth = load_truth(path);
    if (!truth.ok()) return cli::fail(kCommand.name, truth.error());
    truths.push_back(std::move(*truth));
  }
  Judge judge;
  const DecodersRun decoders = decoders_of(args);
  DecodeTurns turns(decoders.at_once);
  auto planned = plan_streams(args, truths, &judge, decoders, &turns);
  if (!planned.ok()) return cli::fail(kCommand.name, planned.error());

  const cli::JsonOutput json(args);
  if (json.alone() && args.text("answers") == "-")
    return cli::fail(kCommand.name, "--json and --answers - both want standard output; give one of them a file");
  std::unique_ptr<LineWriter> answers;
  if (const std::string path = args.text("answers"); !path.empty()) {
    auto opened = LineWriter::open(path, {.notice = lost_line});
    if (!opened.ok()) return cli::fail(kCommand.name, opened.error());
    answers = std::move(*opened);
  }
  std::vector<std::unique_ptr<Feeder>> feeders;
  std::unique_ptr<Annotator> grid;  // ends before the feeders, whose streams know the names of classes
  if (const std::string path = args.text("annotate"); !path.empty() && args.text("annotate-stream") == "all") {
    auto opened = Annotator::open_grid(path, static_cast<std::uint32_t>(planned->size()));
    if (!opened.ok()) return cli::fail(kCommand.name, opened.error());
    grid = std::move(*opened);
  }
  for (FeederOptions& options : *planned) {
    options.answers = answers.get();
    options.grid = grid.get(), options.grid_place = static_cast<std::uint32_t>(feeders.size());
    feeders.push_back(std::make_unique<Feeder>(std::move(options)));
    if (const Status opened = feeders.back()->open(); !opened.ok()) return cli::fail(kCommand.name, opened.error());
    if (!args.flag("quiet")) std::fprintf(stderr, "leat feed: stream %s\n", feeders.back()->describe().c_str());
  }
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  const std::optional<CopyCount> before = copy_count(args.text("socket"));

  std::vector<Status> ends(feeders.size(), Status(Done{}));
  std::atomic<std::size_t> running{feeders.size()};
  std::vector<std::thread> threads;
  const std::int64_t start_ns = ::leat_now_ns();
  for (std::size_t i = 0; i < feeders.size(); ++i) {
    threads.emplace_back([&, i] {
      ends[i] = feeders[i]->run(start_ns, stop_asked);
      running.fetch_sub(1, std::memory_order_release);  // partner: the acquire in watch()
    });
  }
  watch(feeders, running, args.flag("quiet"));
  for (std::thread& thread : threads) thread.join();

  if (answers) finish_answers(*answers);
  if (grid) {
    const auto finished = grid->finish();
    if (!finished.ok()) ends.emplace_back(Error{finished.error()});
  }

  FeedReport report = report_of(feeders);
  const std::optional<CopyCount> after = copy_count(args.text("socket"));
  if (before && after && after->frames > before->frames) {
    report.bytes_copied_per_frame =
        static_cast<double>(after->bytes - before->bytes) / static_cast<double>(after->frames - before->frames);
  }
  if (!truths.empty()) {
    const scene::Accuracy accuracy = judge.accuracy();
    report.map50 = accuracy.map50;
    report.detection_ap50 = accuracy.detection_ap50;
    report.classification = accuracy.classification;
    report.judged_frames = accuracy.frames;
    report.idf1 = judge.idf1().value_or(-1);
  }
  std::fputs(report_table(report).c_str(), json.alone() || args.text("answers") == "-" ? stderr : stdout);
  int status = json.write(report_json(report));
  for (const Status& end : ends) {
    if (!end.ok()) status = cli::fail(kCommand.name, end.error());
  }
  return status;
}

}  // namespace

extern const cli::Subcommand kLeatFeed;
const cli::Subcommand kLeatFeed = {.command = &kCommand, .run = run};

}  // namespace leat::tools
