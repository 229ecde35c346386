// The smallest daemon that speaks the whole control protocol and answers every frame: for tests of the client library,
// of the port and of what hostile clients can do, without models or scheduling. One thread, which is both control and
// scheduler.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "shm/src/client/client_port.h"
#include "shm/src/counters/counters.h"
#include "shm/src/protocol/control_protocol.h"
#include "shm/src/protocol/listener.h"

namespace leat::shm::test {

// FNV-1a over the pixels of a slot: what the loopback daemon answers, so that tests can prove integrity end to end.
std::uint64_t checksum(const std::uint8_t* data, std::uint64_t bytes) noexcept;

class LoopbackDaemon {
 public:
  struct Options {
    std::string socket;
    std::vector<std::string> applications = {"echo"};
    // Called for each submit taken. True: answer at once (completed, with a checksum). False: it stays in flight until
    // its cancel, or until release_held().
    std::function<bool(const Taken&)> answer_now = [](const Taken&) { return true; };
    bool refuse_uid = false;
  };
  explicit LoopbackDaemon(Options options);
  ~LoopbackDaemon();  // ends every connection

  // Why it could not start; empty: it serves.
  const std::string& problem() const noexcept { return problem_; }
  void release_held() noexcept;  // answers everything in flight, once
  std::uint64_t violations(Violation cause) const noexcept { return violations_[static_cast<std::size_t>(cause)]; }
  std::uint64_t violations() const noexcept;
  std::uint64_t answered() const noexcept { return answered_; }
  std::uint64_t clients() const noexcept { return live_; }
  std::uint64_t wakes_sent() const noexcept { return wakes_; }

 private:
  struct Connection {
    Fd socket;
    std::unique_ptr<ClientPort> port;  // empty before hello and for observers
    bool observer = false;
    std::vector<Taken> held;
  };
  void run();
  void turn();
  bool serve_control(Connection& c);  // false: end this connection
  bool handle(Connection& c, const Header& header);
  bool welcome(Connection& c, const Hello& m);
  bool open_stream(Connection& c);
  void serve_port(Connection& c);
  void answer(Connection& c, const Taken& t, Outcome outcome, Reason reason);
  void end(Connection& c);
  bool idle();

  Options options_;
  std::string problem_;
  Listener listener_;
  Doorbell stop_bell_;
  CountersWriter counters_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<std::byte> packet_;
  std::array<std::atomic<std::uint64_t>, 32> violations_{};
  std::atomic<std::uint64_t> answered_{0}, live_{0}, wakes_{0};
  std::atomic<bool> stop_{false}, release_{false};
  std::thread thread_;
};

}  // namespace leat::shm::test
