// What each user has of leatd, and what was refused him: one account a login (subordinate_uids.h), shown in the
// counters segment. An account outlives its connections, so that a user who is refused everything is still named. There
// are more accounts than connections, so a newcomer always gets one: of those who are not connected the one who has
// been gone longest gives way.
//
// Thread rule: the control thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/daemon/configuration/user_limits.h"
#include "engine/daemon/metrics/metrics.h"
#include "engine/daemon/metrics/slow_calls.h"
#include "shm/src/client/client_port.h"
#include "shm/src/protocol/limiters.h"

namespace leat::daemon {

struct UserAccount {
  bool used = false;
  std::uint32_t index = 0;  // of its counters record
  uid_t uid = 0;
  std::uint32_t sessions = 0, clients = 0, streams = 0, requests = 0, descriptors = 0;
  std::uint64_t memory_bytes = 0;
  std::int64_t seen_ns = 0;
  std::int64_t barred_until_ns = 0;  // one of his was ended for such calls: no new ones
  SlowUser slow;
  shm::LogLimit log;
};

class UserAccounts {
 public:
  explicit UserAccounts(Metrics& metrics);

  static constexpr std::uint32_t kAccounts = shm::kMaxRecords[static_cast<std::size_t>(shm::RecordKind::user)];

  // A login's account. The limits shown are those of the connection it is asked for: another process of his may be in
  // other groups.
  UserAccount& of(uid_t uid, const UserLimits& limits, std::int64_t now_ns);
  UserAccount* of_uid(uid_t uid) noexcept;  // nullptr: he has none
  void publish(const UserAccount& account);

  // One more refusal or violation, counted, and logged where the log's limit allows: "user 1000: TEXT".
  void refused(UserAccount& account, shm::Refusal why, const std::string& text, std::int64_t now_ns);
  void violated(UserAccount& account, shm::Violation cause, const std::string& who, std::int64_t now_ns);

 private:
  void log(UserAccount& account, const std::string& text, std::int64_t now_ns);
  Metrics& metrics_;
  std::vector<UserAccount> accounts_;
};

}  // namespace leat::daemon
