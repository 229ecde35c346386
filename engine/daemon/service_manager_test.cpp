#include "engine/daemon/service_manager.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace leat::daemon {
namespace {

// Listens at a name as systemd does: a path, or an abstract one that begins with '@'.
struct Manager {
  explicit Manager(const std::string& name) : socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::memcpy(at.sun_path, name.data(), name.size());
    if (name[0] == '@') at.sun_path[0] = '\0';
    EXPECT_EQ(bind(socket.get(), reinterpret_cast<sockaddr*>(&at),
                   static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())),
              0);
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  std::string next() const {
    char text[512];
    const ssize_t n = recv(socket.get(), text, sizeof text, 0);
    return n < 0 ? "nothing" : std::string(text, static_cast<std::size_t>(n));
  }
  shm::Fd socket;
};

TEST(ServiceManager, IsToldInItsOwnWords) {
  const std::string pid = std::to_string(getpid()), path = "/tmp/leat-notify-" + pid;
  for (const std::string& name : {path, "@leat-notify-" + pid}) {
    const Manager manager(name);
    ServiceManager service = ServiceManager::from_environment();
    EXPECT_EQ(getenv("NOTIFY_SOCKET"), nullptr) << "workers do not speak for leatd";
    service.ready("serving 3 applications");
    EXPECT_EQ(manager.next(), "READY=1\nSTATUS=serving 3 applications\n");
    service.status("starting workers");
    EXPECT_EQ(manager.next(), "STATUS=starting workers\n");
    service.stopping("finishing what is in flight");
    EXPECT_EQ(manager.next(), "STOPPING=1\nSTATUS=finishing what is in flight\n");
  }
  unlink(path.c_str());
}

TEST(ServiceManager, NobodyToTellIsNoTrouble) {
  for (const char* name : {"", "relative", "/nowhere/at/all", "/"}) {
    setenv("NOTIFY_SOCKET", name, 1);
    ServiceManager::from_environment().ready("serving");
  }
  unsetenv("NOTIFY_SOCKET");
  ServiceManager::from_environment().ready("serving");
}

TEST(ServiceManager, PassesASocketToThisProcessAlone) {
  const std::string mine = std::to_string(getpid()), other = std::to_string(getpid() + 1);
  const auto passed = [](const char* pid, const char* count) {
    setenv("LISTEN_PID", pid, 1);
    setenv("LISTEN_FDS", count, 1);
    Fd fd = passed_socket();
    EXPECT_EQ(getenv("LISTEN_FDS"), nullptr) << "workers do not take it for theirs";
    return fd.release();  // it is another's here
  };
  EXPECT_EQ(passed(mine.c_str(), "1"), 3);
  EXPECT_EQ(passed(other.c_str(), "1"), -1);
  EXPECT_EQ(passed(mine.c_str(), "0"), -1);
  EXPECT_EQ(passed(mine.c_str(), "none"), -1);
  EXPECT_EQ(passed_socket().get(), -1);
}

}  // namespace
}  // namespace leat::daemon
