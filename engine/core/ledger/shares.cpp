#include "engine/core/ledger/shares.h"

#include <algorithm>

namespace leat::core {
namespace {

constexpr TimeNs kUserActive = 1'000'000'000;
constexpr TimeNs kThere = 10'000'000'000;
constexpr TimeNs kDivideEvery = 10'000'000;

}  // namespace

Shares::Standing Shares::enter(const Request& r, TimeNs now) noexcept {
  Account* const account = find_or_add(r.key, now);
  if (account == nullptr) return {};
  account->user_weight = r.user_weight;
  account->application_weight = r.application_weight;
  account->level_ns = account->level_at(now);
  account->seen_ns = now;
  if (now >= divide_again_ns_) divide(now);
  if (account->share >= 1) return {};
  Standing standing{.competes = true};
  const auto cost = static_cast<double>(r.cost_ns);
  if (!account->fits(account->level_ns, cost, r.slo_ns)) return standing;
  account->level_ns += cost;
  standing.within = true;
  standing.charged_ns = r.cost_ns;
  return standing;
}

bool Shares::has_room(const Key& key, TimeNs cost_ns, TimeNs slo_ns, TimeNs now) const noexcept {
  const auto found = std::ranges::lower_bound(accounts_, key, {}, &Account::key);
  if (found == accounts_.end() || found->key != key || found->share >= 1) return false;
  return found->fits(found->level_at(now), static_cast<double>(cost_ns), slo_ns);
}

bool Shares::others(const Key& key, TimeNs now) const noexcept {
  return std::ranges::any_of(accounts_, [&](const Account& a) {
    return a.key.component == key.component && a.key.user != key.user && now - a.seen_ns < kThere;
  });
}

void Shares::correct(const Key& key, double more_ns) noexcept {
  if (Account* const account = find(key); account != nullptr)
    account->level_ns = std::max(0.0, account->level_ns + more_ns);
}

Shares::Account* Shares::find(const Key& key) noexcept {
  const auto found = std::ranges::lower_bound(accounts_, key, {}, &Account::key);
  return found != accounts_.end() && found->key == key ? &*found : nullptr;
}

Shares::Account* Shares::find_or_add(const Key& key, TimeNs now) noexcept {
  if (Account* const found = find(key); found != nullptr) return found;
  if (accounts_.size() == accounts_.capacity()) {  // the place of whoever has been idle longest
    const auto longest = std::ranges::min_element(accounts_, {}, &Account::seen_ns);
    if (longest == accounts_.end() || now - longest->seen_ns < kUserActive) return nullptr;
    accounts_.erase(longest);
  }
  divide_again_ns_ = now;
  const auto place = std::ranges::lower_bound(accounts_, key, {}, &Account::key);
  return &*accounts_.insert(place, {.key = key, .seen_ns = now});
}

void Shares::divide(TimeNs now) noexcept {
  divide_again_ns_ = now + kDivideEvery;
  for (auto component = accounts_.begin(); component != accounts_.end();) {
    const auto other = std::find_if(component, accounts_.end(),
                                    [&](const Account& a) { return a.key.component != component->key.component; });
    divide(component, other, now);
    component = other;
  }
}

// Guaranteed shares of one component among those that are active: by user, then by application.
void Shares::divide(Place first, Place last, TimeNs now) noexcept {
  const auto active = [&](const Account& a) { return now - a.seen_ns < kUserActive; };
  double users = 0;
  for (const bool known : {false, true}) {  // first the sum of the users' weights
    for (auto user = first; user != last;) {
      double mine = 0;
      auto next = user;
      for (; next != last && next->key.user == user->key.user; ++next)
        mine += active(*next) ? next->application_weight : 0;
      for (auto a = user; known && a != next; ++a)
        a->share = a->user_weight / std::max(1.0, users) * a->application_weight / std::max(1.0, mine);
      if (!known && mine > 0) users += user->user_weight;
      user = next;
    }
  }
}

}  // namespace leat::core
