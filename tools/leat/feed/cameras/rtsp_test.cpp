// Cameras of a real RTSP server on loopback (GStreamer's): over TCP and UDP, and when it breaks off and comes back.
// Skipped where that server is not installed.
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "shm/test/loopback_daemon.h"
#include "tools/base/subprocess/process.h"
#include "tools/leat/feed/cameras/camera.h"

namespace leat::tools {
namespace {

using namespace std::chrono_literals;
using subprocess::Process;

class RtspServer {
 public:
  // 0: any port. False: it is not there to be tested with.
  bool start(const std::string& port) {
    auto in = subprocess::make_pipe();
    auto out = subprocess::make_pipe();
    EXPECT_TRUE(in.ok() && out.ok());
    // Debian's own Python has Debian's modules, whatever else is in PATH.
    auto process = Process::start({.words = {"/usr/bin/python3", LEAT_RTSP_SERVER, port},
                                   .fds = {{in->read.get(), STDIN_FILENO}, {out->write.get(), STDOUT_FILENO}},
                                   .group = subprocess::Group::own,
                                   .death_signal = SIGKILL});
    if (!process.ok()) return false;
    process_ = std::move(*process);
    input_ = std::move(in->write);
    out->write = Fd();
    std::string text;
    pollfd ready{out->read.get(), POLLIN, 0};
    for (char c = 0; ::poll(&ready, 1, 30'000) > 0 && ::read(out->read.get(), &c, 1) == 1 && c != '\n';) text += c;
    if (!text.starts_with("ready ")) return false;
    url_ = text.substr(6);
    return true;
  }
  void kill() { process_.kill(); }
  const std::string& url() const { return url_; }
  std::string port() const {
    const std::size_t colon = url_.rfind(':');
    return url_.substr(colon + 1, url_.find('/', colon) - colon - 1);
  }

 private:
  Process process_;
  Fd input_;
  std::string url_;
};

class RtspCameras : public ::testing::Test {
 protected:
  template <class Condition>
  static bool eventually(const Condition& condition) {
    const auto until = std::chrono::steady_clock::now() + 40s;
    while (!condition()) {
      if (std::chrono::steady_clock::now() >= until) return false;
      std::this_thread::sleep_for(5ms);
    }
    return true;
  }
};

TEST_F(RtspCameras, AreServedOverTcpAndUdpAndComeBackWithTheirServer) {
  RtspServer server;
  if (!server.start("0"))
    GTEST_SKIP() << "GStreamer's RTSP server is not here: apt-get install gir1.2-gst-rtsp-server-1.0 python3-gi "
                    "gstreamer1.0-plugins-good";
  char name[] = "/tmp/leat-rtsp-XXXXXX";
  ASSERT_NE(::mkdtemp(name), nullptr);
  const std::string folder = name;
  {
    shm::test::LoopbackDaemon::Options daemon_options;
    daemon_options.socket = folder + "/leat.sock";
    shm::test::LoopbackDaemon daemon(daemon_options);
    ASSERT_EQ(daemon.problem(), "");
    Connection connection(daemon_options.socket, "house");
    std::vector<std::unique_ptr<Camera>> cameras;
    for (const char* transport : {"tcp", "udp"}) {
      FeederOptions o;
      o.name = transport;
      o.source = server.url();
      o.source_options.transport = transport;
      o.application = "echo";
      o.connection = &connection;
      o.stays = true;
      o.slo_ns = 20'000'000'000;
      o.stall_ns = 2'000'000'000;  // over UDP a server that is killed says nothing
      cameras.push_back(std::make_unique<Camera>(o, true, [](const std::string&) {}));
      cameras.back()->start(::leat_now_ns());
    }
    const auto completed = [&](std::size_t i) {
      return cameras[i]->figures().front().ledger.count(Outcome::completed);
    };
    const auto more = [&](std::uint64_t by) {
      const std::uint64_t before[] = {completed(0), completed(1)};
      return eventually([&] { return completed(0) >= before[0] + by && completed(1) >= before[1] + by; });
    };
    const auto errors = [&] {
      return cameras[0]->report(::leat_now_ns()).last_error + "; " + cameras[1]->report(::leat_now_ns()).last_error;
    };
    ASSERT_TRUE(more(5)) << errors();
    server.kill();
    ASSERT_TRUE(eventually([&] {
      return cameras[0]->report(::leat_now_ns()).breaks >= 2 && cameras[1]->report(::leat_now_ns()).breaks >= 2;
    }));
    ASSERT_TRUE(server.start(server.port()));
    const auto well = std::chrono::steady_clock::now();
    ASSERT_TRUE(more(1)) << errors();
    std::printf("both served %.1f s after their server was well\n",
                std::chrono::duration<double>(std::chrono::steady_clock::now() - well).count());
    EXPECT_EQ(connection.links(), 1U);
    EXPECT_EQ(daemon.violations(), 0U);
    for (const auto& camera : cameras) camera->stop();
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace leat::tools
