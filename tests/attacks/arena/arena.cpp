#include "tests/attacks/arena/arena.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <thread>

namespace leat::test {
namespace {

// Before anything is started: the processes of the arena come before the machine's other work, if root may say so, by
// the same measure all of them.
void we_come_first() {
  constexpr int kNice = -15;
  (void)setsid();  // a scheduling group of its own, where the kernel makes one a session
  (void)setpriority(PRIO_PROCESS, 0, kNice);
  std::ofstream("/proc/self/autogroup") << kNice;
}

using shm::DaemonCounter;
using shm::RecordKind;

constexpr int kRounds = kSanitized ? 2 : 3;
constexpr int kAttempts = 12;  // one undisturbed one is enough, and seldom on a shared machine
constexpr std::uint32_t kClients = 16;
constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kPhaseNs = 200 * kMs;
constexpr std::int64_t kPeriodNs = 2 * kMs;  // of the honest client's frames
constexpr std::int64_t kBeforeTheEndNs = 100 * kMs, kEndNs = 2'000 * kMs;
constexpr std::int64_t kPatienceNs = 60'000 * kMs;  // for an attack to get to what it is for
constexpr std::int64_t kAskNs = 20 * kMs;           // between two looks at the status
constexpr std::int64_t kPieceNs = 50'000;  // of the control's arithmetic, about; four times that between two pieces
constexpr std::int64_t kLongNs = kMs;      // of CPU time: a long turn, a long piece

void sleep_until(std::int64_t at_ns) {
  const timespec t{at_ns / 1'000'000'000, at_ns % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR) {
  }
}

double p99_ms(std::vector<std::int64_t> ns) {
  if (ns.empty()) return 0;
  const auto at = ns.begin() + static_cast<std::ptrdiff_t>((ns.size() - 1) * 99 / 100);
  std::nth_element(ns.begin(), at, ns.end());
  return static_cast<double>(*at) / 1e6;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::int64_t phase_ns() {
  const char* seconds = std::getenv("LEAT_ATTACK_SECONDS");
  return seconds == nullptr ? kPhaseNs
                            : static_cast<std::int64_t>(std::clamp(std::atof(seconds), 0.1, 3600.0) * 1e9 / kRounds);
}

std::string config_of(const std::string& limits, const std::string& more, const std::string& daemon) {
  return "[daemon]\nsocket_mode = \"0666\"\n" + daemon + R"(
[limits]
streams = 64
)" + (limits.starts_with("clients") ? "" : "clients = " + std::to_string(kClients) + "\n") +
         limits +
         R"(
[[partition]]
name = "p"
kind = "emulated"
count = 2
[[application]]
name = "echo"
slo_ms = 2000
  [[application.module]]
  name = "sum"
  latency_ms = [1.0, 1.1, 1.2, 1.3]
[[application]]
name = "bulk"
slo_ms = 2000
  [[application.module]]
  name = "sum"
  batch = 32
  latency_ms = [0.05, 0.06, 0.07, 0.08, 0.09, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1,
                0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]
)" + more;
}

std::vector<std::string> prefix_of(Setting setting, Kernel kernel) {
  std::vector<std::string> words;
  if (kernel == Kernel::older) words = {"/usr/bin/env", "LEAT_OLD_KERNEL=1"};
  if (setting != Setting::unprivileged) return words;
  const std::string user = std::to_string(kOtherUser);
  for (const std::string& word :
       {std::string("/usr/bin/setpriv"), std::string("--reuid"), user, std::string("--regid"), user,
        std::string("--clear-groups"), std::string("/usr/bin/prlimit"), std::string("--nofile=1024:1024")})
    words.push_back(word);
  return words;
}

}  // namespace

std::vector<Setting> settings() {
  if (kSanitized || getuid() != 0) return {Setting::same_user};
  return {Setting::same_user, Setting::other_user, Setting::unprivileged};
}

std::string name_of(const testing::TestParamInfo<Setting>& setting) {
  static constexpr const char* kNames[] = {"TheSameUser", "AnotherUser", "AgainstAnUnprivilegedLeatd"};
  return kNames[static_cast<std::size_t>(setting.param)];
}

std::string name_of_both(const testing::TestParamInfo<std::tuple<Setting, Kernel>>& both) {
  const auto [setting, kernel] = both.param;
  return name_of(testing::TestParamInfo<Setting>(setting, both.index)) +
         (kernel == Kernel::older ? "OnAnOlderKernel" : "");
}

// What a process has used of the processors, its threads and ended children included.
std::int64_t used_ns() {
  std::int64_t sum = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage u{};
    getrusage(who, &u);
    sum += (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1'000 * kMs + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1'000;
  }
  return sum;
}

// `cores` of the processors' time until then, in milliseconds of work and rest, by as few threads as can.
void burn(double cores, std::int64_t until_ns) {
  const int threads = std::max(1, static_cast<int>(std::ceil(cores)));
  const auto busy_ns = static_cast<std::int64_t>(cores / threads * kMs);
  const auto run = [&] {
    for (std::int64_t now = leat_now_ns(); now < until_ns; now = leat_now_ns()) {
      volatile std::uint64_t x = 1;
      while (leat_now_ns() < now + busy_ns) x = x * 6364136223846793005u + 1;
      if (busy_ns < kMs) sleep_until(now + kMs);
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(run);
  run();
  for (std::thread& t : others) t.join();
}

// The process that attacks. It is born before any thread of this one and waits to be told.
struct Arena::Assailant {
  struct Order {
    std::int64_t until_ns = 0;
    double burn_cores = 0;  // above 0: it attacks nobody and only burns as much
  };
  struct Word {
    std::array<char, 256> text{};
    double cores = 0;  // that it used meanwhile
  };
  Assailant(const std::string& socket, const Attack& attack, std::uint32_t uid) {
    int to[2], from[2];
    if (pipe(to) != 0 || pipe(from) != 0) return;
    pid = fork();
    if (pid == 0) {
      close(to[1]);
      close(from[0]);
      if (uid != getuid() && setresuid(uid, uid, uid) != 0) _exit(3);
      Order order;
      while (read(to[0], &order, sizeof order) == sizeof order) {
        Word word;
        const std::int64_t began = leat_now_ns(), used = used_ns();
        if (order.burn_cores > 0) {
          burn(order.burn_cores, order.until_ns);
        } else {
          const std::string said = attack(socket, order.until_ns);
          std::memcpy(word.text.data(), said.data(), std::min(said.size(), word.text.size() - 1));
        }
        word.cores = static_cast<double>(used_ns() - used) / static_cast<double>(leat_now_ns() - began);
        if (write(from[1], &word, sizeof word) != sizeof word) break;
      }
      _exit(0);
    }
    close(to[0]);
    close(from[1]);
    orders = shm::Fd(to[1]);
    words = shm::Fd(from[0]);
  }
  ~Assailant() { end(); }
  void end() {
    if (pid <= 0) return;
    (void)::kill(pid, SIGKILL);
    (void)waitpid(pid, nullptr, 0);
    pid = 0;
  }
  void round(const Order& order) {
    if (write(orders.get(), &order, sizeof order) != sizeof order) ADD_FAILURE() << "the assailant is gone";
  }
  Word word() {
    pollfd wait{words.get(), POLLIN, 0};
    Word word;
    const auto failed = [&](const char* why) {
      std::strcpy(word.text.data(), why);
      return word;
    };
    if (poll(&wait, 1, static_cast<int>((2 * kPatienceNs + phase_ns()) / kMs)) != 1)
      return failed("the assailant does not come back");
    return read(words.get(), &word, sizeof word) == sizeof word ? word : failed("the assailant has died");
  }
  pid_t pid = -1;
  shm::Fd orders, words;
};

// A client that does as it should, a frame every two milliseconds, and notes how long each took.
struct Arena::Honest {
  enum Phase : int { none, alone, burning, beside };

  explicit Honest(const std::string& socket) : socket_(socket), thread_([this] { live(); }) {}
  ~Honest() { end(); }
  void end() {
    ending = true;
    if (thread_.joinable()) thread_.join();
  }
  std::vector<std::int64_t> taken(Phase p) {
    const std::lock_guard lock(mutex_);
    return std::exchange(latencies_[p], {});
  }
  std::atomic<int> phase{none};
  std::atomic<bool> ending{false};
  std::atomic<std::uint64_t> sent{0}, answered{0}, wrong{0};
  std::string complaint;

 private:
  void live() {
    auto client = Client::connect(socket_, "honest");
    if (!client.ok()) return void(complaint = client.error());
    StreamOptions o;
    o.application = "echo";
    o.format = LEAT_FORMAT_nv12;
    o.width = 96;
    o.height = 32;
    o.depth = 32;
    o.slots = 48;
    o.overload = LEAT_OVERLOAD_fifo;
    auto stream = client->open_stream(o);
    if (!stream.ok()) return void(complaint = stream.error());
    std::int64_t next = leat_now_ns();
    while (!ending && client->connected()) {
      if (leat_now_ns() >= next) {
        next = std::max(next + kPeriodNs, leat_now_ns() - 10 * kPeriodNs);
        if (auto frame = stream->acquire()) {
          const std::uint64_t seed = sent.load() + 1;
          leat_submit_options s{};
          s.cookie = seed;
          sums_[seed] = {paint(frame->raw(), seed), phase.load(), leat_now_ns()};
          if (frame->submit(s) == LEAT_ERROR_ok) ++sent;
        }
      }
      take(*client, std::chrono::nanoseconds(std::max<std::int64_t>(next - leat_now_ns(), 0)));
    }
    const std::int64_t until = leat_now_ns() + kPatienceNs;
    while (answered < sent && client->connected() && leat_now_ns() < until)
      take(*client, std::chrono::milliseconds(100));
    if (!client->connected()) complaint = "its connection was ended";
  }
  void take(Client& client, std::chrono::nanoseconds limit) {
    const auto answer = client.next_answer(limit);
    if (!answer) return;
    const std::int64_t now = leat_now_ns();
    const auto it = sums_.find(answer->raw().cookie);
    if (it == sums_.end()) return void(++wrong);
    ++answered;
    if (answer->result() != nullptr && answer->result()->checksum != it->second.sum) ++wrong;
    {
      const std::lock_guard lock(mutex_);
      latencies_[it->second.phase].push_back(now - it->second.at_ns);
    }
    sums_.erase(it);
  }

  struct Sent {
    std::uint64_t sum;
    int phase;
    std::int64_t at_ns;
  };
  std::string socket_;
  std::mutex mutex_;
  std::array<std::vector<std::int64_t>, 4> latencies_;
  std::map<std::uint64_t, Sent> sums_;
  std::thread thread_;
};

// Asks for leatd's status again and again.
struct Arena::Watcher {
  explicit Watcher(const Leatd& leatd)
      : thread_([this, &leatd] {
          while (!ending) {
            const std::int64_t from = leat_now_ns();
            const bool answered = !leatd.status_json().empty();
            const std::int64_t took = leat_now_ns() - from;
            ++(answered ? answers : failures);
            if (took > slowest) slowest = took;
            sleep_until(leat_now_ns() + kAskNs);
          }
        }) {}
  ~Watcher() { end(); }
  void end() {
    ending = true;
    if (thread_.joinable()) thread_.join();
  }
  std::atomic<std::int64_t> slowest{0};
  std::atomic<std::uint64_t> answers{0}, failures{0};
  std::atomic<bool> ending{false};

 private:
  std::thread thread_;
};

// Pieces of plain arithmetic, without a system call or a fault in them, whose CPU time is taken as leatd takes that of
// a turn. What makes them long are interrupts and pauses of the machine below.
struct Arena::Control {
  Control() : thread_([this] { live(); }) {}
  ~Control() {
    ending_ = true;
    thread_.join();
  }
  std::atomic<std::uint64_t> long_pieces{0};

 private:
  static std::int64_t own_ns() {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1'000 * kMs + t.tv_nsec;
  }
  // CPU time of so many steps.
  std::int64_t piece(std::uint64_t steps) {
    const std::int64_t from = leat_now_ns(), own_from = own_ns();
    std::uint64_t x = state_;
    for (std::uint64_t i = 0; i < steps; ++i) x = x * 6364136223846793005u + 1442695040888963407u;
    state_ = x;
    const std::int64_t own = own_ns() - own_from;
    return std::min(own, leat_now_ns() - from);
  }
  void live() {
    std::uint64_t steps = 1024;
    while (piece(steps) < kPieceNs / 2) steps *= 2;
    while (!ending_) {
      if (piece(steps) > kLongNs) ++long_pieces;
      sleep_until(leat_now_ns() + 4 * kPieceNs);
    }
  }
  volatile std::uint64_t state_ = 1;
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

Arena::Arena(Setting setting, Attack attack, const std::string& limits, const std::string& more,
             const std::string& daemon, Kernel kernel)
    : setting_(setting),
      attack_(std::move(attack)),
      leatd_((we_come_first(), std::make_unique<Leatd>(config_of(limits, more, daemon), std::vector<std::string>{},
                                                       prefix_of(setting, kernel),
                                                       setting == Setting::unprivileged ? kOtherUser : getuid()))),
      causes_(shm::kMaxCauses) {}

Arena::~Arena() = default;

std::uint32_t Arena::assailant_uid() const { return setting_ == Setting::other_user ? kOtherUser : getuid(); }

std::uint64_t Arena::refusals(shm::Refusal why) const {
  return user_ ? user_->causes[static_cast<std::size_t>(why)] : 0;
}
std::uint64_t Arena::violations_of_user() const {
  return user_ ? user_->value(shm::UserCounter::violated).value_or(0) : 0;
}
std::string Arena::limits_of_assailant(Setting setting, const std::string& lines) {
  const std::uint32_t uid = setting == Setting::other_user ? kOtherUser : getuid();
  return "[limits.users." + std::to_string(uid) + "]\n" + lines;
}

std::uint64_t Arena::counted(DaemonCounter counter) const { return daemon_ ? daemon_->value(counter).value_or(0) : 0; }

double Arena::Figures::allowed_ms() { return std::getenv("LEAT_ATTACK_BAR") != nullptr ? 5 : 50; }

void Arena::Figures::keep_best_of(const Figures& other) {
  if (other.excess_ms() < excess_ms())
    alone_ms = other.alone_ms, burning_ms = other.burning_ms, beside_ms = other.beside_ms;
  status_ms = std::min(status_ms, other.status_ms);
  if (other.long_turns() < long_turns()) own_stalls = other.own_stalls, control_stalls = other.control_stalls;
}

Arena::Figures Arena::measure(Honest& honest, Watcher& watcher, const Control& control, Assailant& assailant,
                              bool burn) {
  const auto stalls = [&] {
    return leatd_->record(RecordKind::daemon, 0)->value(DaemonCounter::own_stalls).value_or(0);
  };
  const std::uint64_t stalls_before = stalls(), control_before = control.long_pieces;
  watcher.slowest = 0;
  std::vector<double> alone, burning, beside;  // of each round
  for (int round = 0; round < kRounds; ++round) {
    honest.phase = Honest::alone;
    sleep_until(leat_now_ns() + kPhaseNs);
    honest.phase = Honest::beside;
    assailant.round({.until_ns = leat_now_ns() + phase_ns()});
    const Assailant::Word word = assailant.word();
    EXPECT_STREQ(word.text.data(), "") << "the attack did not go as it should";
    honest.phase = Honest::none;
    sleep_until(leat_now_ns() + 20 * kMs);
    if (burn && word.cores > 0.01) {
      honest.phase = Honest::burning;
      assailant.round({.until_ns = leat_now_ns() + kPhaseNs, .burn_cores = word.cores});
      (void)assailant.word();
      honest.phase = Honest::none;
      sleep_until(leat_now_ns() + 20 * kMs);
      burning.push_back(p99_ms(honest.taken(Honest::burning)));
    }
    alone.push_back(p99_ms(honest.taken(Honest::alone)));
    beside.push_back(p99_ms(honest.taken(Honest::beside)));
  }
  Figures f;
  f.alone_ms = median(alone);
  f.burning_ms = burning.empty() ? 0 : median(burning);
  f.beside_ms = median(beside);
  f.status_ms = static_cast<double>(watcher.slowest) / 1e6;
  f.own_stalls = stalls() - stalls_before;
  f.control_stalls = control.long_pieces - control_before;
  std::printf(
      "p99 alone %.2f ms, beside as much plain work %.2f ms, beside %.2f ms; slowest status %.1f ms; long turns %llu, "
      "long pieces of plain arithmetic %llu\n",
      f.alone_ms, f.burning_ms, f.beside_ms, f.status_ms, static_cast<unsigned long long>(f.own_stalls),
      static_cast<unsigned long long>(f.control_stalls));
  return f;
}

// What leatd counted so far.
void Arena::look() {
  daemon_ = leatd_->record(RecordKind::daemon, 0);
  user_.reset();
  for (std::uint32_t i = 0; i < shm::kMaxRecords[static_cast<std::size_t>(RecordKind::user)] && !user_; ++i)
    if (user_ = leatd_->record(RecordKind::user, i);
        user_ && user_->value(shm::UserCounter::uid) != std::uint64_t{assailant_uid()})
      user_.reset();
  for (std::size_t i = 0; i < causes_.size(); ++i)
    causes_[i] = !daemon_ || daemon_->causes[i] == shm::kUnknown ? 0 : daemon_->causes[i];
  late_cancels_ = 0;
  for (std::uint32_t i = 0; i < kClients; ++i)
    if (const auto client = leatd_->record(RecordKind::client, i);
        client && client->label == "attacker" && client->value(shm::ClientCounter::uid) == assailant_uid())
      late_cancels_ += client->value(shm::ClientCounter::late_cancels).value_or(0);
}

void Arena::fight(const Purpose& reached) {
  ASSERT_TRUE(leatd_->alive()) << leatd_->log();
  const auto workers = leatd_->workers();
  const Footprint before = footprint(leatd_->pid());
  Assailant assailant(leatd_->socket(), attack_, assailant_uid());
  ASSERT_GT(assailant.pid, 0);
  {
    Honest honest(leatd_->socket());
    Watcher watcher(*leatd_);
    const Control control;
    ASSERT_TRUE(eventually([&] { return honest.answered > 10; })) << honest.complaint << leatd_->log();
    Figures f = measure(honest, watcher, control, assailant, std::getenv("LEAT_ATTACK_BURN") != nullptr);
    for (int attempt = 1; attempt < kAttempts && !f.good(); ++attempt)
      f.keep_best_of(measure(honest, watcher, control, assailant, true));
    const std::int64_t until = leat_now_ns() + kPatienceNs;
    for (look(); reached && !reached(*this); look()) {
      ASSERT_LT(leat_now_ns(), until) << "the attack did not get to what it is for";
      assailant.round({.until_ns = leat_now_ns() + phase_ns()});
      EXPECT_STREQ(assailant.word().text.data(), "") << "the attack did not go as it should";
    }
    if (!kSanitized) {
      EXPECT_LE(f.excess_ms(), 0) << "the honest client's 99th percentile is " << f.beside_ms << " ms, " << f.alone_ms
                                  << " ms alone and " << f.burning_ms << " ms beside as much plain work";
      EXPECT_LE(f.own_stalls, f.control_stalls)
          << "turns of the scheduler thread over 1 ms of its own CPU time, more than plain arithmetic beside it had";
    }
    EXPECT_LE(f.status_ms, 1000) << "the status answers too slowly";
    EXPECT_EQ(watcher.failures, 0U) << "the status did not answer";
    honest.end();
    watcher.end();
    EXPECT_EQ(honest.complaint, "");
    EXPECT_EQ(honest.answered, honest.sent) << "frames of the honest client were not answered";
    EXPECT_EQ(honest.wrong, 0U);
  }
  assailant.end();
  ASSERT_TRUE(leatd_->alive()) << leatd_->log();
  EXPECT_EQ(leatd_->workers(), workers) << "a worker died";
  expect_nothing_left(before);
  look();
  const auto total = leatd_->total();
  EXPECT_TRUE(balances(*total));
  EXPECT_EQ(value(*total, shm::StreamCounter::in_flight), 0U);
  expect_the_end();
}

// Told to end in the midst of the attack.
void Arena::expect_the_end() {
  constexpr std::int64_t kLimitNs = kSanitized ? 5 * kEndNs : kEndNs;
  std::int64_t took = 0;
  bool in_vain = false;
  for (int attempt = 0; attempt < kAttempts && (attempt == 0 || took > kLimitNs || in_vain); ++attempt) {
    if (attempt > 0) leatd_->start();
    const std::size_t logged = leatd_->log().size();
    Assailant assailant(leatd_->socket(), attack_, assailant_uid());
    assailant.round({.until_ns = leat_now_ns() + 10'000 * kMs});
    sleep_until(leat_now_ns() + kBeforeTheEndNs);
    const std::int64_t from = leat_now_ns();
    EXPECT_EQ(leatd_->stop(), 0) << leatd_->log();
    took = leat_now_ns() - from;
    log_ = leatd_->log();
    in_vain = log_.find("unanswered", logged) != std::string::npos;
  }
  EXPECT_LE(took, kLimitNs) << "nanoseconds until leatd ended";
  EXPECT_FALSE(in_vain) << "the end waited in vain:\n" << log_;
}

void Arena::expect_nothing_left(const Footprint& before) {
  const auto gauge = [&](DaemonCounter c) { return leatd_->record(RecordKind::daemon, 0)->value(c).value_or(1); };
  for (const auto c : {DaemonCounter::clients, DaemonCounter::streams, DaemonCounter::memory_bytes})
    EXPECT_TRUE(eventually([&] { return gauge(c) == 0; }))
        << shm::counter_names(RecordKind::daemon)[static_cast<std::size_t>(c)].name << " left: " << gauge(c);
  EXPECT_TRUE(eventually([&] { return gauge(DaemonCounter::sessions) == 1; }))
      << "besides who asks, connections are left";
  Footprint after;
  EXPECT_TRUE(eventually([&] {
    after = footprint(leatd_->pid());
    return after.descriptors <= before.descriptors && after.mappings <= before.mappings;
  })) << "descriptors "
      << before.descriptors << " -> " << after.descriptors << ", mappings " << before.mappings << " -> "
      << after.mappings;
}

}  // namespace leat::test
