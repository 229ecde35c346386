// Workers in a box: what an executor may do once it serves, what becomes of frames that end their worker, and how often
// a dying worker is started again.
#include <gtest/gtest.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/executors/misbehaving.h"
#include "tests/serving/daemon_fixture.h"
#include "tools/base/json/json.h"

namespace leat::test {
namespace {

using namespace std::chrono_literals;
using shm::StreamCounter;

constexpr const char* kRefused[] = {"open_socket", "write_file", "remove_file", "start_program",
                                    "trace",       "signal",     "io_uring"};

std::size_t times(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + word.size())) ++count;
  return count;
}

// A leatd whose one worker loads the misbehaving executor, and a client that asks it for things.
class Asker {
 public:
  explicit Asker(const std::string& workers, const std::string& more = "", std::uint32_t batch = 1,
                 std::vector<std::string> before = {})
      : leatd_("[workers]\n" + workers + more + R"(
[[partition]]
name = "p"
kind = "cpu"
cores = "0"
[[application]]
name = "ask"
slo_ms = 60000
  [[application.module]]
  name = "ask"
  executor = ")" + MISBEHAVING_EXECUTOR +
                   "\"\n  batch = " + std::to_string(batch) + "\n  options = { file = \"" + file() + "\" }\n",
               {}, std::move(before)) {}

  void open() {
    auto client = Client::connect(leatd_.socket(), "asker");
    ASSERT_TRUE(client.ok()) << client.error() << leatd_.log();
    client_.emplace(std::move(*client));
    leat_stream_options o;
    leat_stream_options_init(&o);
    o.application = "ask";
    o.format = LEAT_FORMAT_gray8;
    o.width = o.height = 16;
    o.depth = o.slots = 8;
    o.overload = LEAT_OVERLOAD_fifo;
    auto stream = client_->open_stream(o);
    ASSERT_TRUE(stream.ok()) << stream.error();
    stream_.emplace(std::move(*stream));
  }
  void submit(Ask ask) {
    auto frame = stream_->acquire();
    ASSERT_TRUE(frame.has_value()) << leat_last_error();
    std::memset(frame->raw().planes[0], 0, frame->raw().bytes);
    frame->raw().planes[0][0] = static_cast<std::uint8_t>(ask);
    leat_submit_options options{};
    options.cookie = static_cast<std::uint64_t>(ask);
    ASSERT_EQ(frame->submit(options), LEAT_ERROR_ok) << leat_last_error();
  }
  struct Told {
    Ask ask = Ask::nothing;
    Outcome outcome = Outcome::pending;
    Reason reason = Reason::none;
  };
  Told take() {
    const auto answer = client_->next_answer(60s);
    if (!answer) {
      ADD_FAILURE() << "no answer: " << leat_last_error() << leatd_.log();
      return {};
    }
    return {static_cast<Ask>(answer->raw().cookie), answer->outcome(), answer->reason()};
  }
  Told ask(Ask what) {
    submit(what);
    return take();
  }
  void expect_done(Ask what) {
    const Told told = ask(what);
    EXPECT_EQ(told.outcome, Outcome::completed)
        << static_cast<int>(what) << " " << name_of(told.reason) << leatd_.log();
  }
  void expect_refused(Ask what) {
    const Told told = ask(what);
    EXPECT_EQ(told.outcome, Outcome::failed) << static_cast<int>(what);
    EXPECT_EQ(told.reason, Reason::model_error) << static_cast<int>(what) << " " << name_of(told.reason);
  }
  Json partition() const { return Json::parse(leatd_.status_json()).at("partitions")[0]; }
  Leatd& leatd() { return leatd_; }
  std::string file() const { return folder_.path() + "/made"; }

 private:
  ScratchFolder folder_;
  Leatd leatd_;
  std::optional<Client> client_;
  std::optional<Stream> stream_;
};

TEST(Sandbox, WhatServingDoesNotNeedIsRefusedAndTheWorkerServesOn) {
  Asker a("sandbox = \"on\"");
  ASSERT_NO_FATAL_FAILURE(a.open());
  const auto workers = a.leatd().workers();
  std::ofstream(a.file()) << "here before";
  for (std::uint8_t what = 1; what <= std::size(kRefused); ++what) {
    SCOPED_TRACE(kRefused[what - 1]);
    a.expect_refused(static_cast<Ask>(what));
    a.expect_done(Ask::nothing);
  }
  a.expect_done(Ask::work);
  EXPECT_TRUE(std::filesystem::exists(a.file()));
  const std::string said = "misbehaving: 1 was refused: " + std::string(std::strerror(EPERM));
  EXPECT_TRUE(eventually([&] { return times(a.leatd().log(), said) == 1; })) << a.leatd().log();
  for (int i = 0; i < 20; ++i) a.expect_refused(Ask::open_socket);
  EXPECT_LT(times(a.leatd().log(), "misbehaving: "), 10U) << "a client's frames fill no log";
  EXPECT_EQ(a.leatd().workers(), workers) << "nobody died of it";
  EXPECT_EQ(a.partition().at("sandbox"), "on");
  EXPECT_EQ(times(a.leatd().log(), "sandbox 'on'"), 1U) << a.leatd().log();
  EXPECT_TRUE(balances(*a.leatd().total()));
  EXPECT_EQ(a.leatd().stop(), 0) << a.leatd().log();
}

TEST(Sandbox, DevicesMayBeOpenedWhereThatIsSaid) {
  Asker a("sandbox = \"devices\"");
  ASSERT_NO_FATAL_FAILURE(a.open());
  a.expect_done(Ask::write_file);
  for (const Ask what : {Ask::open_socket, Ask::remove_file, Ask::start_program, Ask::trace}) a.expect_refused(what);
  EXPECT_EQ(a.partition().at("sandbox"), "devices");
}

TEST(Sandbox, OffRefusesNothing) {
  Asker a("sandbox = \"off\"");
  ASSERT_NO_FATAL_FAILURE(a.open());
  for (const Ask what : {Ask::open_socket, Ask::write_file, Ask::remove_file, Ask::start_program, Ask::signal})
    a.expect_done(what);
  EXPECT_EQ(a.partition().at("sandbox"), "off");
}

// A kernel, or a container, without seccomp filters.
TEST(Sandbox, WithoutSeccompWorkersServeAndTheLogSaysItOnce) {
  Asker a("sandbox = \"on\"", "", 1, {"/proc/self/exe", "--without-seccomp"});
  ASSERT_NO_FATAL_FAILURE(a.open());
  a.expect_done(Ask::work);
  a.expect_done(Ask::open_socket);
  EXPECT_EQ(a.partition().at("sandbox"), "off");
  const pid_t before = a.leatd().workers()[0];
  (void)kill(before, SIGKILL);
  a.expect_done(Ask::nothing);  // by its successor
  EXPECT_EQ(times(a.leatd().log(), "workers are not sandboxed"), 1U) << a.leatd().log();
}

TEST(Workers, DenormalsAreZeroOnEveryThread) {
  Asker a("");
  ASSERT_NO_FATAL_FAILURE(a.open());
  a.expect_done(Ask::denormals);
}

TEST(Workers, HaveAUserOfTheirOwn) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can start workers as somebody else";
  Asker a("user = \"nobody\"");
  ASSERT_NO_FATAL_FAILURE(a.open());
  a.expect_done(Ask::work);
  std::ifstream status("/proc/" + std::to_string(a.leatd().workers()[0]) + "/status");
  std::string text{std::istreambuf_iterator<char>(status), {}};
  EXPECT_EQ(times(text, "Uid:\t0"), 0U) << text;
  EXPECT_EQ(times(text, "Gid:\t0"), 0U) << text;
  const pid_t worker = a.leatd().workers()[0];
  a.leatd().kill();
  EXPECT_TRUE(eventually([&] { return ::kill(worker, 0) != 0; })) << "it outlives leatd";
}

TEST(Workers, AFrameThatEndsTwoIsPoisonAndItsNeighboursAreServed) {
  for (const Ask poison : {Ask::crash, Ask::hang}) {
    SCOPED_TRACE(static_cast<int>(poison));
    // Seconds: on a busy host a sound batch may be kept from a core for long.
    const std::string limit = poison == Ask::hang ? "3000" : "60000";
    Asker a("max_backoff_ms = 10", "\n[limits]\nbatch_timeout_ms = " + limit + "\n", 4);
    ASSERT_NO_FATAL_FAILURE(a.open());
    a.submit(Ask::nothing);  // while it runs, the others come together
    for (int i = 0; i < 3; ++i) a.submit(Ask::nothing);
    a.submit(poison);
    for (int i = 0; i < 3; ++i) a.submit(Ask::nothing);
    for (int i = 0; i < 8; ++i) {
      const auto told = a.take();
      if (told.ask == poison) {
        EXPECT_EQ(told.outcome, Outcome::failed);
        EXPECT_EQ(told.reason, Reason::poison) << name_of(told.reason);
      } else {
        EXPECT_EQ(told.outcome, Outcome::completed) << name_of(told.reason);
      }
    }
    a.expect_done(Ask::work);
    EXPECT_EQ(a.partition().at("restarts"), 2);
    const auto end = a.partition().at("last_end").get<std::string>();
    EXPECT_NE(end.find(poison == Ask::crash ? "signal 6" : "signal 9"), std::string::npos) << end;
    EXPECT_TRUE(balances(*a.leatd().total()));
    EXPECT_EQ(a.leatd().stop(), 0) << a.leatd().log();
  }
}

TEST(Workers, OneThatDiesAgainAndAgainIsStartedMoreAndMoreRarely) {
  Asker a("max_backoff_ms = 200");
  ASSERT_NO_FATAL_FAILURE(a.open());
  const std::int64_t pauses_ms[] = {0, 100, 200, 200};
  for (int i = 0; i < 4; ++i) {
    const auto from = std::chrono::steady_clock::now();
    (void)kill(a.leatd().workers()[0], SIGKILL);
    EXPECT_TRUE(
        eventually([&] { return a.partition().at("restarts") == i + 1 && a.partition().at("state") == "up"; }, 60s));
    EXPECT_GE(std::chrono::steady_clock::now() - from, std::chrono::milliseconds(pauses_ms[i]));
  }
  const std::string log = a.leatd().log();  // of many deaths it tells a few
  EXPECT_EQ(times(log, "starting it again\n"), 1U) << log;
  EXPECT_EQ(times(log, "starting it again in 100 ms"), 1U) << log;
  EXPECT_EQ(a.partition().at("failures"), 4);
  EXPECT_EQ(a.partition().at("backoff_ms"), 0) << "it is up";
  a.expect_done(Ask::nothing);
}

// ONNX Runtime with threads of its own lives in the box as outside of it.
TEST(Sandbox, OnnxRuntimeServes) {
  const std::string models = LEAT_MODELS;
  for (const char* sandbox : {"on", "off"}) {
    Leatd leatd(std::string("[workers]\nsandbox = \"") + sandbox + R"("
[[partition]]
name = "p"
kind = "cpu"
cores = "0-1"
[[application]]
name = "detect"
slo_ms = 60000
  [[application.module]]
  name = "detect"
  preprocess = "letterbox mean=0.5 std=0.5"
  postprocess = "boxes stride=8 score=0.2 iou=0.6"
  labels = ["object"]
  batch = 4
  model = ")" + models +
                "/detect.onnx\"\n");
    auto client = Client::connect(leatd.socket(), "onnx");
    ASSERT_TRUE(client.ok()) << client.error() << leatd.log();
    leat_stream_options o;
    leat_stream_options_init(&o);
    o.application = "detect";
    o.format = LEAT_FORMAT_rgb24;
    o.width = 320;
    o.height = 240;
    o.depth = o.slots = 4;
    o.overload = LEAT_OVERLOAD_fifo;
    auto stream = client->open_stream(o);
    ASSERT_TRUE(stream.ok()) << stream.error();
    EXPECT_GT(footprint(leatd.workers()[0]).threads, 1) << "its threads were there before the filter";
    for (int round = 0; round < 8; ++round) {
      for (int i = 0; i < 4; ++i) {
        auto frame = stream->acquire();
        (void)paint(frame->raw(), static_cast<std::uint64_t>(round * 4 + i));
        ASSERT_EQ(frame->submit(), LEAT_ERROR_ok);
      }
      for (int i = 0; i < 4; ++i) {
        const auto answer = client->next_answer(60s);
        ASSERT_TRUE(answer.has_value()) << leatd.log();
        EXPECT_EQ(answer->outcome(), Outcome::completed) << name_of(answer->reason());
      }
    }
    EXPECT_EQ(Json::parse(leatd.status_json()).at("partitions")[0].at("sandbox"), sandbox);
    EXPECT_EQ(leatd.stop(), 0) << leatd.log();
  }
}

// Runs the rest of the words on a kernel that seems to have no seccomp.
int without_seccomp(char** words) {
  const scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
  const scmp_arg_cmp setting{0, SCMP_CMP_EQ, PR_SET_SECCOMP, 0};
  if (seccomp_rule_add(filter, SCMP_ACT_ERRNO(EINVAL), SCMP_SYS(seccomp), 0) != 0 ||
      seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EINVAL), SCMP_SYS(prctl), 1, &setting) != 0 ||
      seccomp_load(filter) != 0)
    return 1;
  execv(words[0], words);
  return 1;
}

}  // namespace
}  // namespace leat::test

int main(int argc, char** argv) {
  if (argc > 2 && std::string_view(argv[1]) == "--without-seccomp") return leat::test::without_seccomp(argv + 2);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
