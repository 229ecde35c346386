// The gateway as a whole: its event loop, what listens, what serves, and its end. Thread rule: one thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <string>

#include "tools/leat/gateway/deepstack/picture_job.h"
#include "tools/leat/gateway/fleet/agent.h"
#include "tools/leat/gateway/grpc/grpc_door.h"
#include "tools/leat/gateway/http/server.h"
#include "tools/leat/gateway/kserve/routes.h"
#include "tools/leat/gateway/options.h"
#include "tools/leat/gateway/serving/node.h"

namespace leat::gateway {

class Gateway {
 public:
  explicit Gateway(GatewayOptions options);
  Status listen();
  // Until SIGTERM or SIGINT, and what is in flight then. The exit status.
  int run();
  [[nodiscard]] std::uint16_t port() const noexcept { return server_.port(); }
  [[nodiscard]] const GrpcDoor* grpc() const noexcept { return grpc_.get(); }  // null: not wanted

 private:
  void on_signal();
  void looked();
  void drain_further();
  [[nodiscard]] double rate() const;
  [[nodiscard]] std::string agent_line() const;
  [[nodiscard]] std::unique_ptr<Job> picture(const std::string& application);
  [[nodiscard]] Reply metrics(const Head& head) const;

  const GatewayOptions options_;
  HeldBytes held_;  // outlives whatever waits in the event loop
  boost::asio::io_context io_;
  bool draining_ = false;
  std::map<std::string, ModelCounts> counts_;
  Admission admission_;
  SharedMemory regions_;
  Node node_;
  Serving serving_;
  Routes routes_;
  Decoder decoder_;
  Server server_;
  AgentShare share_;
  double slack_ = 1;
  std::unique_ptr<Agent> agent_;
  std::unique_ptr<GrpcDoor> grpc_;
  boost::asio::signal_set signals_;
  boost::asio::steady_timer drain_timer_;
  std::int64_t drain_began_ns_ = 0, quiet_since_ns_ = 0;
};

}  // namespace leat::gateway
