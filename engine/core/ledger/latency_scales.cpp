#include "engine/core/ledger/latency_scales.h"

#include <algorithm>
#include <limits>

namespace leat::core {
namespace {

constexpr TimeNs kActive = 1'000'000'000;
constexpr TimeNs kApart = 500'000'000;
constexpr TimeNs kJudgeEvery = 10'000'000;
constexpr double kGain = 1.0 / 16;  // of a whole request on its user's latency scale
constexpr double kMin = .25;        // less is not believed
constexpr double kDear = 1.5,
                 kCheap = 1.25;  // times the others' latency scale: dear from the one on, until below the other

}  // namespace

LatencyScales::Standing LatencyScales::enter(const Key& key, TimeNs now) noexcept {
  Scale* const mine = find_or_add(key, now);
  if (mine == nullptr) return {};
  mine->seen_ns = now;
  if (now >= judge_again_ns_) judge(now);
  return {.scale = mine->scale, .dear = mine->dear, .apart = now < mine->apart_until_ns};
}

bool LatencyScales::found_dear(const Key& key) noexcept {
  Scale* const mine = find(key);
  if (mine == nullptr) return false;
  const bool found = mine->dear && !mine->told;
  mine->told = mine->dear;
  return found;
}

double LatencyScales::of(const Key& key) const noexcept {
  const Scale* const scale = const_cast<LatencyScales*>(this)->find(key);
  return scale == nullptr ? 1 : scale->scale;
}

void LatencyScales::part(const Key& key, TimeNs now) noexcept {
  if (Scale* const scale = find(key); scale != nullptr) scale->apart_until_ns = now + kApart;
}

void LatencyScales::learn(const Key& key, double off, double part) noexcept {
  if (Scale* const scale = find(key); scale != nullptr)
    scale->scale = std::max(kMin, scale->scale + kGain * part * off);
}

LatencyScales::Scale* LatencyScales::find(const Key& key) noexcept {
  const auto found = std::ranges::lower_bound(scales_, key, {}, &Scale::key);
  return found != scales_.end() && found->key == key ? &*found : nullptr;
}

LatencyScales::Scale* LatencyScales::find_or_add(const Key& key, TimeNs now) noexcept {
  if (Scale* const found = find(key); found != nullptr) return found;
  if (scales_.size() == scales_.capacity()) {  // the place of whoever has been idle longest
    const auto longest = std::ranges::min_element(scales_, {}, &Scale::seen_ns);
    if (longest == scales_.end() || now - longest->seen_ns < kActive) return nullptr;
    scales_.erase(longest);
  }
  const auto place = std::ranges::lower_bound(scales_, key, {}, &Scale::key);
  return &*scales_.insert(place, {.key = key, .seen_ns = now});
}

void LatencyScales::judge(TimeNs now) noexcept {
  judge_again_ns_ = now + kJudgeEvery;
  for (auto application = scales_.begin(); application != scales_.end();) {
    const auto other = std::find_if(application, scales_.end(),
                                    [&](const Scale& p) { return p.key.application != application->key.application; });
    judge(application, other, now);
    application = other;
  }
}

// A machine that is slower than its profile is so for all, and frames that take less than planned make nobody else's
// dear.
void LatencyScales::judge(Place first, Place last, TimeNs now) noexcept {
  constexpr double kNobody = std::numeric_limits<double>::max();
  double min = kNobody, next = kNobody;  // of the cheapest user, and of the others
  auto cheapest = last;
  for (auto p = first; p != last; ++p) {
    if (now - p->seen_ns >= kActive) continue;
    if (p->scale < min) {
      next = min;
      min = p->scale;
      cheapest = p;
    } else {
      next = std::min(next, p->scale);
    }
  }
  for (auto p = first; p != last; ++p) {
    const double others = p == cheapest ? next : min;
    p->dear = others != kNobody && p->scale > (p->dear ? kCheap : kDear) * std::max(1.0, others);
  }
}

}  // namespace leat::core
