#include "tools/leat/top/facts/last_frames.h"

namespace leat::tools::top {

void LastFrames::take(std::span<const shm::Event> events) {
  for (const shm::Event& e : events) {
    if (e.kind == shm::EventKind::stream_opened) frames_.erase(e.stream);
    if (e.kind != shm::EventKind::answered || e.stream >= shm::kMaxRecords[static_cast<int>(shm::RecordKind::stream)])
      continue;
    auto& of = frames_[e.stream];
    of.push_back({static_cast<Outcome>(e.a), static_cast<std::int64_t>(e.c)});
    if (of.size() > kKept) of.pop_front();
  }
}

const std::deque<LastFrame>* LastFrames::of(std::uint32_t stream) const noexcept {
  const auto found = frames_.find(stream);
  return found == frames_.end() || found->second.empty() ? nullptr : &found->second;
}

}  // namespace leat::tools::top
