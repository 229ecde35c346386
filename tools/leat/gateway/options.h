// What the command line of `leat gateway` says, checked. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "leat/result.hpp"
#include "tools/base/cli/command.h"
#include "tools/leat/gateway/grpc/grpc_door.h"
#include "tools/leat/gateway/http/server.h"

namespace leat::gateway {

struct GatewayOptions {
  std::vector<Address> listen;
  std::optional<Address> agent;
  std::optional<GrpcOptions> grpc;  // its `gateway` is known when the gateway listens
  std::string socket, node;
  std::vector<std::string> tokens;
  HttpLimits http;
  std::uint64_t held_bytes = 0;
  std::uint32_t streams = 8, depth = 8, in_flight = 256, client_in_flight = 256;
  bool shared_memory = false;
  double reference_rate = 0;  // items a second of the fastest node; 0: this one is the fastest
  std::int64_t way_ns = 0;    // of a budget, kept for the way
  std::int64_t drain_ns = 0;
  int ready_fd = -1;
  std::string pictures;  // the application that DeepStack's clients ask; empty: the only one that takes pictures
};

extern const cli::Command kGatewayCommand;
// Of a file that others cannot read: at least one. Errors: one line.
Result<std::vector<std::string>> tokens_in(const std::string& path);
// Errors: one line.
Result<GatewayOptions> options_of(const cli::Arguments& args);

}  // namespace leat::gateway
