// The gateway's side of its leatd: what it serves and counts (looked at five times a second), and the streams that
// requests share. Threads of its own do what waits for leatd: one asks, the other opens streams and closes them, which
// takes as long as their memory does, and must not make this node look dead. Streams that nobody has used for a while
// are closed, and the longest unused gives way to a new one. Thread rule: the gateway's thread.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tools/leat/gateway/serving/catalogue.h"
#include "tools/leat/gateway/serving/link.h"
#include "tools/leat/top/sample.h"

namespace leat::gateway {

struct NodeOptions {
  std::string socket;  // leatd's
  std::string name;    // what answers call this node
  std::uint32_t streams = 8;
  std::uint32_t depth = 8;
  std::int64_t unused_ns = 30'000'000'000;
};

// A thread that does one thing after the other, until its owner goes and nothing is left to do.
class InTurn {
 public:
  InTurn() : keep_(boost::asio::make_work_guard(io_)), thread_([this] { io_.run(); }) {}
  ~InTurn() { end(); }
  InTurn(const InTurn&) = delete;
  InTurn& operator=(const InTurn&) = delete;
  void post(std::function<void()> work) { boost::asio::post(io_, std::move(work)); }
  void end() {
    keep_.reset();
    if (thread_.joinable()) thread_.join();
  }

 private:
  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> keep_;
  std::thread thread_;
};

class Node {
 public:
  Node(boost::asio::io_context& io, NodeOptions options);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  [[nodiscard]] const Catalogue& catalogue() const noexcept { return *catalogue_; }
  // As it is now, kept for as long as wanted.
  [[nodiscard]] std::shared_ptr<const Catalogue> kept() const noexcept { return catalogue_; }
  // It serves, and has said so a moment ago: a frozen leatd does not.
  [[nodiscard]] bool ready() const noexcept;
  [[nodiscard]] std::string why_not() const;
  // leatd's counters at the two latest looks; empty where it does not answer.
  [[nodiscard]] const tools::Window& window() const noexcept { return window_; }
  // Called after each look.
  std::function<void()> looked;
  [[nodiscard]] const NodeOptions& options() const noexcept { return options_; }

  // Null: the refusal says why.
  using OnLink = std::function<void(std::shared_ptr<Link>, const Refusal&)>;
  // Calls back with the stream, at once where it is open.
  void with_link(const StreamKey& key, std::vector<leat_tensor_shape> tensors, OnLink then);

 private:
  struct Seen {
    Catalogue catalogue;
    std::optional<tools::Sample> sample;
  };
  void ask();
  Seen seen();
  void told(Seen seen);
  void opened(const StreamSpec& spec, Link::Opening opening);
  void sweep();
  bool make_room();
  void beat();

  boost::asio::io_context& io_;
  const NodeOptions options_;
  std::shared_ptr<const Catalogue> catalogue_ = std::make_shared<Catalogue>();
  tools::Window window_;
  std::map<StreamKey, std::shared_ptr<Link>> links_;
  std::map<StreamKey, std::vector<OnLink>> opening_;
  boost::asio::steady_timer timer_, beat_;
  unsigned silent_beats_ = 0;  // since leatd answered last
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::optional<tools::Watch> watch_;  // the asking thread's
  InTurn asking_, streams_;
};

}  // namespace leat::gateway
