// One connection: request after request, each read, served and answered before the next is looked at. It waits for its
// descriptor to be readable or writable and never holds a place of others (a frame slot, a result) while it does:
// bytes that come slowly go to memory of their own, answers that are read slowly are copied. Every wait has an end.
// Thread rule: the gateway's thread.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/leat/gateway/http/job.h"

namespace leat::gateway {

struct HttpLimits {
  std::uint64_t body_bytes = std::uint64_t{64} << 20;
  std::uint32_t connections = 1024;
  std::uint32_t connections_each = 512;  // of one peer
  std::int64_t idle_ns = 60'000'000'000;
  std::int64_t head_ns = 5'000'000'000;
  std::int64_t body_ns = 10'000'000'000;
  std::int64_t write_ns = 10'000'000'000;
  std::int64_t slow_ns = 50'000'000;  // a body that takes longer loses the slot it is written into
};

struct HttpCounts {
  std::uint64_t accepted = 0, refused = 0, evicted = 0, requests = 0, timed_out = 0, bad_heads = 0, slow_bodies = 0;
};

class Connection : public Channel, public std::enable_shared_from_this<Connection> {
 public:
  // What all connections of a server share.
  struct Shared {
    Service& service;
    const HttpLimits& limits;
    HeldBytes& held;
    HttpCounts& counts;
    const bool& draining;
    std::function<void(Connection&)> ended;  // it is no longer one of the server's
  };

  Connection(boost::asio::io_context& io, int fd, Peer peer, Shared& shared);
  ~Connection() override;
  void start();
  // Looks whether a wait has come to its end.
  void look(std::int64_t now);
  void close();
  [[nodiscard]] bool idle() const noexcept { return state_ == State::head && in_.empty(); }
  [[nodiscard]] bool busy() const noexcept { return state_ == State::body || state_ == State::working; }
  // The next step is its peer's: bytes to send, or to take.
  [[nodiscard]] bool waits_for_peer() const noexcept { return state_ != State::working && state_ != State::closed; }
  [[nodiscard]] bool used() const noexcept { return used_; }  // it has been answered before
  [[nodiscard]] std::int64_t since_ns() const noexcept { return since_ns_; }

  [[nodiscard]] const Head& head() const override { return head_; }
  [[nodiscard]] const Peer& peer() const override { return peer_; }
  [[nodiscard]] std::int64_t began_ns() const override { return began_ns_; }
  [[nodiscard]] std::uint64_t body_left() const override { return body_left_; }
  void read(std::span<std::byte> place, std::function<void()> then) override;
  void reply(Reply reply) override;
  void give_up_at(std::int64_t ns) override { give_up_ns_ = ns; }

 private:
  enum class State : std::uint8_t { head, body, working, writing, ending, closed };
  void enter(State state, std::int64_t wait_ns);
  void wait_readable();
  void wait_writable();
  void on_readable();
  void on_head(bool more_came);
  void begin_request();
  void refuse(int status, const std::string& why);
  void fill();
  void send();
  bool send_some();
  void keep_unsent(std::size_t sent);
  void sent();
  void read_away();

  boost::asio::posix::stream_descriptor fd_;
  const Peer peer_;
  Shared& shared_;
  State state_ = State::head;
  std::int64_t since_ns_ = 0, deadline_ns_ = 0, began_ns_ = 0, give_up_ns_ = 0;
  bool waiting_ = false;  // for the descriptor to be readable
  std::string in_;        // came and was not taken yet
  Head head_;
  std::unique_ptr<Job> job_;
  std::uint64_t body_left_ = 0, thrown_away_ = 0;
  std::span<std::byte> place_;
  std::size_t filled_ = 0;
  bool moved_ = false;
  std::function<void()> then_;
  bool replied_ = false, keep_alive_ = false, used_ = false;
  Reply reply_;
  std::string out_head_;
  HeldMemory out_;  // what could not be sent at once
  std::size_t out_sent_ = 0;
};

}  // namespace leat::gateway
