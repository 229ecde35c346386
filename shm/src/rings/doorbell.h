// Waking a peer that sleeps, and only then.
//
// The sleeper owns a SleepWord in shared memory (even: awake, odd: asleep). To sleep it calls may_sleep():
// announce_sleep() for every word it has, one full fence, a look at all its rings once more, and only if they are empty
// it blocks on its descriptor. The waker pushes its batch, then calls Waker::should_ring() once: a full fence, a look
// at the word, a system call only if it is odd and was not rung already for this sleep. Of the two (sleeper's re-check,
// waker's look) at least one sees the other: that is what the seq_cst fences are for (Dekker's pattern); weaker orders
// lose wakes.
//
// The waker never writes the word, so it may lie in memory that is read-only to the waker.
//
// Two kinds of bell. Doorbell (an eventfd) between threads of one process. BellSocket (a socket pair) between
// the daemon and a client: O_NONBLOCK lives in the file description a hostile peer shares, so an eventfd could be made
// to block the daemon; send and recv with MSG_DONTWAIT cannot. It also hangs up when the peer dies. What a socket can
// be made to carry is a descriptor, and whoever takes or drops one closes it, for as long as its maker likes. So the
// daemon's end refuses them where the kernel can (kernel_features.h), and elsewhere looks before it takes anything. It
// is a pair of packets, not of bytes: those have urgent ones and spliced pages, which are dropped unseen.
#pragma once

#include <atomic>
#include <cstdint>

#include "leat/result.hpp"
#include "shm/src/rings/fences.h"
#include "shm/src/segments/segment.h"
#include "shm/src/segments/segment_layout.h"

namespace leat::shm {

// Sleeper's side. Between announce_sleep() and blocking stands may_sleep().
inline void announce_sleep(SleepWord& word) noexcept {
  atomic_ref value(word.value);
  value.store(value.load(std::memory_order_relaxed) | 1u, std::memory_order_relaxed);  // ordered by full_fence()
}
inline void announce_awake(SleepWord& word) noexcept {
  atomic_ref value(word.value);
  const std::uint32_t now = value.load(std::memory_order_relaxed);
  // relaxed: a waker that still sees the old value only rings once too often.
  if (now & 1u) value.store(now + 1, std::memory_order_relaxed);
}

// Before blocking: `announce` calls announce_sleep() for every word and publishes what was taken, `empty` looks at
// everything that could wake us. True: nothing came, block now.
template <class Announce, class Empty>
[[nodiscard]] bool may_sleep(const Announce& announce, const Empty& empty) noexcept {
  announce();
  full_fence();  // our words before our look; partner: Waker::should_ring()
  return empty();
}

// An eventfd: any number of rings until drained are one wake. Between threads of one process: whoever holds it may
// change its flags and make others wait.
class Doorbell {
 public:
  static Result<Doorbell> create();
  explicit Doorbell(Fd fd) noexcept : fd_(std::move(fd)) {}  // received from its maker
  Doorbell() = default;
  int fd() const noexcept { return fd_.get(); }
  void ring() const noexcept;
  void drain() const noexcept;  // makes the fd unreadable again

 private:
  Fd fd_;
};

// What a look at the bell found. descriptors: the peer has sent some, which are still in it: it must not be drained any
// more, and is to be closed where nobody waits for that.
enum class Drained : std::uint8_t { rings, hung_up, descriptors };

// One end of a socket pair: either end rings the other.
class BellSocket {
 public:
  struct Pair;
  static Result<Pair> create();
  explicit BellSocket(Fd fd) noexcept : fd_(std::move(fd)) {}  // the client's end: it trusts the daemon
  BellSocket() = default;
  int fd() const noexcept { return fd_.get(); }
  void ring() const noexcept;  // never blocks; if the peer has not drained yet it will wake anyway
  // Takes one ring, since a sleeper is rung once; never blocks. What else was sent leaves it readable.
  Drained drain() const noexcept;
  // Blocks until rung, hung up, or `timeout_ns` (< 0: for ever). False: time is up.
  bool wait(std::int64_t timeout_ns) const noexcept;
  bool hung_up() const noexcept;  // looks without draining
  void hang_up() const noexcept;  // both ends see it at once, whoever still holds the descriptor

 private:
  Fd fd_;
  bool looks_first_ = false;  // the peer is not trusted and can send descriptors
};
struct BellSocket::Pair {
  BellSocket daemon;
  Fd client;  // to be passed on
};

// Waker's side of one sleeper.
class Waker {
 public:
  Waker() = default;
  explicit Waker(const SleepWord* word) noexcept : word_(const_cast<SleepWord*>(word)) {}

  // Call after pushing a batch. True: the peer sleeps and has not been rung for this sleep: ring its bell now.
  [[nodiscard]] bool should_ring() noexcept {
    full_fence();  // our pushes before our look; partner: may_sleep()
    const std::uint32_t now = atomic_ref(word_->value).load(std::memory_order_relaxed);
    if ((now & 1u) == 0 || now == rung_) return false;
    rung_ = now;
    return true;
  }

 private:
  SleepWord* word_ = nullptr;
  std::uint32_t rung_ = 0;  // the (odd) word we have rung for
};

}  // namespace leat::shm
