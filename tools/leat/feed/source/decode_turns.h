// Feeders of one program that decode on the same cores take turns, so many at once as there are cores: one picture
// after the other is in time where all at once none would be. Whose turn it is: a newcomer's, one that has just passed
// over pictures, comes after those that are being served, since its key frame costs many pictures of theirs; among
// equals the picture that was due first. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <semaphore>
#include <vector>

namespace leat::tools {

class DecodeTurns {
 public:
  explicit DecodeTurns(std::size_t at_once) : free_(at_once) {}

  [[nodiscard]] std::size_t waiting() {
    const std::lock_guard lock(mutex_);
    return waiters_.size();
  }

  // Waits for the caller's turn; it ends with this object, or before.
  class Turn {
   public:
    Turn() = default;
    Turn(DecodeTurns& turns, bool served, std::int64_t due_ns) : turns_(&turns) { turns.begin(served, due_ns); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() { end(); }
    void end() noexcept {
      if (turns_ != nullptr) turns_->end();
      turns_ = nullptr;
    }

   private:
    DecodeTurns* turns_ = nullptr;
  };

 private:
  struct Waiter {
    bool served;
    std::int64_t due_ns;
    std::binary_semaphore* go;
  };
  void begin(bool served, std::int64_t due_ns);
  void end() noexcept;

  std::mutex mutex_;
  std::size_t free_;
  std::vector<Waiter> waiters_;
};

}  // namespace leat::tools
