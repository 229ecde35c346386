// How many requests are in flight, in all and of one client, and what became of all that came: the gateway's own
// ledger, requests = by status + in flight. Thread rule: the gateway's thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "leat/outcome.h"

namespace leat::gateway {

// Of one model.
struct ModelCounts {
  std::uint64_t requests = 0, in_flight = 0;
  std::map<int, std::uint64_t> by_status;            // answers
  std::map<std::string, std::uint64_t> by_reason;    // of those that are not 200
  std::uint64_t submitted = 0;                       // frames that leatd took
  std::map<std::uint8_t, std::uint64_t> by_outcome;  // leatd's answers to them
  std::uint64_t lost = 0;                            // leatd was gone before it answered
  std::uint64_t queue_ns = 0, compute_ns = 0, input_ns = 0, output_ns = 0;
  std::int64_t last_unix_ms = 0;  // when the latest was answered
};

class Admission {
 public:
  Admission(std::uint32_t max, std::uint32_t max_each) : max_(max), max_each_(max_each) {}
  enum class Answer : std::uint8_t { yes, node_full, client_full };
  Answer enter(const std::string& who) {
    if (in_flight_ >= max_) return Answer::node_full;
    std::uint32_t& his = each_[who];
    if (his >= max_each_) return Answer::client_full;
    ++his;
    ++in_flight_;
    return Answer::yes;
  }
  void leave(const std::string& who) {
    const auto his = each_.find(who);
    if (his == each_.end()) return;
    if (--his->second == 0) each_.erase(his);
    --in_flight_;
  }
  [[nodiscard]] std::uint32_t in_flight() const noexcept { return in_flight_; }

 private:
  std::uint32_t max_, max_each_, in_flight_ = 0;
  std::map<std::string, std::uint32_t> each_;
};

}  // namespace leat::gateway
