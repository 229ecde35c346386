// What users may have and ask for, with real users: each limit refuses with the key to change, groups count, what is
// kept for root is kept, and what a user holds is counted until he lets go of it. Needs root, to be other users.
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "shm/src/client/client_port.h"
#include "shm/src/protocol/control_protocol.h"
#include "tests/serving/daemon_fixture.h"

namespace leat::test {
namespace {

using namespace std::chrono_literals;
using shm::Refusal;
using shm::UserCounter;

constexpr std::uint32_t kUser = 4'000'000'001, kGroup = 4'000'000'011, kSupplementary = 4'000'000'012;

std::string config(const std::string& daemon, const std::string& limits) {
  return "[daemon]\n" + daemon + "[limits]\n" + limits + R"(
[[partition]]
name = "p"
kind = "emulated"
[[application]]
name = "echo"
slo_ms = 1000
  [[application.module]]
  name = "sum"
  latency_ms = [0.1]
)";
}

// A process of another user that does something and stays until it is let go.
class AsUser {
 public:
  AsUser(std::uint32_t uid, std::vector<gid_t> groups, const std::function<std::string()>& what) {
    int words[2], leave[2];
    if (pipe2(words, O_CLOEXEC) != 0 || pipe2(leave, O_CLOEXEC) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      close(leave[1]);
      std::string said = "cannot become user " + std::to_string(uid);
      if (setgroups(groups.size(), groups.data()) == 0 && setresgid(kGroup, kGroup, kGroup) == 0 &&
          setresuid(uid, uid, uid) == 0)
        said = what();
      (void)!write(words[1], said.data(), said.size());
      close(words[1]);
      char byte;
      (void)!read(leave[0], &byte, 1);
      _exit(0);
    }
    close(words[1]);
    close(leave[0]);
    leave_ = shm::Fd(leave[1]);
    const shm::Fd from(words[0]);
    char buffer[1024];
    for (ssize_t n = 0; (n = read(from.get(), buffer, sizeof buffer)) > 0;)
      said_.append(buffer, static_cast<std::size_t>(n));
  }
  ~AsUser() { end(); }
  void end() {
    leave_ = shm::Fd();
    if (pid_ > 0) (void)waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  const std::string& said() const { return said_; }

 private:
  pid_t pid_ = -1;
  shm::Fd leave_;
  std::string said_;
};

class Limits : public testing::Test {
 protected:
  void SetUp() override {
    if (getuid() != 0) GTEST_SKIP() << "only root can become other users";
  }
  void start(const std::string& daemon, const std::string& limits) {
    leatd_ = std::make_unique<Leatd>(config(daemon, limits));
    socket_ = leatd_->socket();
    ASSERT_EQ(chmod(socket_.substr(0, socket_.rfind('/')).c_str(), 0755), 0);
  }
  std::optional<shm::RecordSnapshot> user(std::uint32_t uid) const {
    for (std::uint32_t i = 0; i < shm::kMaxRecords[static_cast<std::size_t>(shm::RecordKind::user)]; ++i)
      if (auto r = leatd_->record(shm::RecordKind::user, i); r && r->value(UserCounter::uid) == std::uint64_t{uid})
        return r;
    return std::nullopt;
  }
  std::uint64_t refusals(std::uint32_t uid, Refusal why) const {
    const auto r = user(uid);
    return r ? r->causes[static_cast<std::size_t>(why)] : 0;
  }
  std::uint64_t gauge(std::uint32_t uid, UserCounter counter) const {
    const auto r = user(uid);
    return r ? r->value(counter).value_or(0) : 0;
  }

  std::unique_ptr<Leatd> leatd_;
  std::string socket_;
};

StreamOptions small() {
  StreamOptions o;
  o.application = "echo";
  o.format = LEAT_FORMAT_gray8;
  o.width = 64;
  o.height = 16;
  o.depth = o.slots = 4;
  return o;
}

std::string connects(const std::string& socket) {
  auto client = Client::connect(socket, "somebody");
  return client.ok() ? "in" : client.error();
}

TEST_F(Limits, SupplementaryGroupsCount) {
  start("socket_mode = \"0666\"\nallow_gids = [" + std::to_string(kSupplementary) + "]\n", "");
  EXPECT_EQ(AsUser(kUser, {7, kSupplementary}, [&] { return connects(socket_); }).said(), "in");
  const std::string refused = AsUser(kUser, {7}, [&] { return connects(socket_); }).said();
  EXPECT_NE(refused.find("allow_gids"), std::string::npos) << refused;
  EXPECT_EQ(refusals(kUser, Refusal::not_allowed), 1U);
}

TEST_F(Limits, TheSocketIsItsGroups) {
  start("socket_group = \"" + std::to_string(kSupplementary) + "\"\n", "");
  struct stat info {};
  ASSERT_EQ(stat(socket_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0660U);
  EXPECT_EQ(info.st_gid, kSupplementary);
  EXPECT_EQ(AsUser(kUser, {kSupplementary}, [&] { return connects(socket_); }).said(), "in");
  const std::string refused = AsUser(kUser, {}, [&] { return connects(socket_); }).said();
  EXPECT_NE(refused.find("may not connect"), std::string::npos) << refused;
}

TEST_F(Limits, EachIsRefusedWithTheKeyToChange) {
  start("socket_mode = \"0666\"\n", R"(
[limits.user]
streams = 3
requests = 20
memory_mib = 16
priority = "normal"
min_slo_ms = 100
overload = ["latest"]
)");
  struct Case {
    const char* key;
    Refusal why;
    std::function<void(StreamOptions&)> change;
  };
  const Case cases[] = {
      {"priority", Refusal::priority, [](auto& o) { o.priority = LEAT_PRIORITY_HIGH; }},
      {"min_slo_ms", Refusal::slo, [](auto& o) { o.slo_ns = 99'000'000; }},
      {"min_slo_ms", Refusal::slo, [](auto& o) { o.max_age_ns = 1'000; }},
      {"overload", Refusal::overload, [](auto& o) { o.overload = LEAT_OVERLOAD_never_drop; }},
      {"overload", Refusal::overload, [](auto& o) { o.overload = LEAT_OVERLOAD_fifo; }},
      {"requests", Refusal::requests, [](auto& o) { o.depth = o.slots = 17; }},
      {"memory_mib", Refusal::memory, [](auto& o) { o.width = o.height = 4096; }},
  };
  const AsUser child(kUser, {}, [&]() -> std::string {
    auto first = Client::connect(socket_, "first"), second = Client::connect(socket_, "second");
    if (!first.ok() || !second.ok()) return "not let in";
    auto kept = first->open_stream(small());
    if (!kept.ok()) return kept.error();
    for (const Case& c : cases) {
      StreamOptions o = small();
      c.change(o);
      const auto got = second->open_stream(o);
      if (got.ok()) return std::string(c.key) + ": it was let through";
      if (got.error().find(c.key) == std::string::npos) return std::string(c.key) + " is not named: " + got.error();
      if (got.error().find('\n') != std::string::npos) return "more than a line: " + got.error();
    }
    auto a = second->open_stream(small()), b = first->open_stream(small());
    if (!a.ok() || !b.ok()) return "what he may have was refused: " + (a.ok() ? b.error() : a.error());
    const auto fourth = second->open_stream(small());
    return fourth.ok() ? "a fourth stream" : fourth.error();
  });
  EXPECT_NE(child.said().find("streams in [limits.user]"), std::string::npos) << child.said();
  for (const Case& c : cases) EXPECT_GT(refusals(kUser, c.why), 0U) << c.key;
  EXPECT_GT(refusals(kUser, Refusal::streams), 0U);
}

TEST_F(Limits, WhatHeHadIsHisAgainOnceItIsClosed) {
  start("socket_mode = \"0666\"\n", "[limits.user]\nstreams = 1\nrequests = 4\nmemory_mib = 2\n");
  const AsUser child(kUser, {}, [&]() -> std::string {
    for (int i = 0; i < 20; ++i) {
      auto client = Client::connect(socket_, "again");
      if (!client.ok()) return client.error();
      for (int k = 0; k < 3; ++k)
        if (auto stream = client->open_stream(small()); !stream.ok()) return stream.error();
    }
    return "done";
  });
  EXPECT_EQ(child.said(), "done");
  EXPECT_TRUE(eventually([&] {
    return gauge(kUser, UserCounter::streams) == 0 && gauge(kUser, UserCounter::requests) == 0 &&
           gauge(kUser, UserCounter::memory_bytes) == 0 && gauge(kUser, UserCounter::sessions) == 0;
  }));
}

TEST_F(Limits, WhoSaysNothingIsEndedAndToldWhy) {
  start("", "handshake_timeout_ms = 50\n");
  leat_error error{};
  const auto silent = shm::connect_to(socket_, &error);
  ASSERT_TRUE(silent.ok());
  const auto told = shm::await_reply(silent->get(), 1, 60'000'000'000, &error);
  ASSERT_FALSE(told.ok());
  EXPECT_NE(told.error().find("no hello within 50 ms"), std::string::npos) << told.error();
  EXPECT_TRUE(eventually([&] { return refusals(0, Refusal::silent) == 1; }));
}

TEST_F(Limits, SomePlacesAreRootsWhateverOthersMayHave) {
  start("socket_mode = \"0666\"\n", "clients = 16\n[limits.user]\nsessions = 1000\ndescriptors = 1000\n");
  const AsUser crowd(kUser, {}, [&]() -> std::string {
    std::string last;
    static std::vector<Client> clients;  // until the process ends
    for (int i = 0; i < 100; ++i) {
      auto client = Client::connect(socket_, "crowd");
      if (client.ok())
        clients.push_back(std::move(*client));
      else
        last = client.error();
    }
    static std::vector<shm::Observer> observers;
    leat_error error{};
    for (int i = 0; i < 100; ++i)
      if (auto o = shm::Observer::connect(socket_, &error); o.ok()) observers.push_back(std::move(*o));
    return std::to_string(clients.size()) + " " + last;
  });
  EXPECT_EQ(crowd.said().rfind("15 ", 0), 0U) << crowd.said() << ": one place of 16 is kept";
  EXPECT_GT(refusals(kUser, Refusal::clients), 0U);
  EXPECT_GT(refusals(kUser, Refusal::table_full) + refusals(kUser, Refusal::displaced), 0U);
  auto mine = Client::connect(socket_, "root's");
  ASSERT_TRUE(mine.ok()) << mine.error();
  EXPECT_TRUE(mine->open_stream(small()).ok());
  std::vector<shm::Observer> many;
  leat_error error{};
  for (int i = 0; i < 20; ++i) {  // the oldest of root's own give way to newer ones
    auto o = shm::Observer::connect(socket_, &error);
    ASSERT_TRUE(o.ok()) << o.error();
    many.push_back(std::move(*o));
  }
  EXPECT_FALSE(leatd_->status_json().empty());
}

TEST_F(Limits, AHogGivesWayToAnotherProcessOfItsUser) {
  start("socket_mode = \"0666\"\n", "[limits.user]\nsessions = 4\n");
  const auto observers = [&](int count) {
    static std::vector<shm::Observer> kept;
    leat_error error{};
    for (int i = 0; i < count; ++i) {
      auto o = shm::Observer::connect(socket_, &error);
      if (!o.ok()) return o.error();
      kept.push_back(std::move(*o));
    }
    return std::string("in");
  };
  const AsUser hog(kUser, {}, [&] { return observers(4); });
  EXPECT_EQ(hog.said(), "in");
  const AsUser modest(kUser, {}, [&] { return observers(1); });
  EXPECT_EQ(modest.said(), "in") << "a process without a connection goes before one with four";
  EXPECT_EQ(refusals(kUser, Refusal::displaced), 1U);
  const AsUser greedy(kUser, {}, [&] { return observers(3); });
  EXPECT_NE(greedy.said().find("sessions in [limits.user]"), std::string::npos)
      << "nobody has two more than it: " << greedy.said();
  EXPECT_EQ(gauge(kUser, UserCounter::sessions), 4U);
}

TEST_F(Limits, DescriptorsNotReceivedCountAlsoWhenTheirConnectionHasEnded) {
  start("socket_mode = \"0666\"\n", "[limits.user]\ndescriptors = 4\n");
  AsUser deaf(kUser, {}, [&]() -> std::string {
    static std::vector<shm::Fd> kept;
    leat_error error{};
    for (int i = 0; i < 6; ++i) {
      auto fd = shm::connect_to(socket_, &error);
      if (!fd.ok()) return fd.error();
      shm::Hello hello;
      hello.role = shm::PeerRole::observer;
      (void)shm::send(fd->get(), hello);
      (void)shm::send(fd->get(), shm::Observe{});
      (void)shm::send(fd->get(), shm::StreamClosed{});  // not a client's: the connection is ended for it
      kept.push_back(std::move(*fd));
    }
    return "done";
  });
  EXPECT_EQ(deaf.said(), "done");
  EXPECT_TRUE(eventually([&] { return gauge(kUser, UserCounter::violated) == 6; }));
  EXPECT_EQ(gauge(kUser, UserCounter::descriptors), 4U);
  EXPECT_EQ(gauge(kUser, UserCounter::sessions), 4U) << "what lingers is a connection of his still";
  EXPECT_EQ(refusals(kUser, Refusal::descriptors), 2U);
  deaf.end();
  EXPECT_TRUE(eventually(
      [&] { return gauge(kUser, UserCounter::descriptors) == 0 && gauge(kUser, UserCounter::sessions) == 0; }));
}

TEST_F(Limits, ALogLineAClientCanCauseIsLimited) {
  start("socket_mode = \"0666\"\nallow_uids = [0]\n", "");
  const std::int64_t from = leat_now_ns();
  const AsUser knocking(kUser, {}, [&]() -> std::string {
    for (int i = 0; i < 500; ++i) (void)connects(socket_);
    return "done";
  });
  EXPECT_EQ(knocking.said(), "done");
  EXPECT_EQ(refusals(kUser, Refusal::not_allowed), 500U) << "the counters lose nothing";
  const std::string log = leatd_->log();
  const double seconds = static_cast<double>(leat_now_ns() - from) / 1e9;
  EXPECT_LT(static_cast<double>(std::count(log.begin(), log.end(), '\n')), 10 * seconds + 20) << log;
}

}  // namespace
}  // namespace leat::test
