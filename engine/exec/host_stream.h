// A thread on which work goes on in the order in which it was given, beside the thread that gives it: what a device's
// stream is on a device. A module's runs go on there while the batch before is answered and the next prepared; on a
// device it waits for what was put on the device's stream. Thread rule: one thread gives work and waits. Errors: open()
// one line; nothing else can fail. Work ends before this goes.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

#include "leat/result.hpp"
#include "tools/base/text/fd.h"

namespace leat::exec {

class HostStream {
 public:
  static constexpr std::uint32_t kRoom = 4;  // pieces of work given and not ended
  using Work = void (*)(void* argument) noexcept;

  static Result<std::unique_ptr<HostStream>> open();
  ~HostStream();
  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;

  // Its ticket, 1 and more. The argument is the stream's until that has been waited for.
  std::uint64_t give(Work work, void* argument) noexcept;
  // wait() would not: what the work has done is seen behind that, not behind this.
  [[nodiscard]] bool ended(std::uint64_t ticket) const noexcept {
    return ended_.load(std::memory_order_relaxed) >= ticket;
  }
  void wait(std::uint64_t ticket) noexcept;
  void wait_all() noexcept { wait(given_); }
  // That work has taken so far, of which all that was waited for is in it: the rest of the time nothing was there.
  [[nodiscard]] std::int64_t busy_ns() const noexcept { return busy_ns_.load(std::memory_order_relaxed); }

  // Readable once something has ended since drain().
  [[nodiscard]] int fd() const noexcept { return bell_.get(); }
  void drain() noexcept;

 private:
  struct Piece {
    Work work = nullptr;
    void* argument = nullptr;
  };
  explicit HostStream(Fd bell) : bell_(std::move(bell)) {}
  void run() noexcept;

  Fd bell_;
  std::mutex mutex_;
  std::condition_variable given_there_, ended_there_;
  std::array<Piece, kRoom> pieces_;
  std::uint64_t given_ = 0;
  std::atomic<std::uint64_t> ended_{0};
  std::atomic<std::int64_t> busy_ns_{0};
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace leat::exec
