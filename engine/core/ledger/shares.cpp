#include "engine/core/ledger/shares.h"

#include <algorithm>

namespace leat::core {
namespace {

constexpr TimeNs kActive = 1'000'000'000;
constexpr TimeNs kDivideEvery = 10'000'000;

}  // namespace

bool Shares::within(const Request& r, TimeNs now) noexcept {
  auto account = std::ranges::find_if(accounts_, [&](const Account& a) {
    return a.user == r.user && a.application == r.application && a.component == r.component;
  });
  if (account == accounts_.end()) {
    if (accounts_.size() == accounts_.capacity()) {  // the place of whoever has been idle longest
      account = std::ranges::min_element(accounts_, {}, &Account::seen_ns);
      if (now - account->seen_ns < kActive) return false;
    } else {
      accounts_.emplace_back();
      account = accounts_.end() - 1;
    }
    *account = {.component = r.component, .user = r.user, .application = r.application};
    account->seen_ns = now;
    known_ = 0;
  }
  account->user_weight = r.user_weight;
  account->application_weight = r.application_weight;
  account->level_ns = std::max(0.0, account->level_ns - account->share * static_cast<double>(now - account->seen_ns));
  account->seen_ns = now;
  if (now - divided_ns_ >= kDivideEvery || known_ != accounts_.size()) divide(now);
  if (account->share >= 1) return false;
  const auto cost = static_cast<double>(r.cost_ns);
  if (account->level_ns + cost > account->share * static_cast<double>(r.slo_ns)) return false;
  account->level_ns += cost;
  return true;
}

// Guaranteed shares among those that are active: by user, then by application.
void Shares::divide(TimeNs now) noexcept {
  divided_ns_ = now;
  known_ = accounts_.size();
  const auto active = [&](const Account& a) { return now - a.seen_ns < kActive; };
  for (Account& a : accounts_) {
    if (!active(a)) continue;
    double users = 0, mine = 0;
    for (auto b = accounts_.begin(); b != accounts_.end(); ++b) {
      if (b->component != a.component || !active(*b)) continue;
      if (b->user == a.user) mine += b->application_weight;
      const bool first = std::none_of(accounts_.begin(), b, [&](const Account& c) {
        return c.component == b->component && c.user == b->user && active(c);
      });
      if (first) users += b->user_weight;
    }
    a.share = a.user_weight / std::max(1.0, users) * a.application_weight / std::max(1.0, mine);
  }
}

}  // namespace leat::core
