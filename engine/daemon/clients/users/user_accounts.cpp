#include "engine/daemon/clients/users/user_accounts.h"

#include <algorithm>

#include "engine/daemon/log.h"

namespace leat::daemon {

using shm::RecordKind;
using shm::UserCounter;

UserAccounts::UserAccounts(Metrics& metrics) : metrics_(metrics), accounts_(kAccounts) {
  for (std::uint32_t i = 0; i < accounts_.size(); ++i) accounts_[i].index = i;
}

UserAccount& UserAccounts::of(uid_t uid, const UserLimits& limits, std::int64_t now_ns) {
  auto found =
      std::find_if(accounts_.begin(), accounts_.end(), [&](const UserAccount& a) { return a.used && a.uid == uid; });
  const bool known = found != accounts_.end();
  if (!known) {
    // Free ones have been gone since the beginning.
    found = std::min_element(accounts_.begin(), accounts_.end(), [](const UserAccount& a, const UserAccount& b) {
      return std::pair(a.sessions != 0, a.seen_ns) < std::pair(b.sessions != 0, b.seen_ns);
    });
    const std::uint32_t index = found->index;
    *found = UserAccount{};
    found->used = true;
    found->index = index;
    found->uid = uid;
    (void)metrics_.writer().begin(RecordKind::user, index, "uid " + std::to_string(uid));
  }
  found->seen_ns = now_ns;
  shm::Record record = metrics_.of(RecordKind::user, found->index);
  record.set(UserCounter::uid, uid);
  record.set(UserCounter::max_sessions, limits.sessions);
  record.set(UserCounter::max_streams, limits.streams);
  record.set(UserCounter::max_requests, limits.requests);
  record.set(UserCounter::max_memory_bytes, limits.memory_bytes);
  record.set(UserCounter::max_descriptors, limits.descriptors);
  record.set(UserCounter::max_priority, limits.priority);
  record.set(UserCounter::min_slo_ns, limits.min_slo_ns == UserLimits::kQuarterOfApplication
                                          ? shm::kQuarterSlo
                                          : static_cast<std::uint64_t>(limits.min_slo_ns));
  record.set(UserCounter::overload_set, limits.overload_set);
  record.set(UserCounter::share_permille, limits.share_permille);
  if (!known) publish(*found);
  return *found;
}

UserAccount* UserAccounts::of_uid(uid_t uid) noexcept {
  const auto found =
      std::find_if(accounts_.begin(), accounts_.end(), [&](const UserAccount& a) { return a.used && a.uid == uid; });
  return found == accounts_.end() ? nullptr : &*found;
}

void UserAccounts::publish(const UserAccount& a) {
  shm::Record record = metrics_.of(RecordKind::user, a.index);
  record.set(UserCounter::sessions, a.sessions);
  record.set(UserCounter::clients, a.clients);
  record.set(UserCounter::streams, a.streams);
  record.set(UserCounter::requests, a.requests);
  record.set(UserCounter::memory_bytes, a.memory_bytes);
  record.set(UserCounter::descriptors, a.descriptors);
}

void UserAccounts::refused(UserAccount& a, shm::Refusal why, const std::string& text, std::int64_t now_ns) {
  shm::Record record = metrics_.of(RecordKind::user, a.index);
  record.add(UserCounter::refused);
  record.cause(static_cast<std::uint32_t>(why));
  record.set(UserCounter::last_refusal, static_cast<std::uint64_t>(why));
  record.set(UserCounter::last_refusal_ns, static_cast<std::uint64_t>(now_ns));
  if (why != shm::Refusal::not_ready) log(a, "refused: " + text, now_ns);  // whoever waits for the start tries again
}

void UserAccounts::violated(UserAccount& a, shm::Violation cause, const std::string& who, std::int64_t now_ns) {
  shm::Record record = metrics_.of(RecordKind::user, a.index);
  record.add(UserCounter::violated);
  record.cause(shm::kViolationCauses + static_cast<std::uint32_t>(cause));
  log(a, who + " is disconnected: " + std::string(text_of(cause)), now_ns);
}

void UserAccounts::log(UserAccount& a, const std::string& text, std::int64_t now_ns) {
  log_caused(LogLevel::warning, "user " + std::to_string(a.uid) + ": " + text, a.log, now_ns);
}

}  // namespace leat::daemon
