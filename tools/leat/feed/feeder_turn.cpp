// A feeder whose stream waits for grants: with a picture at hand, until it is its turn. What is not wanted is neither
// converted nor copied, and of a raw file not even read.
#include <algorithm>

#include "tools/leat/feed/feeder.h"

namespace leat::tools {

bool Feeder::await_turn(std::int64_t capture_ns, std::int64_t start_ns, const std::atomic<bool>& stop) {
  if (!waits_for_grants_) return true;
  Stream& stream = *lanes_.front().stream;
  // Until the next picture has to be made ready, which takes its place.
  const std::int64_t until_ns = start_ns + pace_.next_due() - decode_ns_;
  while (!stream.wanted(capture_ns)) {
    const std::int64_t left_ns = until_ns - ::leat_now_ns();
    if (left_ns <= 0 || !client_->connected() || stop.load(std::memory_order_relaxed)) return false;
    (void)client_->wait_any(std::chrono::nanoseconds(std::min(left_ns, kLongestWait)));
    while (take_answer(0)) {
    }
  }
  return true;
}

}  // namespace leat::tools
