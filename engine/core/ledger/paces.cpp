#include "engine/core/ledger/paces.h"

#include <algorithm>
#include <limits>

namespace leat::core {
namespace {

constexpr TimeNs kActive = 1'000'000'000;
constexpr TimeNs kApart = 500'000'000;
constexpr TimeNs kJudgeEvery = 10'000'000;
constexpr double kGain = 1.0 / 4;             // of a batch on its pace
constexpr double kLeast = .25;                // less is not believed
constexpr double kDear = 1.5, kCheap = 1.25;  // times the others' pace: dear from the one on, until below the other

}  // namespace

Paces::Standing Paces::enter(const Key& key, TimeNs now) noexcept {
  Pace* const mine = find_or_add(key, now);
  if (mine == nullptr) return {};
  mine->seen_ns = now;
  if (now >= judge_again_ns_) judge(now);
  return {.pace = mine->pace, .dear = mine->dear, .apart = now < mine->apart_until_ns};
}

bool Paces::found_dear(const Key& key) noexcept {
  Pace* const mine = find(key);
  if (mine == nullptr) return false;
  const bool found = mine->dear && !mine->told;
  mine->told = mine->dear;
  return found;
}

double Paces::of(const Key& key) const noexcept {
  const Pace* const pace = const_cast<Paces*>(this)->find(key);
  return pace == nullptr ? 1 : pace->pace;
}

void Paces::part(const Key& key, TimeNs now) noexcept {
  if (Pace* const pace = find(key); pace != nullptr) pace->apart_until_ns = now + kApart;
}

void Paces::learn(const Key& key, double off) noexcept {
  if (Pace* const pace = find(key); pace != nullptr) pace->pace = std::max(kLeast, pace->pace + kGain * off);
}

Paces::Pace* Paces::find(const Key& key) noexcept {
  const auto found = std::ranges::lower_bound(paces_, key, {}, &Pace::key);
  return found != paces_.end() && found->key == key ? &*found : nullptr;
}

Paces::Pace* Paces::find_or_add(const Key& key, TimeNs now) noexcept {
  if (Pace* const found = find(key); found != nullptr) return found;
  if (paces_.size() == paces_.capacity()) {  // the place of whoever has been idle longest
    const auto longest = std::ranges::min_element(paces_, {}, &Pace::seen_ns);
    if (longest == paces_.end() || now - longest->seen_ns < kActive) return nullptr;
    paces_.erase(longest);
  }
  const auto place = std::ranges::lower_bound(paces_, key, {}, &Pace::key);
  return &*paces_.insert(place, {.key = key, .seen_ns = now});
}

void Paces::judge(TimeNs now) noexcept {
  judge_again_ns_ = now + kJudgeEvery;
  for (auto application = paces_.begin(); application != paces_.end();) {
    const auto other = std::find_if(application, paces_.end(),
                                    [&](const Pace& p) { return p.key.application != application->key.application; });
    judge(application, other, now);
    application = other;
  }
}

// A machine that is slower than its profile is so for all, and frames that take less than planned make nobody else's
// dear.
void Paces::judge(Place first, Place last, TimeNs now) noexcept {
  constexpr double kNobody = std::numeric_limits<double>::max();
  double least = kNobody, next = kNobody;  // of the cheapest user, and of the others
  auto cheapest = last;
  for (auto p = first; p != last; ++p) {
    if (now - p->seen_ns >= kActive) continue;
    if (p->pace < least) {
      next = least;
      least = p->pace;
      cheapest = p;
    } else {
      next = std::min(next, p->pace);
    }
  }
  for (auto p = first; p != last; ++p) {
    const double others = p == cheapest ? next : least;
    p->dear = others != kNobody && p->pace > (p->dear ? kCheap : kDear) * std::max(1.0, others);
  }
}

}  // namespace leat::core
