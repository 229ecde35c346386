#include "tools/leat/gateway/grpc/grpc_door.h"

#include <poll.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdio>

#include "tools/base/subprocess/program.h"

namespace leat::gateway {
namespace {

constexpr int kReadyFd = 3;
constexpr auto kPatience = std::chrono::seconds(30);
constexpr auto kBetweenStarts = std::chrono::seconds(5);

// What it writes when it listens; empty: it ended before, or said nothing in time.
std::string first_line(int fd) {
  std::string out;
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!out.ends_with('\n')) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd poll{.fd = fd, .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || ::poll(&poll, 1, static_cast<int>(left.count())) != 1) return {};
    char byte = 0;
    if (::read(fd, &byte, 1) != 1) return {};
    out += byte;
  }
  return out;
}

}  // namespace

Status GrpcDoor::start() {
  started_ = std::chrono::steady_clock::now();
  auto pipe = subprocess::make_pipe();
  if (!pipe.ok()) return Error{pipe.error()};
  const std::string program = subprocess::named_or_near("LEAT_GRPC", "leat-grpc", {"", "../grpc", "../../tools/grpc"});
  auto process = subprocess::Process::start(
      {.words = {program, "--listen", options_.listen, "--gateway", options_.gateway, "--body-mib",
                 std::to_string(options_.body_bytes >> 20), "--ready-fd", std::to_string(kReadyFd)},
       .fds = {{pipe->write.get(), kReadyFd}},
       .death_signal = SIGTERM});
  if (!process.ok()) return Error{process.error() + "; install the package leat-grpc, or leave out --grpc"};
  pipe->write = Fd();
  const std::string said = first_line(pipe->read.get());
  if (!said.starts_with("ready ")) return Error{"leat-grpc does not listen at " + options_.listen};
  (void)std::from_chars(said.data() + 6, said.data() + said.size(), port_);
  if (const std::size_t zero = options_.listen.rfind(":0");
      zero != std::string::npos && zero + 2 == options_.listen.size() && port_ != 0)
    options_.listen.replace(zero + 1, 1, std::to_string(port_));  // the next one listens where this one did
  process_ = std::move(*process);
  return Done{};
}

void GrpcDoor::look() {
  if (process_ && !process_.has_ended()) return;
  if (std::chrono::steady_clock::now() - started_ < kBetweenStarts) return;
  const auto ending = process_.ended();
  std::fprintf(stderr, "leat gateway: leat-grpc %s; starting it anew\n",
               ending ? ending->text().c_str() : "does not run");
  if (const Status status = start(); !status) std::fprintf(stderr, "leat gateway: %s\n", status.error().c_str());
}

}  // namespace leat::gateway
