// Messages between two processes of one program: a kind, a body and up to kMaxFds descriptors over a SOCK_SEQPACKET
// socket pair (descriptors by SCM_RIGHTS). A message arrives whole or not at all; the death of the other end is seen as
// `closed`, also after kill -9, because the kernel closes its end. Not thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shm/include/leat/result.hpp"
#include "tools/base/subprocess/ending.h"
#include "tools/base/text/fd.h"

namespace leat::gpu {

using subprocess::after;
using subprocess::Clock;
using subprocess::Deadline;

inline constexpr std::size_t kMaxMessageBytes = 96 * 1024;
inline constexpr std::size_t kMaxFds = 4;

struct Message {
  std::string kind;
  std::string body;
  std::vector<Fd> fds;  // close-on-exec
};

enum class Receipt : unsigned char { message, timed_out, closed, broken };

struct Received {
  Receipt receipt = Receipt::broken;
  Message message;   // receipt == message
  std::string text;  // otherwise one line that says what happened
};

class Channel {
 public:
  Channel() = default;
  explicit Channel(Fd socket) noexcept : socket_(std::move(socket)) {}

  // Two connected ends, both close-on-exec.
  static Result<std::pair<Channel, Channel>> pair();

  // The descriptors stay the caller's. Blocks while the other end's buffer is full. Fails when it is gone.
  Status send(std::string_view kind, std::string_view body = {}, std::span<const int> fds = {});
  Received receive(Deadline deadline);
  // The body of the next message, which must be of this kind; else one line of text. A message of kind "failed" carries
  // the other side's own line.
  Result<Message> expect(std::string_view kind, Deadline deadline);

  [[nodiscard]] int fd() const noexcept { return socket_.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(socket_); }
  void close() noexcept { socket_.reset(); }
  [[nodiscard]] Fd take() noexcept { return std::move(socket_); }

 private:
  Fd socket_;
};

}  // namespace leat::gpu
