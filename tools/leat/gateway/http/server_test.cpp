#include "tools/leat/gateway/http/server.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <utility>

namespace leat::gateway {
namespace {

constexpr std::uint32_t kPlaces = 4;

// Answers "/now" at once, and everything else when it is told to.
class Held : public Service {
 public:
  struct Answer : Job {
    explicit Answer(Held& all) : held(all) {}
    ~Answer() override { std::erase(held.waiting, this); }
    void start(Channel& c) override {
      channel = &c;
      if (c.head().path == "/now") return c.reply({});
      held.waiting.push_back(this);
    }
    Held& held;
    Channel* channel = nullptr;
  };
  std::unique_ptr<Job> begin(const Head&, const Peer&) override { return std::make_unique<Answer>(*this); }
  void answer_all() {
    for (Answer* a : std::exchange(waiting, {})) a->channel->reply({});
  }
  std::vector<Answer*> waiting;
};

class ServerTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(server_.listen({"127.0.0.1", 0, "", true}).ok()); }

  Fd connected(const char* target, const char* more) {
    Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(server_.port());
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    const std::string request = std::string("GET ") + target + " HTTP/1.1\r\nHost: a\r\n" + more + "\r\n";
    EXPECT_EQ(::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
    return fd;
  }
  template <typename F>
  void until(F holds) {
    while (!holds()) io_.run_one();
  }
  static bool open(const Fd& fd) {
    char byte;
    return ::recv(fd.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) != 0;
  }
  static void read_away(const Fd& fd) {
    char bytes[4096];
    ASSERT_GT(::recv(fd.get(), bytes, sizeof bytes, 0), 0);
  }

  boost::asio::io_context io_;
  Held service_;
  HeldBytes held_{1 << 20};
  Server server_{io_, service_, {.connections = 2 * kPlaces, .connections_each = kPlaces}, held_};
};

// Everybody else's request is being served when a newcomer comes, and answered in the same turn.
TEST_F(ServerTest, WhoWasAnsweredStaysWhereOthersAreAboutToBe) {
  const Fd mine = connected("/now", "");
  until([&] {
    return server_.connections() == 1 && open(mine) && server_.busy() == 0 && server_.counts().requests == 1;
  });
  read_away(mine);
  std::vector<Fd> crowd;
  for (std::uint32_t i = 1; i < kPlaces; ++i) crowd.push_back(connected("/later", "Connection: close\r\n"));
  until([&] { return service_.waiting.size() == crowd.size(); });
  boost::asio::post(io_, [&] { service_.answer_all(); });
  const Fd newcomer = connected("/later", "");
  until([&] { return service_.waiting.size() == 1; });
  EXPECT_EQ(server_.counts().evicted, 0U);
  EXPECT_TRUE(open(mine));
  EXPECT_EQ(server_.connections(), 2U);
}

TEST_F(ServerTest, WhoIdlesGivesWayWhereOthersAreServed) {
  const Fd mine = connected("/now", "");
  until([&] { return server_.counts().requests == 1 && server_.busy() == 0; });
  read_away(mine);
  std::vector<Fd> crowd;
  for (std::uint32_t i = 1; i < kPlaces; ++i) crowd.push_back(connected("/later", ""));
  until([&] { return service_.waiting.size() == crowd.size(); });
  const Fd newcomer = connected("/later", "");
  until([&] { return service_.waiting.size() == kPlaces; });
  EXPECT_EQ(server_.counts().evicted, 1U);
  EXPECT_FALSE(open(mine));
  const Fd another = connected("/later", "");  // nobody is waited for now
  until([&] { return server_.counts().refused == 1; });
  EXPECT_EQ(server_.connections(), kPlaces);
}

}  // namespace
}  // namespace leat::gateway
