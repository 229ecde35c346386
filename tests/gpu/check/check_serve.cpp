// leat-gpu-check serve: a whole leatd on a configuration, given rendered frames by a client; its answers written down,
// or held against those of an earlier run; what passed between stages; optionally workers killed meanwhile.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "leat/client.hpp"
#include "shm/src/protocol/control_protocol.h"
#include "tests/gpu/check/check.h"
#include "tools/scene/scene.h"

extern char** environ;

namespace leat::check {
namespace {

using namespace std::chrono_literals;

constexpr cli::Option kOptions[] = {
    {.name = "leatd", .type = cli::Type::path, .value = "FILE", .fallback = "leatd", .help = "the daemon"},
    cli::integer_option("frames", "24", 1, 100000, "frames to send"),
    {.name = "reference",
     .type = cli::Type::path,
     .value = "FILE",
     .help = "answers to be equal to; written where it is not there"},
    {.name = "log", .type = cli::Type::path, .value = "FILE", .help = "leatd's log, which is kept there"},
    cli::integer_option("kills", "0", 0, 1000, "workers to kill, one after the other"),
    cli::integer_option("faults", "0", 0, 100, "faults of the device that shares have, one after the other")};
constexpr cli::Positional kPositionals[] = {
    {.name = "CONFIG", .help = "leatd's configuration, with the application shapes"}};
constexpr cli::Command kCommand = {.name = "leat-gpu-check serve",
                                   .summary = "answers, hand-over and times of a whole leatd",
                                   .options = kOptions,
                                   .positionals = kPositionals};
constexpr std::uint32_t kWidth = 640, kHeight = 360, kScenes = 12;
constexpr int kReadyFd = 9, kStartLimitMs = 300'000;  // a provider tunes and loads for a while
constexpr auto kAnswerLimit = 60s;

class Daemon {
 public:
  Daemon(const std::string& program, const std::string& config, const std::string& log) {
    folder_ = std::filesystem::temp_directory_path() / ("leat-check-" + std::to_string(::getpid()));
    std::filesystem::create_directory(folder_);
    log_ = log.empty() ? folder_ + "/log" : log;
    int ready[2];
    if (::pipe2(ready, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, ready[1], kReadyFd);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    std::string words[] = {program, "--ready-fd", std::to_string(kReadyFd), "--socket", socket(), config};
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    const int failed = ::posix_spawnp(&pid_, argv[0], &files, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    ::close(ready[1]);
    pollfd wait{ready[0], POLLIN, 0};
    char byte = 0;
    const bool serves = failed == 0 && ::poll(&wait, 1, kStartLimitMs) == 1 && ::read(ready[0], &byte, 1) == 1;
    ::close(ready[0]);
    if (!serves) throw std::runtime_error("leatd does not serve: " + last_line());
  }
  ~Daemon() {
    if (pid_ > 0 && ::kill(pid_, SIGKILL) == 0) (void)::waitpid(pid_, nullptr, 0);
    std::error_code none;
    std::filesystem::remove_all(folder_, none);
  }
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  int stop() {
    int status = 0;
    (void)::kill(pid_, SIGTERM);
    (void)::waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  [[nodiscard]] std::string socket() const { return folder_ + "/socket"; }
  // A process that shares the device of its shares and makes it fault. False: it could not.
  [[nodiscard]] bool fault() const {
    std::string uuid, folder;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream stat(entry.path() / "stat"), command(entry.path() / "cmdline");
      std::string line, word;
      std::vector<std::string> words;
      if (!std::getline(stat, line) || line.find(") ") == std::string::npos) continue;
      while (std::getline(command, word, '\0')) words.push_back(word);
      const std::string fields = line.substr(line.rfind(')') + 2);  // state, parent, ...
      if (fields.size() < 3 || std::atoi(fields.c_str() + 2) != pid_ || words.size() < 4 || words[1] != "keep")
        continue;
      uuid = words[2], folder = words[3];
    }
    if (folder.empty()) return false;
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv("CUDA_VISIBLE_DEVICES", uuid.c_str(), 1);
      ::setenv("CUDA_MPS_PIPE_DIRECTORY", (folder + "/pipe").c_str(), 1);
      ::setenv("CUDA_MPS_LOG_DIRECTORY", (folder + "/log").c_str(), 1);
      const int quiet = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
      (void)::dup2(quiet, STDOUT_FILENO);
      (void)::execl("/proc/self/exe", "leat-gpu-check", "fault", nullptr);
      ::_exit(2);
    }
    int status = 0;
    return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  [[nodiscard]] bool lost_a_group() const {
    std::ifstream file(log_);
    const std::string all{std::istreambuf_iterator<char>(file), {}};
    return all.find("were lost with their device") != std::string::npos;
  }
  [[nodiscard]] std::string last_line() const {
    std::ifstream file(log_);
    std::string line, last;
    while (std::getline(file, line))
      if (!line.empty()) last = line;
    return last;
  }
  [[nodiscard]] Json status() const {
    leat_error error{};
    auto observer = shm::Observer::connect(socket(), &error);
    if (!observer.ok()) return {};
    const auto text = observer->status(&error);
    return text.ok() ? Json::try_parse(*text).value_or(Json()) : Json();
  }

 private:
  std::string folder_, log_;
  pid_t pid_ = 0;
};

Json shortened(const leat_result& r) {
  Json list = Json::array();
  for (std::uint32_t i = 0; i < r.detection_count; ++i) {
    const leat_detection& d = r.detections[i];
    Json labels = Json::array();
    for (std::uint32_t l = 0; l < d.label_count; ++l) labels.push_back(d.labels[l].class_id);
    list.push_back({d.x0, d.y0, d.x1, d.y1, d.score, labels});
  }
  return list;
}

// Empty: the same objects with the same labels, boxes within a fiftieth of a pixel.
std::string differs(const Json& a, const Json& b) {
  if (a.size() != b.size()) return std::to_string(a.size()) + " objects instead of " + std::to_string(b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t k = 0; k < 5; ++k)
      if (std::abs(a[i][k].get<double>() - b[i][k].get<double>()) > (k == 4 ? 1e-3 : 0.02))
        return "other boxes or scores";
    if (a[i][5] != b[i][5]) return "other labels";
  }
  return {};
}

int run(const cli::Arguments& arguments) {
  Answers answers("serve");
  Daemon daemon(arguments.text("leatd"), arguments.positionals()[0], arguments.text("log"));
  auto client = Client::connect(daemon.socket(), "leat-gpu-check");
  if (!client.ok()) return cli::fail("leat-gpu-check", client.error());
  leat_stream_options o;
  leat_stream_options_init(&o);
  o.application = "shapes";
  o.format = LEAT_FORMAT_nv12;
  o.width = kWidth, o.height = kHeight;
  o.depth = o.slots = 6;
  o.overload = LEAT_OVERLOAD_never_drop;
  o.slo_ns = 60'000'000'000;
  auto stream = client->open_stream(o);
  if (!stream.ok()) return cli::fail("leat-gpu-check", stream.error());
  std::vector<std::vector<std::uint8_t>> pictures(kScenes);
  scene::Scene scene({.seed = 90210, .camera = 3, .width = kWidth, .height = kHeight});
  std::vector<std::uint8_t> rgb(scene.rgb_bytes());
  for (std::uint32_t i = 0; i < kScenes; ++i) {
    (void)scene.render(i * 17, rgb.data(), std::size_t{3} * kWidth);
    pictures[i].resize(scene.nv12_bytes());
    scene::to_nv12(rgb.data(), std::size_t{3} * kWidth, kWidth, kHeight, pictures[i].data());
  }
  const auto frames = static_cast<std::uint64_t>(arguments.integer("frames"));
  const auto kills = static_cast<std::uint64_t>(arguments.integer("kills")),
             faults = static_cast<std::uint64_t>(arguments.integer("faults"));
  Json got = Json::array();  // [scene]; null: none was completed
  for (std::uint32_t i = 0; i < kScenes; ++i) got.push_back(nullptr);
  std::vector<double> latency_us;
  std::uint64_t sent = 0, answered = 0, completed = 0, killed = 0, tried = 0, faulted = 0;
  const std::int64_t begin = leat_now_ns();
  while (answered < frames) {
    while (sent < frames && sent - answered < 6) {
      auto frame = stream->acquire();
      if (!frame) break;
      const std::uint8_t* from = pictures[sent % kScenes].data();
      for (std::uint32_t p = 0; p < frame->raw().plane_count; ++p)
        for (std::uint32_t y = 0; y < frame->raw().rows[p]; ++y, from += frame->raw().row_bytes[p])
          std::memcpy(frame->raw().planes[p] + std::size_t{y} * frame->raw().strides[p], from,
                      frame->raw().row_bytes[p]);
      leat_submit_options options{};
      options.cookie = sent % kScenes;
      options.capture_ns = leat_now_ns();
      if (frame->submit(options) != LEAT_ERROR_ok) throw std::runtime_error(leat_last_error());
      ++sent;
    }
    const auto answer = client->next_answer(kAnswerLimit);
    if (!answer) throw std::runtime_error(std::string("no answer: ") + leat_last_error() + "; " + daemon.last_line());
    ++answered;
    if (answer->outcome() == Outcome::completed || answer->outcome() == Outcome::late) {
      ++completed;
      got[answer->raw().cookie] = shortened(*answer->result());
      latency_us.push_back(static_cast<double>(answer->raw().answered_ns - answer->raw().capture_ns) / 1e3);
    }
    if (killed < kills && answered * (kills + 1) > frames * (killed + 1)) {
      const Json partitions = daemon.status().value("partitions", Json::array());
      const pid_t worker = partitions.empty() ? 0 : partitions[killed % partitions.size()].value("pid", 0);
      ++killed;
      if (worker > 0) (void)::kill(worker, SIGKILL);
    }
    if (tried < faults && answered * (faults + 1) > frames * (tried + 1)) {
      ++tried;
      faulted += daemon.fault() ? 1 : 0;
    }
  }
  const double seconds = static_cast<double>(leat_now_ns() - begin) / 1e9;
  answers.value("faulted", faulted);
  if (faulted != 0) answers.verdict("the_group_was_ended_and_started_together", daemon.lost_a_group());
  answers.value("frames", answered);
  answers.value("completed", completed);
  answers.value("killed", killed);
  answers.value("frames_per_second", static_cast<double>(answered) / seconds);
  answers.figure("latency", latency_us, "us");
  const Json status = daemon.status();
  answers.value("partitions", status.value("partitions", Json::array()));
  std::uint64_t copied = 0, in_place = 0;
  for (const Json& edge : status.value("edges", Json::array())) {
    copied += edge.value("bytes_copied", std::uint64_t{0});
    in_place += edge.value("bytes_in_place", std::uint64_t{0});
  }
  answers.value("bytes_copied", copied);
  answers.value("bytes_in_place", in_place);
  answers.verdict("every_frame_was_answered", answered == frames);
  if (kills == 0 && faulted == 0) answers.verdict("every_frame_was_completed", completed == frames);
  if (const std::string path = arguments.text("reference"); !path.empty()) {
    std::ifstream file(path);
    if (file) {
      const Json wanted = Json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
      std::string why;
      for (std::size_t i = 0; i < got.size() && why.empty(); ++i)
        if (!got[i].is_null()) why = differs(got[i], wanted[i]);
      answers.verdict("answers_are_the_references", why.empty(), why);
    } else {
      std::ofstream(path) << got.dump();
    }
  }
  answers.verdict("leatd_ended_well", daemon.stop() == 0);
  return answers.print();
}

}  // namespace

extern const cli::Subcommand kCheckServe;
const cli::Subcommand kCheckServe = {&kCommand, run};

}  // namespace leat::check
