#include "tools/leat/feed/feed_run.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "shm/src/counters/counters.h"
#include "shm/src/protocol/control_protocol.h"
#include "tools/base/cli/json_output.h"
#include "tools/leat/feed/cameras/camera_list.h"
#include "tools/leat/feed/cameras/camera_states.h"
#include "tools/leat/feed/feed_options.h"

namespace leat::tools {
namespace {

std::atomic<bool> stop_asked{false}, reload_asked{false};
std::atomic<std::int64_t> stop_asked_ns{0};
std::atomic<const char*> states_path{nullptr};  // while there is such a file
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free &&
                  std::atomic<const char*>::is_always_lock_free,
              "a signal handler uses them");

void on_signal(int number) {
  constexpr std::int64_t kOnceNs = 1'000'000'000;  // `timeout` and terminals send one to the program and to its group
  if (number == SIGHUP) return reload_asked.store(true, std::memory_order_relaxed);
  stop_asked.store(true, std::memory_order_relaxed);  // partner: the loads in run_feed(); nothing else is published
  std::int64_t first_ns = 0;
  const std::int64_t now_ns = ::leat_now_ns();
  if (stop_asked_ns.compare_exchange_strong(first_ns, now_ns) || now_ns - first_ns < kOnceNs) return;
  if (const char* const path = states_path.load()) (void)::unlink(path);
  std::signal(number, SIG_DFL);  // a second one ends the program at once
  (void)std::raise(number);
}

// Lines of cameras, for the one thread that writes to the terminal.
class Lines {
 public:
  void add(const std::string& line) {
    const std::lock_guard lock(mutex_);
    if (lines_.size() < kMost) lines_.push_back(line);
  }
  std::vector<std::string> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(lines_, {});
  }

 private:
  static constexpr std::size_t kMost = 1000;  // between two looks
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

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

// "p50 12.3 ms, p99 40.1 ms"
std::string times_text(const Ledger& ledger) {
  if (ledger.latency_ms(0.5) < 0) return "none answered yet";
  char text[64];
  std::snprintf(text, sizeof text, "p50 %.1f ms, p99 %.1f ms", ledger.latency_ms(0.5), ledger.latency_ms(0.99));
  return text;
}

// What is told of a run while it goes on.
class Watch {
 public:
  Watch(CameraList& cameras, Lines& lines, const std::string& socket, bool quiet)
      : cameras_(cameras), lines_(lines), quiet_(quiet), terminal_(::isatty(STDERR_FILENO) == 1) {
    auto states = CameraStatesFile::create(socket);
    if (states.ok()) states_path.store(states_.emplace(std::move(*states)).path().c_str());
    if (!states.ok()) lines_.add("`leat status` cannot show these cameras: " + states.error());
  }
  ~Watch() { states_path.store(nullptr); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  // Every tenth of a second.
  void look() {
    if (++ticks_ % 10 == 0) tell_states();
    const std::vector<std::string> lines = lines_.take();
    if (!lines.empty()) clear_table();
    if (!quiet_)
      for (const std::string& line : lines) std::fprintf(stderr, "leat feed: %s\n", line.c_str());
    if (!quiet_ && ticks_ % (terminal_ ? 10 : 50) == 0) show_figures();
  }
  void end() {
    look();
    clear_table();
  }

 private:
  void tell_states() {
    const std::int64_t now_ns = ::leat_now_ns();
    const std::vector<CameraReport> reports = cameras_.reports(now_ns);
    if (states_) (void)states_->write(reports, now_ns);  // a full disk: there is nothing to be shown then
    broken_.clear();
    for (const CameraReport& r : reports)
      if (r.state == CameraState::waiting || r.state == CameraState::unserved || r.state == CameraState::late)
        broken_ += r.name + ": " + name_of(r.state) + ": " + r.last_error + "\n";
  }
  void clear_table() {
    if (shown_ > 0) std::fprintf(stderr, "\033[%dA\033[J", shown_);
    shown_ = 0;
  }
  // A table drawn anew in its place on a terminal, else a line now and then.
  void show_figures() {
    const FeedReport report = cameras_.report();
    if (terminal_) {
      const std::string table = report_table(report) + broken_;
      clear_table();
      std::fputs(table.c_str(), stderr);
      shown_ = static_cast<int>(std::count(table.begin(), table.end(), '\n'));
      return;
    }
    Ledger total;
    for (const NamedLedger& stream : report.streams) total.add(stream.ledger);
    std::fprintf(stderr, "leat feed: %3.0f s: submitted %llu, completed %llu, late %llu, dropped %llu, %s\n",
                 std::max(report.seconds, ticks_ * kTickSeconds),  // also before any picture came
                 static_cast<unsigned long long>(total.submitted_count()),
                 static_cast<unsigned long long>(total.count(Outcome::completed)),
                 static_cast<unsigned long long>(total.count(Outcome::late)),
                 static_cast<unsigned long long>(total.count(Outcome::dropped)), times_text(total).c_str());
  }

  static constexpr double kTickSeconds = 0.1;
  CameraList& cameras_;
  Lines& lines_;
  const bool quiet_, terminal_;
  std::optional<CameraStatesFile> states_;
  std::string broken_;
  int shown_ = 0, ticks_ = 0;
};

// waits: for a slow reader as long as he reads, unless the end is asked for meanwhile.
void finish_answers(LineWriter& answers, bool waits, bool to_pipe) {
  constexpr std::int64_t kPatienceNs = 2'000'000'000;  // for a reader who is slow
  answers.finish(kPatienceNs, [&] { return waits && !stop_asked.load(std::memory_order_relaxed); });
  if (to_pipe && answers.reader_gone()) return;  // he has what he wanted
  if (const LineWriter::Figures lines = answers.figures(); lines.lost > 0)
    std::fprintf(stderr, "leat feed: %llu of %llu answers were not written%s%s\n",
                 static_cast<unsigned long long>(lines.lost),
                 static_cast<unsigned long long>(lines.written + lines.lost), lines.trouble.empty() ? "" : ": ",
                 lines.trouble.empty() ? ", since their reader was slow" : lines.trouble.c_str());
}

// The stream that is drawn, among `streams`; nothing where it is all of them.
Result<std::optional<std::size_t>> drawn(const std::string& which, const std::vector<FeederOptions>& streams) {
  if (which == "all") return std::optional<std::size_t>();
  const auto named = std::find_if(streams.begin(), streams.end(), [&](const auto& o) { return o.name == which; });
  if (named != streams.end()) return std::optional(static_cast<std::size_t>(named - streams.begin()));
  const bool number = !which.empty() && which.size() <= 3 && which.find_first_not_of("0123456789") == std::string::npos;
  if (number && std::stoul(which) < streams.size()) return std::optional<std::size_t>(std::stoul(which));
  return Error{"'--annotate-stream' is '" + which + "', but must be 'all', a stream's name or its number, 0 to " +
               std::to_string(streams.size() - 1)};
}

// Everything that outlives the cameras.
struct Run {
  std::vector<Truth> truths;
  Judge judge;
  std::unique_ptr<DecodeTurns> turns;
  std::unique_ptr<Connection> connection;
  std::unique_ptr<LineWriter> answers;
  std::unique_ptr<Annotator> grid;
  FeederOptions all;
};

Status prepare(const cli::Arguments& args, Run& run) {
  for (const std::string& path : args.texts("truth")) {
    auto truth = load_truth(path);
    if (!truth.ok()) return Error{truth.error()};
    run.truths.push_back(std::move(*truth));
  }
  auto all = read_options(args);
  if (!all.ok()) return Error{all.error()};
  run.all = std::move(*all);
  const DecodersRun decoders = decoders_of(args);
  run.turns = std::make_unique<DecodeTurns>(decoders.at_once);
  run.connection = std::make_unique<Connection>(run.all.socket, "leat feed");
  run.all.cores = decoders.cores;
  run.all.yields = decoders.yields;
  run.all.turns = run.turns.get();
  run.all.connection = run.connection.get();
  if (const std::string path = args.text("answers"); !path.empty()) {
    auto opened = LineWriter::open(path, {.notice = lost_line});
    if (!opened.ok()) return Error{opened.error()};
    run.answers = std::move(*opened);
    run.all.answers = run.answers.get();
  }
  return Done{};
}

// The cameras of the beginning: those of the command line, then those of the file.
Status add_cameras(const cli::Arguments& args, Run& run, CameraList& cameras, Lines& lines) {
  auto planned = plan_streams(args, run.all, run.truths, &run.judge);
  if (!planned.ok()) return Error{planned.error()};
  std::vector<CameraConfig> of_file;
  if (args.given("cameras")) {
    auto read = read_cameras(args.text("cameras"));
    if (!read.ok()) return Error{read.error()};
    of_file = std::move(*read);
  }
  std::vector<FeederOptions> streams = *planned;
  for (const CameraConfig& camera : of_file) streams.push_back(*options_of(camera, run.all));
  // A camera waits for a leatd that is away, and would wait for ever for somebody to say what it is for.
  if (std::any_of(streams.begin(), streams.end(), [](const auto& o) { return o.application.empty(); }))
    if (const std::string which = run.connection->several_applications(); !which.empty()) return Error{which};
  std::string annotated;  // the name of the stream that is drawn by itself
  if (const std::string path = args.text("annotate"); !path.empty()) {
    const auto which = drawn(args.text("annotate-stream"), streams);
    if (!which.ok()) return Error{which.error()};
    if (*which) annotated = streams[**which].name;
    if (!*which) {
      auto opened = Annotator::open_grid(path, static_cast<std::uint32_t>(streams.size()));
      if (!opened.ok()) return Error{opened.error()};
      run.grid = std::move(*opened);
      run.all.grid = run.grid.get();
    }
  }
  for (FeederOptions& options : *planned) {
    options.grid = run.all.grid;
    if (options.name == annotated) options.annotate = args.text("annotate");
    const bool comes_back = may_come_back(options.source);
    options.stays = comes_back || options.loop;
    if (!comes_back) options.stall_ns = 0;
    Camera& camera = cameras.add(std::move(options), comes_back);
    if (comes_back) continue;  // its thread opens it, as often as it takes
    const Status opened = camera.open();
    if (!opened.ok() && streams.size() == 1) return opened;
    lines.add(opened.ok() ? "stream " + camera.feeder().describe() : opened.error());
  }
  FeederOptions all = run.all;
  all.stays = true;
  run.all = all;
  (void)cameras.apply(of_file, run.all, annotated, args.text("annotate"));
  return Done{};
}

// Reads the file of cameras again. One that is wrong changes nothing.
void reload(const cli::Arguments& args, const Run& run, CameraList& cameras, Lines& lines) {
  const std::string path = args.text("cameras");
  const auto read = read_cameras(path);
  if (!read.ok()) return lines.add(read.error() + "; the cameras stay as they were");
  lines.add(path + " has been read again: " + cameras.apply(*read, run.all));
  cameras.start(::leat_now_ns());
}

FeedReport final_report(const CameraList& cameras, const Run& run, const std::optional<CopyCount>& before,
                        const std::optional<CopyCount>& after) {
  FeedReport report = cameras.report();
  if (before && after && after->frames > before->frames) {
    report.bytes_copied_per_frame =
        static_cast<double>(after->bytes - before->bytes) / static_cast<double>(after->frames - before->frames);
  }
  if (run.truths.empty()) return report;
  const scene::Accuracy accuracy = run.judge.accuracy();
  report.map50 = accuracy.map50;
  report.detection_ap50 = accuracy.detection_ap50;
  report.classification = accuracy.classification;
  report.judged_frames = accuracy.frames;
  report.idf1 = run.judge.idf1().value_or(-1);
  return report;
}

}  // namespace

int run_feed(const cli::Arguments& args, std::string_view program) {
  const auto fail = [&](const std::string& why) { return cli::fail(program, why); };
  const cli::JsonOutput json(args);
  if (json.alone() && args.text("answers") == "-")
    return fail("--json and --answers - both want standard output; give one of them a file");
  Run run;
  if (const Status prepared = prepare(args, run); !prepared.ok()) return fail(prepared.error());
  Lines lines;
  CameraList cameras([&](const std::string& line) { lines.add(line); });
  run.all.source_options.say = [&](const std::string& line) { lines.add(line); };
  if (const Status added = add_cameras(args, run, cameras, lines); !added.ok()) return fail(added.error());
  for (const int number : {SIGINT, SIGTERM}) std::signal(number, on_signal);
  if (args.given("cameras")) std::signal(SIGHUP, on_signal);
  const std::optional<CopyCount> before = copy_count(args.text("socket"));
  cameras.start(::leat_now_ns());
  Watch watch(cameras, lines, args.text("socket"), args.flag("quiet"));
  const bool to_pipe = args.text("answers") == "-";
  while (!cameras.ended()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (stop_asked.load(std::memory_order_relaxed) || (to_pipe && run.answers->reader_gone())) cameras.stop();
    if (reload_asked.exchange(false, std::memory_order_relaxed)) reload(args, run, cameras, lines);
    watch.look();
  }
  cameras.end();
  watch.end();
  // What keeps its own time is not held up by a reader, at its end neither.
  if (run.answers) finish_answers(*run.answers, !args.flag("realtime") && args.real("rate") <= 0, to_pipe);
  std::vector<std::string> errors = cameras.errors();
  if (run.grid) {
    const auto finished = run.grid->finish();
    if (!finished.ok()) errors.push_back(finished.error());
  }
  const FeedReport report = final_report(cameras, run, before, copy_count(args.text("socket")));
  std::fputs(report_table(report).c_str(), json.alone() || to_pipe ? stderr : stdout);
  int status = json.write(report_json(report));
  for (const std::string& error : errors) status = fail(error);
  return status;
}

}  // namespace leat::tools
