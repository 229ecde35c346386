#include "cuda/fake/stream.h"

#include <time.h>

#include <atomic>
#include <chrono>

namespace leat::fake {
namespace {
std::atomic<int> running{0};  // pieces of work, of all streams; raised before a stream looks whether it is dead
}

void Stream::settle() {
  constexpr timespec kLook{0, 50'000};
  while (running.load() != 0) (void)::nanosleep(&kLook, nullptr);
}

Stream::Stream(std::uint64_t seed, std::function<std::uint32_t()> longest_us, std::function<bool()> dead)
    : longest_us_(std::move(longest_us)), dead_(std::move(dead)), random_(seed), thread_([this] { run(); }) {}

Stream::~Stream() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    work_.clear();
  }
  pushed_.notify_all();
  thread_.join();
}

bool Stream::begin_capture() {
  if (captured_) return false;
  captured_.emplace();
  return true;
}
bool Stream::end_capture(std::vector<std::function<void()>>* collected) {
  if (!captured_) return false;
  *collected = std::move(*captured_);
  captured_.reset();
  return true;
}

std::uint64_t Stream::push(std::function<void()> work) {
  std::uint64_t ticket = 0;
  if (captured_) {
    captured_->push_back(std::move(work));
    return 0;
  }
  {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    ticket = ++given_;
  }
  pushed_.notify_one();
  return ticket;
}

bool Stream::wait_for(std::uint64_t ticket) {
  constexpr std::chrono::milliseconds kLook{5};  // a fault of another process rings no bell here
  std::unique_lock lock(mutex_);
  while (!ended_.wait_until(lock, std::chrono::system_clock::now() + kLook, [&] { return done_ >= ticket; }))
    if (dead_()) {
      lock.unlock();
      settle();
      return false;
    }
  return true;
}

bool Stream::done(std::uint64_t ticket) {
  const std::lock_guard lock(mutex_);
  return done_ >= ticket;
}

void Stream::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    pushed_.wait(lock, [this] { return ending_ || !work_.empty(); });
    if (ending_) return;
    auto work = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    if (const std::uint32_t longest = longest_us_(); longest != 0) {
      const auto us = static_cast<long>(random_() % (longest + 1));
      const timespec pause{us / 1'000'000, us % 1'000'000 * 1000};
      (void)::nanosleep(&pause, nullptr);
    }
    ++running;
    if (!dead_()) work();
    --running;
    lock.lock();
    ++done_;
    ended_.notify_all();
  }
}

}  // namespace leat::fake
