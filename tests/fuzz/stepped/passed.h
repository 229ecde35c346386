// Descriptors of every kind, to be passed where leatd expects none. Each message that carries any also carries the
// writing end of a pipe (a tracer), held by nobody else: when its other end hangs up, leatd has let go of what came.
//
// Thread rule: one thread.
#pragma once

#include <poll.h>

#include <cstdint>
#include <span>
#include <vector>

#include "shm/src/segments/segment.h"

namespace leat::fuzz {

enum class Kind : std::uint8_t {
  pipe,            // an end whose other end is closed
  socket,          // with data that nobody reads
  lingering,       // TCP with unsent data: who closes it last waits
  small_memory,    // a memfd without seals
  huge_memory,     // a memfd of 2^40 bytes, none of them there
  zero,            // /dev/zero
  null,            // /dev/null
  folder,          // the root
  event,           // an eventfd
  epoll,           // that waits for the connection itself
  deleted,         // a file without a name
  own_connection,  // the sender's end of the connection it goes through
  uplink,          // what leatd gave
  bell,
  nested,  // a socket in whose queue a tracer lies
  count_
};

// What a sender has that may be passed back to leatd; -1: it has not.
struct Own {
  int connection = -1, uplink = -1, bell = -1;
};

class Passed {
 public:
  static void prepare();  // makes what all inputs share, before descriptors are counted
  Passed();
  ~Passed();
  Passed(const Passed&) = delete;
  Passed& operator=(const Passed&) = delete;

  // Sends `bytes` and descriptors of `kinds`, each of which counts; false: it did not go.
  bool send(int socket, std::span<const std::byte> bytes, std::span<const Kind> kinds, const Own& own);
  // How many tracers were let go since the last look.
  std::uint32_t let_go();
  [[nodiscard]] std::size_t held() const { return tracers_.size(); }  // not let go
  [[nodiscard]] bool lingers() const { return lingers_; }             // one was made that does

  std::uint32_t sent = 0, refused = 0;  // messages with descriptors; refused: by the kernel (EPERM)

 private:
  int make(Kind kind, const Own& own);
  shm::Fd tracer();
  int lingering();

  std::vector<pollfd> tracers_;
  std::vector<shm::Fd> made_;  // until the message has gone
  bool lingers_ = false;       // one an input: each may cost leatd the time until it is interrupted
};

// While it lives, `wanted`, whoever waits in the kernel is interrupted every 20 ms: a socket that lingers ends its
// wait.
class Interrupted {
 public:
  explicit Interrupted(bool wanted);
  ~Interrupted();
  Interrupted(const Interrupted&) = delete;
  Interrupted& operator=(const Interrupted&) = delete;

 private:
  bool wanted_;
};

}  // namespace leat::fuzz
