// Threads wait at a client's bell, each with an array that names it thousands of times: whoever wakes them walks all of
// it, under a lock, in his own time. The scheduler thread does so once at most, and not again for any bell of that
// user; who makes the lanes do it is ended.
#include <poll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "shm/src/rings/doorbell.h"
#include "tests/attacks/arena/arena.h"
#include "tests/attacks/arena/raw_client.h"

namespace leat::test {
namespace {

constexpr std::size_t kThreads = 8;
constexpr rlim_t kEntries = 20'000;

// A client that is let in, and a crowd that waits at one of its sockets for what never comes, until it hangs up.
struct Crowded {
  enum class At : std::uint8_t { bell, socket };
  explicit Crowded(const std::string& path, At at) {
    if (!client.connect(path) || !client.hello() || !client.open()) return;
    rlimit files{};
    (void)getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    const int fd = at == At::bell ? client.bell.get() : client.socket.get();
    const auto entries = static_cast<std::size_t>(std::min(files.rlim_cur, kEntries));
    for (std::size_t i = 0; i < kThreads; ++i)
      threads.emplace_back([this, fd, entries] {
        (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()),
                          19);  // to gather takes time that is nobody's matter
        std::vector<pollfd> same(entries, pollfd{fd, POLLPRI, 0});
        ++waiting;
        (void)::poll(same.data(), same.size(), -1);
      });
    in = eventually([&] { return waiting == kThreads; });
  }
  ~Crowded() {
    for (const shm::Fd* fd : {&client.bell, &client.socket})
      if (*fd) (void)::shutdown(fd->get(), SHUT_RDWR);
    for (auto& t : threads) t.join();
  }
  RawClient client;
  bool in = false;
  std::atomic<std::size_t> waiting{0};
  std::vector<std::thread> threads;
};

void sleep_and_submit(RawClient& client) {
  auto& word = *client.uplink.at<shm::SleepWord>(shm::uplink_layout().sleep_offset);
  shm::announce_awake(word);
  (void)client.take_answers();
  shm::announce_sleep(word);
  shm::full_fence();
  (void)client.push(client.good());
  client.ring();
}

// What is done to leatd by one who has a crowd; false: it is expelled.
bool submit_asleep(RawClient& client) {
  sleep_and_submit(client);
  pollfd answer{client.bell.get(), POLLIN, 0};
  (void)::poll(&answer, 1, 50);
  char rings[16];
  while (::recv(client.bell.get(), rings, sizeof rings, MSG_DONTWAIT) > 0) {
  }
  return !client.hung_up();
}
bool ask(RawClient& client) { return client.ask(shm::StatusRequest{}).has_value(); }

// Of another user than leatd's: root, and leatd's own, are let in again at once, and to gather a crowd is load enough.
class DearWakes : public ::testing::TestWithParam<Kernel> {
 protected:
  void SetUp() override {
    if (settings().size() == 1) GTEST_SKIP() << "only root can become another user";
  }
};
INSTANTIATE_TEST_SUITE_P(On, DearWakes, ::testing::Values(Kernel::running, Kernel::older), [](const auto& way) {
  return way.param == Kernel::older ? "AnOlderKernel" : "TheRunningKernel";
});

// One crowd a round, expelled or not.
Attack attack(Crowded::At at, bool (*act)(RawClient&)) {
  return [=, crowded = std::shared_ptr<Crowded>()](const std::string& path, std::int64_t until) mutable -> std::string {
    if (!crowded) crowded = std::make_shared<Crowded>(path, at);
    bool in = crowded->in;
    while (in && leat_now_ns() < until) in = act(crowded->client);
    if (!in) crowded.reset();
    const std::int64_t left = std::max<std::int64_t>(until - leat_now_ns(), 0);
    const timespec rest{left / 1'000'000'000, left % 1'000'000'000};
    (void)nanosleep(&rest, nullptr);
    return "";
  };
}

TEST_P(DearWakes, OfABellHoldUpNobody) {
  Arena arena(Setting::other_user, attack(Crowded::At::bell, submit_asleep), "", "", "", GetParam());
  arena.fight([](const Arena& a) { return a.violations(shm::Violation::dear_wakes) > 0; });
}

// The same at the control socket, by those who ask for the status there.
TEST_P(DearWakes, OfASocketHoldUpNobody) {
  Arena arena(Setting::other_user, attack(Crowded::At::socket, ask), "", "", "", GetParam());
  arena.fight([](const Arena& a) { return a.violations(shm::Violation::dear_wakes) > 0; });
}

}  // namespace
}  // namespace leat::test
