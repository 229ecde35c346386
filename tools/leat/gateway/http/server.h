// Where connections come from: TCP addresses and Unix sockets. It keeps their number within bounds (all of them, and of
// one peer), gives the places of those that idle to newcomers, and looks at every connection's limits forty times a
// second. Thread rule: the gateway's thread. Errors: one line.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "leat/result.hpp"
#include "tools/base/text/fd.h"
#include "tools/leat/gateway/http/connection.h"

namespace leat::gateway {

// "127.0.0.1:8000", "[::1]:8000", "8000" (127.0.0.1), "unix:/run/leat/gateway.sock".
struct Address {
  std::string host;  // empty: `path` is a Unix socket's
  std::uint16_t port = 0;
  std::string path;
  bool local = true;  // loopback, or a Unix socket
};
Result<Address> address_of(const std::string& text);
// Bound and listening; not blocking.
Result<Fd> listening_socket(const Address& address);

class Server {
 public:
  Server(boost::asio::io_context& io, Service& service, HttpLimits limits, HeldBytes& held);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Port 0: the kernel chooses; port() says which.
  Status listen(const Address& address);
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }  // of the latest TCP address
  void drain() noexcept { draining_ = true; }                          // replies close their connections from now on
  void close_idle();
  [[nodiscard]] std::size_t connections() const noexcept { return connections_.size(); }
  [[nodiscard]] std::size_t busy() const noexcept;
  [[nodiscard]] const HttpCounts& counts() const noexcept { return counts_; }

 private:
  struct Listener {
    boost::asio::posix::stream_descriptor fd;
    bool by_unix = false;
    std::string path;
  };
  void wait(Listener& listener);
  void accept(Listener& listener);
  void admit(Fd fd, Peer peer, bool may_wait);
  [[nodiscard]] bool full_for(const Peer& peer) const;
  [[nodiscard]] bool has_all_his(const Peer& peer) const;
  [[nodiscard]] Connection* longest_waited_for(const Peer& newcomer) const;
  void look();
  void ended(Connection& connection);

  boost::asio::io_context& io_;
  const HttpLimits limits_;
  HttpCounts counts_;
  bool draining_ = false;
  Connection::Shared shared_;
  std::list<Listener> listeners_;
  std::map<Connection*, std::shared_ptr<Connection>> connections_;
  std::map<std::string, std::uint32_t> of_peer_;
  boost::asio::steady_timer timer_;
  std::uint16_t port_ = 0;
};

}  // namespace leat::gateway
