// leat-grpc as a child of the gateway, whose own address it asks: started with it, started anew where it ended, and
// ended with it. Thread rule: the gateway's thread, which must live as long. Errors: one line.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "leat/result.hpp"
#include "tools/base/subprocess/process.h"

namespace leat::gateway {

struct GrpcOptions {
  std::string listen;   // as --grpc says: 127.0.0.1:8001, [::1]:8001, unix:/run/leat/grpc.sock
  std::string gateway;  // where the gateway listens: 127.0.0.1:8000
  std::uint64_t body_bytes = 0;
};

class GrpcDoor {
 public:
  explicit GrpcDoor(GrpcOptions options) : options_(std::move(options)) {}
  // Waits until it listens.
  Status start();
  // Starts it anew where it has ended, not oftener than every five seconds, and says so.
  void look();
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }  // 0: a Unix socket, or it never listened

 private:
  GrpcOptions options_;
  subprocess::Process process_;
  std::uint16_t port_ = 0;
  std::chrono::steady_clock::time_point started_;
};

}  // namespace leat::gateway
