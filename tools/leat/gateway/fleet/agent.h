// HAProxy's agent port: whoever connects is told in one line how much of this node is free, and the connection ends.
//
//   "ready up 72%"   the weight that it is to have now, of the configured one
//   "drain"          it is being drained: what it has goes on, nothing new comes
//   "down #reason"   it is not ready; the next "ready up" takes that back
//
// The share is 100 * speed * (0.2 + 0.8 * slack), smoothed and moved in steps: between full nodes the faster one still
// gets more, and only a node that does not serve gets nothing. Thread rule: the gateway's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <optional>
#include <string>

#include "leat/result.hpp"
#include "tools/leat/gateway/http/server.h"

namespace leat::gateway {

class AgentShare {
 public:
  // speed: of this node, as a share of the fastest one, 0..1.

  void saw(double slack, double speed) noexcept;
  [[nodiscard]] int percent() const noexcept { return percent_; }

 private:
  std::optional<double> smooth_;
  int percent_ = 100;
};

class Agent {
 public:
  Agent(boost::asio::io_context& io, std::function<std::string()> line) : io_(io), line_(std::move(line)), fd_(io) {}
  Status listen(const Address& address);

 private:
  void wait();
  boost::asio::io_context& io_;
  std::function<std::string()> line_;
  boost::asio::posix::stream_descriptor fd_;
};

}  // namespace leat::gateway
