#include "engine/core/ledger/shares.h"

#include <algorithm>

namespace leat::core {
namespace {

constexpr TimeNs kActive = 1'000'000'000;
constexpr TimeNs kDivideEvery = 10'000'000;

}  // namespace

bool Shares::within(const Request& r, TimeNs now) noexcept {
  Account* const account = find_or_add(r, now);
  if (account == nullptr) return false;
  account->user_weight = r.user_weight;
  account->application_weight = r.application_weight;
  account->level_ns = std::max(0.0, account->level_ns - account->share * static_cast<double>(now - account->seen_ns));
  account->seen_ns = now;
  if (now >= divide_again_ns_) divide(now);
  if (account->share >= 1) return false;
  const auto cost = static_cast<double>(r.cost_ns);
  if (account->level_ns + cost > account->share * static_cast<double>(r.slo_ns)) return false;
  account->level_ns += cost;
  return true;
}

Shares::Account* Shares::find_or_add(const Request& r, TimeNs now) noexcept {
  const std::tuple key(r.component, r.user, r.application);
  const auto place = [&] { return std::ranges::lower_bound(accounts_, key, {}, &Account::key); };
  if (const auto found = place(); found != accounts_.end() && found->key() == key) return &*found;
  if (accounts_.size() == accounts_.capacity()) {  // the place of whoever has been idle longest
    const auto longest = std::ranges::min_element(accounts_, {}, &Account::seen_ns);
    if (longest == accounts_.end() || now - longest->seen_ns < kActive) return nullptr;
    accounts_.erase(longest);
  }
  divide_again_ns_ = now;
  return &*accounts_.insert(place(),
                            {.component = r.component, .user = r.user, .application = r.application, .seen_ns = now});
}

// Guaranteed shares among those that are active: by user, then by application.
void Shares::divide(TimeNs now) noexcept {
  divide_again_ns_ = now + kDivideEvery;
  const auto active = [&](const Account& a) { return now - a.seen_ns < kActive; };
  for (auto component = accounts_.begin(); component != accounts_.end();) {
    const auto other =
        std::find_if(component, accounts_.end(), [&](const Account& a) { return a.component != component->component; });
    double users = 0;
    for (const bool known : {false, true}) {  // first the sum of the users' weights
      for (auto user = component; user != other;) {
        double mine = 0;
        auto next = user;
        for (; next != other && next->user == user->user; ++next) mine += active(*next) ? next->application_weight : 0;
        for (auto a = user; known && a != next; ++a)
          a->share = a->user_weight / std::max(1.0, users) * a->application_weight / std::max(1.0, mine);
        if (!known && mine > 0) users += user->user_weight;
        user = next;
      }
    }
    component = other;
  }
}

}  // namespace leat::core
