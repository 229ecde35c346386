#include "tools/leat/feed/source/decode_turns.h"

#include <algorithm>

namespace leat::tools {

void DecodeTurns::begin(bool served, std::int64_t due_ns) {
  std::binary_semaphore go(0);
  {
    const std::lock_guard lock(mutex_);
    if (free_ > 0) {
      --free_;
      return;
    }
    waiters_.push_back({served, due_ns, &go});
  }
  go.acquire();
}

void DecodeTurns::end() noexcept {
  const std::lock_guard lock(mutex_);
  const auto next = std::min_element(waiters_.begin(), waiters_.end(), [](const Waiter& a, const Waiter& b) {
    return a.served != b.served ? a.served : a.due_ns < b.due_ns;
  });
  if (next == waiters_.end()) {
    ++free_;
    return;
  }
  std::binary_semaphore* const go = next->go;
  waiters_.erase(next);
  go->release();  // under the lock: its owner may be gone right after
}

}  // namespace leat::tools
