#include "tests/serving/daemon_fixture.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>

#include "engine/exec/checksum.h"
#include "engine/papers/presets.h"
#include "engine/record/replay.h"
#include "shm/src/protocol/control_protocol.h"
#include "tools/base/json/json.h"

extern char** environ;

namespace leat::test {
namespace fs = std::filesystem;
namespace {

constexpr int kReadyFd = 9;
constexpr int kStartLimitMs = 180'000;  // a limit, not a bar: the machine may be busy

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Starts a program; `out_fd` becomes its stderr and stdout, `ready_fd` (>= 0) its descriptor kReadyFd.
pid_t spawn(const std::vector<std::string>& words, int out_fd, int ready_fd) {
  std::vector<char*> argv;
  for (const auto& w : words) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out_fd, 1);
  posix_spawn_file_actions_adddup2(&actions, out_fd, 2);
  if (ready_fd >= 0) posix_spawn_file_actions_adddup2(&actions, ready_fd, kReadyFd);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return error == 0 ? pid : 0;
}

int status_of(int raw) { return WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw); }

// With LEAT_REPLAY in the environment every leatd records, and is replayed when it has ended, however it did: every
// action of its scheduler must be the same.
std::string record_in(const std::string& folder) { return folder + "/replayed.record"; }

std::string recorded(const std::string& config, const std::string& folder) {
  if (std::getenv("LEAT_REPLAY") == nullptr || config.find("recorder") != std::string::npos) return config;
  const std::string lines = "recorder = \"" + record_in(folder) + "\"\nrecorder_mib = 64\n";
  const std::string table = "[daemon]\n";
  const std::size_t at = config.find(table);
  if (at == std::string::npos) return config + "\n" + table + lines;
  return config.substr(0, at + table.size()) + lines + config.substr(at + table.size());
}

// What a new observer is told; nothing: it is not let in, or there is no leatd.
template <class Answer, class Ask>
std::optional<Answer> observed(const std::string& socket, const Ask& ask) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  leat_error error = LEAT_ERROR_timed_out;
  while (error == LEAT_ERROR_timed_out && std::chrono::steady_clock::now() < until) {
    auto observer = shm::Observer::connect(socket, &error);
    if (!observer.ok()) continue;
    if (auto answer = ask(*observer, &error); answer.ok()) return std::move(*answer);
  }
  return std::nullopt;
}

void replay(const std::string& folder) {
  const std::string file = record_in(folder);
  if (!fs::exists(file)) return;
  auto record = record::Record::read_file(file);
  ASSERT_TRUE(record.ok()) << record.error();
  const auto again = record::replay(*record, papers::presets());
  ASSERT_TRUE(again.ok()) << again.error();
  EXPECT_EQ(again->difference, "");
  EXPECT_EQ(again->cut, "");
  std::printf("replayed: %llu of %llu actions the same, %llu events, %llu plans, %llu losses, %llu frames\n",
              static_cast<unsigned long long>(again->same), static_cast<unsigned long long>(again->actions),
              static_cast<unsigned long long>(again->events), static_cast<unsigned long long>(again->plans),
              static_cast<unsigned long long>(again->losses), static_cast<unsigned long long>(again->total.submitted));
}

}  // namespace

ScratchFolder::ScratchFolder() {
  std::string name = (fs::temp_directory_path() / "leat-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) std::abort();
  path_ = name;
}
ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}
std::string ScratchFolder::write(const std::string& name, const std::string& text) const {
  const std::string path = path_ + "/" + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

Exit run_to_end(const std::vector<std::string>& words, std::chrono::milliseconds limit) {
  const ScratchFolder folder;
  const std::string log = folder.path() + "/out";
  const int fd = open(log.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  const pid_t pid = spawn(words, fd, -1);
  close(fd);
  Exit out;
  if (pid == 0) return out;
  int raw = 0;
  if (!eventually([&] { return waitpid(pid, &raw, WNOHANG) == pid; }, limit)) {
    (void)::kill(pid, SIGKILL);
    (void)waitpid(pid, &raw, 0);
  }
  out.status = status_of(raw);
  out.err = read_file(log);
  return out;
}

Leatd::Leatd(const std::string& config, std::vector<std::string> options, std::vector<std::string> prefix, uid_t uid)
    : options_(std::move(options)), prefix_(std::move(prefix)) {
  EXPECT_EQ(chown(folder_.path().c_str(), uid, static_cast<gid_t>(-1)), 0);
  EXPECT_EQ(chmod(folder_.path().c_str(), 0755), 0);  // other users reach the socket; its own mode decides
  socket_ = folder_.path() + "/leat.sock";
  log_ = folder_.path() + "/log";
  config_ = folder_.write("leatd.toml", recorded(config, folder_.path()));
  start();
}

void Leatd::rewrite(const std::string& config) { (void)folder_.write("leatd.toml", recorded(config, folder_.path())); }

Leatd::~Leatd() {
  if (alive()) kill();
}

void Leatd::start() {
  int ready[2];
  ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
  const int out = open(log_.c_str(), O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600);
  std::vector<std::string> words = prefix_;
  for (const std::string& word :
       {std::string(LEATD_BINARY), std::string("--worker"), std::string(LEAT_WORKER_BINARY), std::string("--ready-fd"),
        std::to_string(kReadyFd), std::string("--socket"), socket_})
    words.push_back(word);
  words.insert(words.end(), options_.begin(), options_.end());
  words.push_back(config_);
  pid_ = spawn(words, out, ready[1]);
  close(out);
  close(ready[1]);
  pollfd wait{ready[0], POLLIN, 0};
  char line[8] = {};
  const bool serves = poll(&wait, 1, kStartLimitMs) == 1 && read(ready[0], line, sizeof(line)) > 0;
  close(ready[0]);
  ASSERT_TRUE(serves) << "leatd does not serve:\n" << log();
}

bool Leatd::alive() const { return pid_ != 0 && ::kill(pid_, 0) == 0; }

int Leatd::stop() {
  if (pid_ == 0) return -1;
  (void)::kill(pid_, SIGTERM);
  int raw = 0;
  if (!eventually([&] { return waitpid(pid_, &raw, WNOHANG) == pid_; })) {
    kill();
    return -1;
  }
  pid_ = 0;
  replay(folder_.path());
  return status_of(raw);
}

void Leatd::kill() {
  if (pid_ == 0) return;
  (void)::kill(pid_, SIGKILL);
  (void)waitpid(pid_, nullptr, 0);
  pid_ = 0;
  replay(folder_.path());
}

std::string Leatd::log() const { return read_file(log_); }

std::string Leatd::status_json() const {
  return observed<std::string>(socket_, [](shm::Observer& o, leat_error* error) { return o.status(error); })
      .value_or("");
}

std::vector<pid_t> Leatd::workers() const {
  std::vector<pid_t> out;
  const std::string text = status_json();
  if (text.empty()) return out;
  const auto status = Json::parse(text);
  for (const auto& p : status.at("partitions")) out.push_back(p.at("state") == "up" ? p.at("pid").get<pid_t>() : 0);
  return out;
}

std::optional<shm::CountersReader> Leatd::counters() const {
  auto counters =
      observed<shm::Observer::Counters>(socket_, [](shm::Observer& o, leat_error* error) { return o.counters(error); });
  if (!counters) return std::nullopt;
  auto reader = shm::CountersReader::map(std::move(counters->fd), counters->bytes);
  if (!reader.ok()) return std::nullopt;
  return std::move(*reader);
}

std::optional<shm::RecordSnapshot> Leatd::record(shm::RecordKind kind, std::uint32_t index) const {
  const auto reader = counters();
  return reader ? reader->snapshot(kind, index) : std::nullopt;
}

std::vector<shm::Event> Leatd::events(shm::EventKind kind) const {
  std::vector<shm::Event> out(shm::kEvents);
  std::uint64_t next = 0;
  const auto reader = counters();
  out.resize(reader ? reader->events(0, out, &next) : 0);
  std::erase_if(out, [&](const shm::Event& e) { return e.kind != kind; });
  return out;
}

std::uint64_t value(const shm::RecordSnapshot& record, shm::StreamCounter counter) {
  return record.value(counter).value_or(0);
}

bool balances(const shm::RecordSnapshot& r) {
  using C = shm::StreamCounter;
  return value(r, C::submitted) == value(r, C::completed) + value(r, C::late) + value(r, C::dropped) +
                                       value(r, C::failed) + value(r, C::rejected) + value(r, C::in_flight);
}

std::uint64_t paint(const leat_frame& frame, std::uint64_t seed) {
  std::uint64_t word = seed * 0x9e37'79b9'7f4a'7c15ull + 1;
  auto* bytes = frame.planes[0];
  for (std::uint64_t at = 0; at + 8 <= frame.bytes; at += 8) {
    word ^= word << 13;
    word ^= word >> 7;
    word ^= word << 17;
    std::memcpy(bytes + at, &word, 8);
  }
  return exec::checksum(bytes, frame.bytes);
}

Footprint footprint(pid_t pid) {
  const std::string base = "/proc/" + std::to_string(pid);
  Footprint out;
  std::error_code error;
  const auto count = [&](const std::string& folder) {
    const fs::directory_iterator list(folder, error);
    return error ? -1 : static_cast<int>(std::distance(fs::begin(list), fs::end(list)));
  };
  out.descriptors = count(base + "/fd");
  out.threads = count(base + "/task");
  std::ifstream maps(base + "/maps");
  if (maps) out.mappings = 0;
  for (std::string line; std::getline(maps, line);) out.mappings += line.find("memfd:leat") != std::string::npos;
  return out;
}

}  // namespace leat::test
