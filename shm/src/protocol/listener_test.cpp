// Who gets a socket's path, who is at its other end, and what a client sees of a daemon that is full or refuses.
#include "shm/src/protocol/listener.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <thread>

#include "shm/src/protocol/control_protocol.h"

namespace leat::shm {
namespace {

// A path for a socket in a folder of its own.
struct Place {
  Place() {
    char name[] = "/tmp/leat-listener-XXXXXX";
    folder = ::mkdtemp(name);
    path = folder + "/leat.sock";
  }
  ~Place() {
    ::unlink(path.c_str());
    EXPECT_EQ(::rmdir(folder.c_str()), 0) << "something was left in " << folder;
  }
  std::string folder, path;
};

Fd accepted(const Listener& listener) {
  Fd fd;
  std::string text;
  EXPECT_EQ(listener.accept(&fd, &text), Accepted::connection) << text;
  return fd;
}

TEST(Listener, KnowsItsPeerAndItsGroups) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const Fd a(ends[0]), b(ends[1]);
  const auto peer = peer_of(a.get());
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->pid, getpid());
  EXPECT_EQ(peer->uid, getuid());
  EXPECT_TRUE(peer->in_group(getgid()));
  std::vector<gid_t> groups(static_cast<std::size_t>(getgroups(0, nullptr)));
  ASSERT_EQ(getgroups(static_cast<int>(groups.size()), groups.data()), static_cast<int>(groups.size()));
  for (const gid_t g : groups) EXPECT_TRUE(peer->in_group(g)) << "supplementary group " << g;
  EXPECT_FALSE(peer->in_group(4'000'000'000u));
}

// As a service manager holds it: what it made stays when leatd ends, and others still connect.
TEST(Listener, AdoptsASocketAndLeavesItToItsOwner) {
  Place place;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, place.path.data(), place.path.size());
  const Fd kept(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(kept.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const auto adopted = [&](const Fd& fd, const std::string& path) {
    return Listener::adopt(Fd(::dup(fd.get())), path);
  };
  EXPECT_FALSE(adopted(kept, place.path)) << "it does not listen";
  ASSERT_EQ(::listen(kept.get(), 8), 0);
  const auto elsewhere = adopted(kept, place.path + "2");
  ASSERT_FALSE(elsewhere);
  EXPECT_NE(elsewhere.error().find("give both the same"), std::string::npos) << elsewhere.error();
  const Fd stream(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_FALSE(adopted(stream, place.path));
  for (int round = 0; round < 2; ++round) {
    leat_error error = LEAT_ERROR_ok;
    const auto client = connect_to(place.path, &error);  // before anybody serves
    ASSERT_TRUE(client) << client.error();
    auto listener = adopted(kept, place.path);
    ASSERT_TRUE(listener) << listener.error();
    EXPECT_TRUE(accepted(*listener));
    Fd none;
    std::string text;
    EXPECT_EQ(listener->accept(&none, &text), Accepted::nobody) << "it never blocks";
    EXPECT_NE(::access((place.path + ".lock").c_str(), F_OK), 0);
    (void)listener->retire();
    EXPECT_EQ(::access(place.path.c_str(), F_OK), 0);
  }
}

TEST(Listener, RefusesASecondDaemonAndLeavesNothing) {
  const Place place;
  {
    auto first = Listener::open(place.path, 0640);
    ASSERT_TRUE(first) << first.error();
    struct stat info {};
    ASSERT_EQ(::stat(place.path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0640u);
    const auto second = Listener::open(place.path, 0600);
    ASSERT_FALSE(second);
    EXPECT_NE(second.error().find("another leatd"), std::string::npos);
    EXPECT_EQ(::access(place.path.c_str(), F_OK), 0);
  }
  leat_error error = LEAT_ERROR_ok;
  EXPECT_FALSE(connect_to(place.path, &error));
  EXPECT_EQ(error, LEAT_ERROR_daemon_absent);
}

TEST(Listener, ReplacesTheFileOfADaemonThatWasKilled) {
  const Place place;
  {
    const Fd dead(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, place.path.data(), place.path.size());
    ASSERT_EQ(::bind(dead.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  ASSERT_EQ(::access(place.path.c_str(), F_OK), 0);
  const auto listener = Listener::open(place.path, 0600);
  ASSERT_TRUE(listener) << listener.error();
  leat_error error = LEAT_ERROR_ok;
  EXPECT_TRUE(connect_to(place.path, &error));
}

TEST(Listener, OfDaemonsThatStartAtOnceOneServes) {
  const Place place;
  for (int round = 0; round < 50; ++round) {
    std::vector<Result<Listener>> got;
    for (int i = 0; i < 4; ++i) got.emplace_back(Error{"not tried"});
    std::vector<std::thread> daemons;
    for (auto& result : got) daemons.emplace_back([&] { result = Listener::open(place.path, 0600); });
    for (auto& t : daemons) t.join();
    int serving = 0;
    for (const auto& result : got) {
      if (!result) continue;
      ++serving;
      leat_error error = LEAT_ERROR_ok;
      ASSERT_TRUE(connect_to(place.path, &error)) << "the one that got the path is not the one that is reached";
      (void)accepted(*result);
    }
    ASSERT_EQ(serving, 1) << "round " << round;
  }
}

TEST(Listener, SaysWhatIsWrong) {
  const auto nowhere = Listener::open("/nonexistent-folder/leat.sock", 0600);
  ASSERT_FALSE(nowhere);
  EXPECT_NE(nowhere.error().find("/nonexistent-folder/leat.sock"), std::string::npos);
  EXPECT_FALSE(Listener::open(std::string(200, 'x'), 0600));
  EXPECT_FALSE(Listener::open("", 0600));
  const Place place;
  const Fd file(::open(place.path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  const auto taken = Listener::open(place.path, 0600);
  ASSERT_FALSE(taken);
  EXPECT_NE(taken.error().find("not a socket"), std::string::npos);
  EXPECT_EQ(::access(place.path.c_str(), F_OK), 0) << "a file that is not ours must survive";
}

TEST(Listener, AFullBacklogCostsTheTimeGivenAndNoMore) {
  const Place place;
  const auto listener = Listener::open(place.path, 0600);
  ASSERT_TRUE(listener) << listener.error();
  std::vector<Fd> waiting;
  leat_error error = LEAT_ERROR_ok;
  while (waiting.size() < 1000) {  // nobody accepts
    auto fd = connect_to(place.path, &error, 20'000'000);
    if (!fd) break;
    waiting.push_back(std::move(*fd));
  }
  ASSERT_LT(waiting.size(), 1000u);
  EXPECT_EQ(error, LEAT_ERROR_timed_out);
  (void)accepted(*listener);
  EXPECT_TRUE(connect_to(place.path, &error)) << "there is room again";
}

TEST(Listener, ARefusalAtAcceptIsHeardWheneverTheHelloCame) {
  const Place place;
  const auto listener = Listener::open(place.path, 0600);
  ASSERT_TRUE(listener) << listener.error();
  for (const bool hello_first : {false, true}) {
    leat_error error = LEAT_ERROR_ok;
    const auto client = connect_to(place.path, &error);
    ASSERT_TRUE(client) << client.error();
    Hello hello;
    hello.header.request = 1;
    if (hello_first) {
      ASSERT_TRUE(send(client->get(), hello));
    }
    {
      const Fd server = accepted(*listener);
      ASSERT_TRUE(refuse(server.get(), 0, LEAT_ERROR_no_room, "no room here"));
    }
    if (!hello_first) {
      EXPECT_FALSE(send(client->get(), hello)) << "the other side is closed";
    }
    const auto reply = await_reply(client->get(), 1, 1'000'000'000, &error);
    ASSERT_FALSE(reply);
    EXPECT_EQ(error, LEAT_ERROR_no_room) << reply.error();
    EXPECT_EQ(reply.error(), "no room here");
  }
}

TEST(Listener, KnowsWhetherEverythingSentWasRead) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const Fd a(ends[0]), b(ends[1]);
  EXPECT_TRUE(all_read(a.get()));
  const int fds[] = {a.get()};
  ASSERT_TRUE(send(a.get(), StatusRequest{}, fds));
  EXPECT_FALSE(all_read(a.get()));
  std::vector<std::byte> packet;
  std::vector<Fd> received;
  std::string text;
  ASSERT_EQ(receive(b.get(), false, &packet, &received, &text), Got::message);
  EXPECT_TRUE(all_read(a.get()));
}

}  // namespace
}  // namespace leat::shm
