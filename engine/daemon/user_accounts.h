// What each user has of leatd, and what was refused him: one account a uid, shown in the counters segment. An account
// outlives its connections, so that a user who is refused everything is still named; where there is no room for another
// user, the one who has been gone longest gives way.
//
// Thread rule: the control thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/daemon/counters_board.h"
#include "engine/daemon/user_limits.h"
#include "shm/src/client_port.h"
#include "shm/src/limiters.h"

namespace leat::daemon {

struct UserAccount {
  bool used = false;
  std::uint32_t index = 0;  // of its counters record
  uid_t uid = 0;
  std::uint32_t sessions = 0, clients = 0, streams = 0, requests = 0, descriptors = 0;
  std::uint64_t memory_bytes = 0;
  std::int64_t seen_ns = 0;
  shm::LogLimit log;
};

class UserAccounts {
 public:
  explicit UserAccounts(CountersBoard& board);

  // The peer's account; nullptr when every account belongs to a user who is connected. The limits shown are those of
  // this peer: another process of his may be in other groups.
  UserAccount* of(const shm::Peer& peer, const UserLimits& limits, std::int64_t now_ns);
  void publish(const UserAccount& account);

  // One more refusal or violation, counted, and logged where the log's limit allows: "user 1000: TEXT".
  void refused(UserAccount& account, shm::Refusal why, const std::string& text, std::int64_t now_ns);
  void violated(UserAccount& account, shm::Violation cause, const std::string& who, std::int64_t now_ns);

 private:
  void say(UserAccount& account, const std::string& text, std::int64_t now_ns);
  CountersBoard& board_;
  std::vector<UserAccount> accounts_;
};

}  // namespace leat::daemon
