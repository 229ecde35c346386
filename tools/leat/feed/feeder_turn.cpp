// A feeder whose stream waits for grants: with a picture at hand, until it is its turn. What is not wanted is neither
// converted nor copied, and of a raw file not even read.
#include <algorithm>

#include "tools/leat/feed/feeder.h"

namespace leat::tools {
namespace {

// One connection rings for one thread, and has many streams: each looks so often, which is within the time that its
// turn is kept.
constexpr std::int64_t kTurnLookNs = 4'000'000;

}  // namespace

bool Feeder::await_turn(std::int64_t capture_ns, const std::atomic<bool>& stop) {
  if (!waits_for_grants_) return true;
  SharedStream& stream = *lanes_.front().stream;
  // Until the next picture has to be made ready, which takes its place.
  const std::int64_t until_ns = start_ns_ + clock_.next_due() - decode_ns_;
  while (!stream.wanted(capture_ns)) {
    const std::int64_t left_ns = until_ns - ::leat_now_ns();
    if (left_ns <= 0 || stream.lost() || stop.load(std::memory_order_relaxed)) return false;
    (void)take_answer(std::min(left_ns, kTurnLookNs));
  }
  return true;
}

}  // namespace leat::tools
