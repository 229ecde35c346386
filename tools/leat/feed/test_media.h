// Small media files for tests, made by ffmpeg, and servers on loopback that send them.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tools/base/text/fd.h"

namespace leat::tools::test {

// A folder that goes with the object.
class MediaFolder {
 public:
  MediaFolder() {
    char name[] = "/tmp/leat-media-XXXXXX";
    EXPECT_NE(::mkdtemp(name), nullptr);
    path_ = name;
  }
  ~MediaFolder() { std::filesystem::remove_all(path_); }
  MediaFolder(const MediaFolder&) = delete;
  MediaFolder& operator=(const MediaFolder&) = delete;
  [[nodiscard]] std::string at(const std::string& name) const { return path_ + "/" + name; }
  // words: what is between the program and the output's name.
  std::string ffmpeg(const std::string& words, const std::string& name) const {
    const std::string command = "ffmpeg -v error -nostdin -y " + words + " " + at(name);
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    return at(name);
  }
  [[nodiscard]] static std::string content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string put(const std::string& name, const std::string& bytes) const {
    std::ofstream(at(name), std::ios::binary | std::ios::trunc) << bytes;
    return at(name);
  }

 private:
  std::string path_;
};

// Sends pieces, one after the other and each after a pause, to whoever connects, and keeps the connection until its
// end.
class PieceServer {
 public:
  PieceServer(const std::string& scheme, std::vector<std::string> pieces, std::chrono::milliseconds pause)
      : pieces_(std::move(pieces)), pause_(pause), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof at;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&at), bytes), 0);
    EXPECT_EQ(::listen(listener_.get(), 4), 0);
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&at), &bytes), 0);
    url_ = scheme + "://127.0.0.1:" + std::to_string(ntohs(at.sin_port));
    thread_ = std::thread([this] { run(); });
  }
  ~PieceServer() {
    end_ = true;
    thread_.join();
  }
  PieceServer(const PieceServer&) = delete;
  PieceServer& operator=(const PieceServer&) = delete;
  [[nodiscard]] const std::string& url() const { return url_; }

 private:
  void run() {
    while (!end_) {
      pollfd ready{listener_.get(), POLLIN, 0};
      if (::poll(&ready, 1, 20) <= 0) continue;
      const Fd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      for (const std::string& piece : pieces_) {
        for (std::size_t sent = 0; !end_ && peer && sent < piece.size();) {
          const ssize_t n = ::send(peer.get(), piece.data() + sent, piece.size() - sent, MSG_NOSIGNAL);
          if (n <= 0) break;
          sent += static_cast<std::size_t>(n);
        }
        if (end_) break;
        std::this_thread::sleep_for(pause_);
      }
      while (!end_ && peer) {
        pollfd gone{peer.get(), POLLIN, 0};
        char c = 0;
        if (::poll(&gone, 1, 20) > 0 && ::recv(peer.get(), &c, 1, 0) <= 0) break;
      }
    }
  }
  const std::vector<std::string> pieces_;
  const std::chrono::milliseconds pause_;
  Fd listener_;
  std::string url_;
  std::atomic<bool> end_{false};
  std::thread thread_;
};

}  // namespace leat::tools::test
