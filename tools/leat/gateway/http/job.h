// What serves requests, and what it sees of the connection that a request came over.
//
//   Service::begin()     a head has come: a job for it
//   Job::start()         reads the body where it wants it (Channel::read), does what it does, and replies once
//   ~Job()               the reply was given, or the connection is gone: everything the job holds goes with it
//
// Thread rule: one thread, the gateway's; nothing here blocks.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "tools/leat/gateway/http/head.h"
#include "tools/leat/gateway/http/reply.h"

namespace leat::gateway {

// Who is at the other end.
struct Peer {
  std::string who;       // "127.0.0.1", "uid 1000": whose requests are counted together
  bool local = false;    // a Unix socket or a loopback address
  bool by_unix = false;  // then `uid` is the kernel's word
  uid_t uid = 0;
};

class Channel {
 public:
  virtual ~Channel() = default;
  [[nodiscard]] virtual const Head& head() const = 0;
  [[nodiscard]] virtual const Peer& peer() const = 0;
  [[nodiscard]] virtual std::int64_t began_ns() const = 0;    // the head's first byte
  [[nodiscard]] virtual std::uint64_t body_left() const = 0;  // not read yet
  // Fills `place` (at most body_left() bytes) with the body's next bytes, then calls `then`, later. One at a time.
  virtual void read(std::span<std::byte> place, std::function<void()> then) = 0;
  // The one reply; later calls do nothing. The job is destroyed soon after, not within the call.
  virtual void reply(Reply reply) = 0;
  // From then on the request is answered with 504 if it is not by that time.
  virtual void give_up_at(std::int64_t ns) = 0;
};

class Job {
 public:
  virtual ~Job() = default;
  virtual void start(Channel& channel) = 0;
  // The bytes of a read() come slowly, and the first `got` of its place are there: where they are to go on instead,
  // with those copied, or empty to leave it.
  virtual std::span<std::byte> other_place(std::size_t got) {
    (void)got;
    return {};
  }
};

class Service {
 public:
  virtual ~Service() = default;
  virtual std::unique_ptr<Job> begin(const Head& head, const Peer& peer) = 0;
};

// Bytes that connections and jobs keep for those who read or write slowly: all of them together within a bound.
class HeldBytes {
 public:
  explicit HeldBytes(std::uint64_t max) : max_(max) {}
  [[nodiscard]] bool take(std::uint64_t bytes) noexcept {
    if (bytes > max_ - now_) return false;
    now_ += bytes;
    return true;
  }
  void give(std::uint64_t bytes) noexcept { now_ -= bytes; }
  [[nodiscard]] std::uint64_t now() const noexcept { return now_; }

 private:
  std::uint64_t max_, now_ = 0;
};
// Memory out of them, given back with it.
class HeldMemory {
 public:
  HeldMemory() = default;
  HeldMemory(HeldMemory&& other) noexcept { swap(other); }
  HeldMemory& operator=(HeldMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~HeldMemory() {
    if (from_ != nullptr) from_->give(bytes_.size());
  }
  // False: there is no room.
  [[nodiscard]] bool take(HeldBytes& from, std::size_t bytes) {
    if (!from.take(bytes)) return false;
    from_ = &from;
    bytes_.resize(bytes);
    return true;
  }
  [[nodiscard]] std::span<std::byte> bytes() noexcept { return bytes_; }
  [[nodiscard]] std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }

 private:
  void swap(HeldMemory& other) noexcept {
    std::swap(from_, other.from_);
    std::swap(bytes_, other.bytes_);
  }
  HeldBytes* from_ = nullptr;
  std::vector<std::byte> bytes_;
};

}  // namespace leat::gateway
