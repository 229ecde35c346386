// The client library through a real socket, against the loopback daemon.
#include "leat/client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "shm/test/loopback_daemon.h"

namespace leat::shm::test {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

struct ClientTest : ::testing::Test {
  void SetUp() override {
    char name[] = "/tmp/leat-test-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder = name;
    options.socket = folder + "/leat.sock";
    start();
  }
  void TearDown() override {
    daemon.reset();
    ::rmdir(folder.c_str());
  }
  void start() {
    daemon.reset();
    daemon = std::make_unique<LoopbackDaemon>(options);
    ASSERT_EQ(daemon->problem(), "");
  }
  Client connect() {
    auto c = Client::connect(options.socket, "test");
    if (!c) throw std::runtime_error(c.error());
    return std::move(c).value();
  }
  static StreamOptions small(const char* application = "echo") {
    StreamOptions o;
    o.application = application;
    o.format = LEAT_FORMAT_gray8;
    o.width = 64;
    o.height = 16;
    return o;
  }
  Stream open(Client& c, const leat_stream_options& o = small()) {
    auto s = c.open_stream(o);
    if (!s) throw std::runtime_error(s.error());
    return std::move(s).value();
  }
  std::string folder;
  LoopbackDaemon::Options options;
  std::unique_ptr<LoopbackDaemon> daemon;
};

void paint(const Frame& f, unsigned seed) {
  for (std::uint32_t i = 0; i < f->bytes; ++i) f->planes[0][i] = static_cast<std::uint8_t>(seed * 31 + i * 7);
}

TEST_F(ClientTest, EveryFrameIsAnsweredOnceWithItsOwnChecksum) {
  Client c = connect();
  Stream s = open(c);
  for (unsigned i = 0; i < 5000; ++i) {
    auto f = s.acquire();
    ASSERT_TRUE(f) << leat_last_error();
    paint(*f, i);
    const std::uint64_t expected = checksum((*f)->planes[0], (*f)->bytes);
    leat_submit_options o{};
    o.cookie = i;
    o.capture_ns = leat_now_ns() - 5;
    std::uint64_t ticket = 0;
    ASSERT_EQ(f->submit(o, &ticket), LEAT_ERROR_ok);
    auto a = c.next_answer(std::chrono::seconds(60));
    ASSERT_TRUE(a) << leat_last_error();
    ASSERT_EQ(a->outcome(), Outcome::completed);
    ASSERT_EQ((*a)->cookie, i);
    ASSERT_EQ((*a)->ticket, ticket);
    ASSERT_EQ((*a)->capture_ns, o.capture_ns);
    ASSERT_GE((*a)->answered_ns, o.capture_ns);
    ASSERT_NE(a->result(), nullptr);
    ASSERT_EQ(a->result()->checksum, expected);
    leat_frame seen;
    ASSERT_EQ(leat_answer_frame(&a->raw(), &seen), LEAT_ERROR_ok);
    ASSERT_EQ(checksum(seen.planes[0], seen.bytes), expected);
  }
  EXPECT_EQ(daemon->answered(), 5000u);
  EXPECT_EQ(daemon->violations(), 0u);
}

TEST_F(ClientTest, AChildOfForkLeavesItsParentsClientAlone) {
  auto c = std::make_unique<Client>(connect());
  auto s = std::make_unique<Stream>(open(*c));
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = !c->open_stream(small()).ok() && leat_close_stream(s->raw()) == LEAT_ERROR_invalid_argument;
    s.reset();
    c.reset();
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "it ends as any program does";
  auto f = s->acquire();
  ASSERT_TRUE(f) << leat_last_error();
  ASSERT_EQ(f->submit({}), LEAT_ERROR_ok);
  const auto a = c->next_answer(std::chrono::seconds(60));
  ASSERT_TRUE(a) << leat_last_error();
  EXPECT_EQ(a->outcome(), Outcome::completed);
  EXPECT_EQ(daemon->violations(), 0u);
}

TEST_F(ClientTest, ACaptureTimeComesBackAsItWasSaid) {
  Client c = connect();
  Stream s = open(c);
  for (const std::int64_t from_now : {-1'000'000'000LL, 3'600'000'000'000LL}) {  // one that leatd counts as now
    auto f = s.acquire();
    ASSERT_TRUE(f) << leat_last_error();
    leat_submit_options o{};
    o.capture_ns = leat_now_ns() + from_now;
    ASSERT_EQ(f->submit(o), LEAT_ERROR_ok);
    auto a = c.next_answer(std::chrono::seconds(60));
    ASSERT_TRUE(a) << leat_last_error();
    EXPECT_EQ((*a)->capture_ns, o.capture_ns);
  }
}

TEST_F(ClientTest, ColorAndDamageComeBackWithTheFrame) {
  Client c = connect();
  StreamOptions o = small();
  o.format = LEAT_FORMAT_nv12;
  o.color_range = LEAT_COLOR_RANGE_full;
  Stream s = open(c, o);
  struct Said {
    std::uint32_t range, matrix, flags;
    std::uint32_t served_range, served_matrix;
  };
  constexpr Said kSaid[] = {
      {0, 0, 0, LEAT_COLOR_RANGE_full, LEAT_COLOR_MATRIX_bt601},  // the stream's, and the default rule's
      {LEAT_COLOR_RANGE_limited, LEAT_COLOR_MATRIX_bt709, LEAT_SUBMIT_DAMAGED, LEAT_COLOR_RANGE_limited,
       LEAT_COLOR_MATRIX_bt709},
      {0, LEAT_COLOR_MATRIX_bt2020, 0, LEAT_COLOR_RANGE_full, LEAT_COLOR_MATRIX_bt2020}};
  for (const Said& said : kSaid) {
    auto f = s.acquire();
    ASSERT_TRUE(f) << leat_last_error();
    EXPECT_EQ((*f)->color_range, LEAT_COLOR_RANGE_full);
    EXPECT_EQ((*f)->color_matrix, LEAT_COLOR_MATRIX_bt601);
    leat_submit_options submit{};
    submit.color_range = said.range, submit.color_matrix = said.matrix, submit.flags = said.flags;
    ASSERT_EQ(f->submit(submit), LEAT_ERROR_ok);
    auto a = c.next_answer(std::chrono::seconds(60));
    ASSERT_TRUE(a) << leat_last_error();
    EXPECT_EQ(a->damaged(), said.flags != 0);
    leat_frame seen;
    ASSERT_EQ(leat_answer_frame(&a->raw(), &seen), LEAT_ERROR_ok);
    EXPECT_EQ(seen.color_range, said.served_range);
    EXPECT_EQ(seen.color_matrix, said.served_matrix);
  }
  EXPECT_EQ(daemon->violations(), 0u);
}

TEST_F(ClientTest, AnUnknownColorIsRefused) {
  Client c = connect();
  StreamOptions o = small();
  o.color_matrix = 4;
  EXPECT_THAT(c.open_stream(o).error(), testing::HasSubstr("color_matrix"));
  Stream s = open(c);
  auto f = s.acquire();
  ASSERT_TRUE(f) << leat_last_error();
  leat_submit_options submit{};
  submit.color_range = 3;
  EXPECT_EQ(f->submit(submit), LEAT_ERROR_invalid_argument);
  EXPECT_THAT(leat_last_error(), testing::HasSubstr("color_range"));
  EXPECT_EQ(f->submit({}), LEAT_ERROR_ok);  // the slot is still acquired
}

TEST_F(ClientTest, FullIsAnAnswer) {
  options.answer_now = [](const Taken&) { return false; };
  start();
  Client c = connect();
  auto o = small();
  o.depth = 2;
  o.slots = 4;
  Stream s = open(c, o);
  EXPECT_EQ(leat_stream_slots(s.raw()), 4u);
  std::vector<Frame> frames;
  for (int i = 0; i < 4; ++i) {
    auto f = s.acquire();
    ASSERT_TRUE(f);
    frames.push_back(std::move(*f));
  }
  leat_frame none;
  EXPECT_EQ(leat_acquire(s.raw(), &none), LEAT_ERROR_ring_full);
  EXPECT_NE(std::string(leat_last_error()).find("release"), std::string::npos);
  frames.pop_back();  // abandoned: the slot is free again
  EXPECT_EQ(leat_acquire(s.raw(), &none), LEAT_ERROR_ok);
  leat_abandon(&none);
  for (auto& f : frames) ASSERT_EQ(f.submit(), LEAT_ERROR_ok);
  EXPECT_EQ(frames[0].submit(), LEAT_ERROR_invalid_argument) << "submitted already";
  leat_answer a;
  EXPECT_EQ(leat_next_answer(c.raw(), 1'000'000, &a), LEAT_ERROR_timed_out);
  daemon->release_held();
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(leat_next_answer(c.raw(), 5 * kSecond, &a), LEAT_ERROR_ok);
    leat_release(&a);
  }
}

TEST_F(ClientTest, CancelIsAnsweredOnce) {
  options.answer_now = [](const Taken&) { return false; };
  start();
  Client c = connect();
  Stream s = open(c);
  std::vector<std::uint64_t> tickets(3);
  for (auto& t : tickets) {
    auto f = s.acquire();
    ASSERT_TRUE(f);
    ASSERT_EQ(f->submit({}, &t), LEAT_ERROR_ok);
  }
  ASSERT_EQ(s.cancel(tickets[1]), LEAT_ERROR_ok);
  ASSERT_EQ(s.cancel(tickets[1]), LEAT_ERROR_ok) << "twice is harmless";
  auto a = c.next_answer(std::chrono::seconds(60));
  ASSERT_TRUE(a);
  EXPECT_EQ((*a)->ticket, tickets[1]);
  EXPECT_EQ(a->outcome(), Outcome::dropped);
  EXPECT_EQ(a->reason(), Reason::cancelled);
  EXPECT_EQ(a->result(), nullptr);
  EXPECT_EQ(leat_cancel(s.raw(), 12345), LEAT_ERROR_invalid_argument);
  daemon->release_held();
  for (const std::uint64_t t : {tickets[0], tickets[2]}) {
    auto b = c.next_answer(std::chrono::seconds(60));
    ASSERT_TRUE(b);
    EXPECT_EQ((*b)->ticket, t);
    EXPECT_EQ(b->outcome(), Outcome::completed);
  }
  EXPECT_FALSE(c.next_answer(std::chrono::milliseconds(5)));
  EXPECT_EQ(daemon->violations(), 0u);
}

TEST_F(ClientTest, PollableDescriptorNeverMissesAnAnswer) {
  Client c = connect();
  Stream s = open(c);
  const int fd = c.answer_fd();
  ASSERT_GE(fd, 0);
  for (int i = 0; i < 3000; ++i) {
    EXPECT_FALSE(c.next_answer());
    auto f = s.acquire();
    ASSERT_TRUE(f);
    ASSERT_EQ(f->submit(), LEAT_ERROR_ok);
    for (;;) {
      pollfd p{fd, POLLIN, 0};
      ASSERT_EQ(::poll(&p, 1, 60000), 1) << "an answer came and the descriptor did not say so";
      if (c.next_answer()) break;
    }
  }
}

TEST_F(ClientTest, ClosingOneStreamKeepsTheAnswersOfTheOther) {
  options.answer_now = [](const Taken& t) { return t.stream == 1; };
  start();
  Client c = connect();
  Stream first = open(c), second = open(c);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(first.acquire()->submit(), LEAT_ERROR_ok);
    ASSERT_EQ(second.acquire()->submit(), LEAT_ERROR_ok);
  }
  first = Stream();  // closes: its frames are given up, their answers discarded
  for (int i = 0; i < 3; ++i) {
    auto a = c.next_answer(std::chrono::seconds(60));
    ASSERT_TRUE(a);
    EXPECT_EQ((*a)->stream, second.raw());
  }
  EXPECT_FALSE(c.next_answer());
  Stream third = open(c);  // takes the index that became free
  EXPECT_FALSE(c.next_answer());
  EXPECT_EQ(daemon->violations(), 0u);
}

TEST_F(ClientTest, TwoThreadsOneSubmitsOneAnswers) {
  Client c = connect();
  auto o = small();
  o.depth = 16;
  Stream s = open(c, o);
  constexpr unsigned kFrames = 20000;
  std::atomic<bool> failed{false};
  std::thread submitter([&] {
    for (unsigned i = 0; i < kFrames && !failed;) {
      auto f = s.acquire();
      if (!f) {
        std::this_thread::yield();
        continue;
      }
      paint(*f, i);
      leat_submit_options how{};
      how.cookie = checksum((*f)->planes[0], (*f)->bytes);
      how.flags = i % 4 != 3 ? LEAT_SUBMIT_MORE : 0;
      if (f->submit(how) != LEAT_ERROR_ok) failed = true;
      ++i;
    }
    c.flush();
  });
  for (unsigned i = 0; i < kFrames && !failed; ++i) {
    // A MORE frame may wait for a wake until the next one; time limits bound that.
    auto a = c.next_answer(std::chrono::seconds(60));
    if (!a || a->result() == nullptr || a->result()->checksum != (*a)->cookie) failed = true;
  }
  submitter.join();
  EXPECT_FALSE(failed) << leat_last_error();
}

TEST_F(ClientTest, ErrorsSayWhatToDo) {
  leat_client* raw = nullptr;
  leat_connect_options co{};
  co.socket = "/nonexistent/leat.sock";
  EXPECT_EQ(leat_connect(&co, &raw), LEAT_ERROR_daemon_absent);
  EXPECT_NE(std::string(leat_last_error()).find("/nonexistent/leat.sock"), std::string::npos);
  EXPECT_EQ(raw, nullptr);
  Client c = connect();
  leat_stream* s = nullptr;
  auto o = small("nothing");
  EXPECT_EQ(leat_open_stream(c.raw(), &o, &s), LEAT_ERROR_no_such_application);
  EXPECT_NE(std::string(leat_last_error()).find("echo"), std::string::npos);
  o = small();
  o.width = 0;
  EXPECT_EQ(leat_open_stream(c.raw(), &o, &s), LEAT_ERROR_invalid_argument);
  o = small();
  o.application = nullptr;
  EXPECT_EQ(leat_open_stream(c.raw(), &o, &s), LEAT_ERROR_invalid_argument);
  o = small();
  o.depth = 64;
  o.slots = 96;
  std::vector<Stream> many;
  leat_error last = LEAT_ERROR_ok;
  for (int i = 0; i < 10 && last == LEAT_ERROR_ok; ++i) {
    s = nullptr;
    last = leat_open_stream(c.raw(), &o, &s);
    if (s) many.emplace_back(s);
  }
  EXPECT_EQ(last, LEAT_ERROR_no_room);
  many.clear();
  options.refuse_uid = true;
  start();
  co.socket = options.socket.c_str();
  EXPECT_EQ(leat_connect(&co, &raw), LEAT_ERROR_not_permitted);
  EXPECT_STREQ(leat_error_name(LEAT_ERROR_ring_full), "ring_full");
}

TEST_F(ClientTest, DaemonGoneIsNoticedEverywhereAndReconnectWorks) {
  options.answer_now = [](const Taken&) { return false; };
  start();
  Client c = connect();
  Stream s = open(c);
  auto f = s.acquire();
  ASSERT_TRUE(f);
  ASSERT_EQ(f->submit(), LEAT_ERROR_ok);
  std::thread killer([&] { daemon.reset(); });
  leat_answer a;
  EXPECT_EQ(leat_next_answer(c.raw(), -1, &a), LEAT_ERROR_disconnected) << "waiting for ever must end";
  killer.join();
  EXPECT_EQ(leat_next_answer(c.raw(), 0, &a), LEAT_ERROR_disconnected);
  EXPECT_EQ(leat_next_answer(c.raw(), kSecond, &a), LEAT_ERROR_disconnected);
  leat_frame frame;
  while (leat_acquire(s.raw(), &frame) == LEAT_ERROR_ok) {
  }
  EXPECT_EQ(leat_acquire(s.raw(), &frame), LEAT_ERROR_disconnected);
  EXPECT_EQ(c.answer_fd(), -1);
  options.answer_now = [](const Taken&) { return true; };
  start();
  Client again = connect();
  Stream stream = open(again);
  ASSERT_EQ(stream.acquire()->submit(), LEAT_ERROR_ok);
  EXPECT_TRUE(again.next_answer(std::chrono::seconds(60)));
}

TEST_F(ClientTest, ClassNames) {
  Client c = connect();
  Stream s = open(c);
  EXPECT_STREQ(leat_class_name(s.raw(), 0, 1), "square");
  EXPECT_STREQ(leat_class_name(s.raw(), 1, 0), "red");
  EXPECT_EQ(leat_class_name(s.raw(), 1, 2), nullptr);
  EXPECT_EQ(leat_class_name(s.raw(), 2, 0), nullptr);
  EXPECT_EQ(leat_class_name(s.raw(), 0, -1), nullptr);
}

TEST_F(ClientTest, ObserverReadsCountersAndStatus) {
  leat_error error = LEAT_ERROR_ok;
  auto observer = Observer::connect(options.socket, &error);
  ASSERT_TRUE(observer) << observer.error();
  auto counters = observer->counters(&error);
  ASSERT_TRUE(counters) << counters.error();
  auto reader = CountersReader::map(std::move(counters->fd), counters->bytes);
  ASSERT_TRUE(reader) << reader.error();
  const auto s = reader->snapshot(RecordKind::daemon, 0);
  ASSERT_TRUE(s);
  EXPECT_EQ(s->value(DaemonCounter::pid), static_cast<std::uint64_t>(getpid()));
  auto status = observer->status(&error);
  ASSERT_TRUE(status) << status.error();
  EXPECT_EQ(*status, "{\"loopback\": true}");
}

TEST_F(ClientTest, IdleMeansNoWakes) {
  std::vector<Client> clients;
  std::vector<Stream> streams;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(connect());
    streams.push_back(open(clients.back()));
    ASSERT_EQ(streams.back().acquire()->submit(), LEAT_ERROR_ok);
    ASSERT_TRUE(clients.back().next_answer(std::chrono::seconds(60)));
  }
  // The last wakes are out after a while, the later the busier the machine is; who wakes by himself does so in each
  // round.
  leat_answer a;
  bool idle = false;
  for (int round = 0; round < 100 && !idle; ++round) {
    const std::uint64_t before = daemon->wakes_sent();
    for (auto& c : clients) EXPECT_EQ(leat_next_answer(c.raw(), 20'000'000, &a), LEAT_ERROR_timed_out);
    idle = daemon->wakes_sent() == before;
  }
  EXPECT_TRUE(idle);
}

}  // namespace
}  // namespace leat::shm::test
