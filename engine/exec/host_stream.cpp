#include "engine/exec/host_stream.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

namespace leat::exec {

Result<std::unique_ptr<HostStream>> HostStream::open() {
  Fd bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (bell.get() < 0) return Error{std::string("no descriptor for a second thread: ") + std::strerror(errno)};
  std::unique_ptr<HostStream> out(new HostStream(std::move(bell)));
  try {
    out->thread_ = std::thread([stream = out.get()] { stream->run(); });
  } catch (const std::system_error& e) {
    return Error{std::string("no second thread: ") + e.what()};
  }
  return out;
}

HostStream::~HostStream() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  given_there_.notify_one();
  if (thread_.joinable()) thread_.join();
}

std::uint64_t HostStream::give(Work work, void* argument) noexcept {
  std::uint64_t ticket = 0;
  {
    std::unique_lock lock(mutex_);
    ended_there_.wait(lock, [this] { return given_ - ended_.load(std::memory_order_relaxed) < kRoom; });
    pieces_[given_ % kRoom] = {work, argument};
    ticket = ++given_;
  }
  given_there_.notify_one();
  return ticket;
}

void HostStream::wait(std::uint64_t ticket) noexcept {
  std::unique_lock lock(mutex_);
  ended_there_.wait(lock, [&] { return ended(ticket); });
}

void HostStream::drain() noexcept {
  std::uint64_t rings = 0;
  (void)!::read(bell_.get(), &rings, sizeof rings);  // none is as good
}

void HostStream::run() noexcept {
  std::unique_lock lock(mutex_);
  while (true) {
    const std::uint64_t next = ended_.load(std::memory_order_relaxed);
    given_there_.wait(lock, [&] { return ending_ || given_ != next; });
    if (given_ == next) return;
    const Piece piece = pieces_[next % kRoom];
    lock.unlock();
    const auto began = std::chrono::steady_clock::now();
    piece.work(piece.argument);
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - began;
    busy_ns_.store(busy_ns_.load(std::memory_order_relaxed) + took.count(), std::memory_order_relaxed);
    lock.lock();
    ended_.store(next + 1, std::memory_order_relaxed);
    ended_there_.notify_all();
    constexpr std::uint64_t kOnce = 1;
    (void)!::write(bell_.get(), &kOnce, sizeof kOnce);
  }
}

}  // namespace leat::exec
