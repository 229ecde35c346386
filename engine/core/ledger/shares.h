// Fair shares: where users compete for the partitions of one component, each is guaranteed its part of their time, by
// weight, and within a user each of its applications that has a weight (the others are one). A share that is not used
// goes to the others.
//
// Every request is counted with the partition time that it is expected to cost, and when it is answered with what its
// batches took. An account (one user's of one application) is a bucket that drains at its guaranteed rate and holds one
// SLO of it; a request that finds room is within the share, and goes before all that are beyond one, whatever their
// class. Within and beyond, the policy decides as ever. With one user and one application alone nothing is marked, and
// nothing changes.
//
// What is expected is the plan's cost at the latency scale of the user's frames (latency_scales.h).
//
// An account is active for a second after its last request; guaranteed rates are those among the active ones. A
// bisection a request and a task of a batch, and a pass over all accounts every few milliseconds.
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "engine/core/snapshot.h"
#include "engine/core/types.h"

namespace leat::core {

class Shares {
 public:
  // At most so many accounts; requests of those beyond are never within a share.
  explicit Shares(std::uint32_t accounts) { accounts_.reserve(accounts); }

  struct Key {
    std::uint32_t component = 0, user = 0, application = 0;
    [[nodiscard]] auto operator<=>(const Key&) const noexcept = default;
  };
  struct Request {
    Key key;
    std::uint32_t user_weight = 1000, application_weight = 1000;
    TimeNs cost_ns = 0;  // of the component's time, as if it were one partition
    TimeNs slo_ns = 0;
  };
  struct Standing {
    bool competes = false;  // with others, and so counted
    bool within = false;    // its share; else it is beyond it, or nobody competes
    TimeNs charged_ns = 0;  // what the account was charged; 0: nothing, it is not within
  };
  [[nodiscard]] bool empty() const noexcept { return accounts_.size() < 2; }  // there is nobody to compete with
  [[nodiscard]] Standing enter(const Request& r, TimeNs now) noexcept;
  // Other users have sent requests there within the last ten seconds.
  [[nodiscard]] bool others(const Key& key, TimeNs now) const noexcept;
  // One that came now would be within its share, where there is competition.
  [[nodiscard]] bool has_room(const Key& key, TimeNs cost_ns, TimeNs slo_ns, TimeNs now) const noexcept;
  // A request that was charged has taken so much more, or less.
  void correct(const Key& key, double more_ns) noexcept;
  void visit_state(Snapshot& state) { state(accounts_, divide_again_ns_); }

 private:
  struct Account {
    Key key;
    std::uint32_t user_weight = 0, application_weight = 0;
    TimeNs seen_ns = 0;
    double level_ns = 0;  // of its bucket
    double share = 1;     // of the component's time; 1: nobody competes
    [[nodiscard]] double level_at(TimeNs now) const noexcept {
      const double left = level_ns - share * static_cast<double>(now - seen_ns);
      return left > 0 ? left : 0;
    }
    [[nodiscard]] bool fits(double level, double cost_ns, TimeNs slo_ns) const noexcept {
      return level + cost_ns <= share * static_cast<double>(slo_ns);
    }
  };
  using Place = std::vector<Account>::iterator;
  [[nodiscard]] Account* find(const Key& key) noexcept;  // nullptr: there is none
  [[nodiscard]] Account* find_or_add(const Key& key, TimeNs now) noexcept;
  void divide(TimeNs now) noexcept;
  void divide(Place first, Place last, TimeNs now) noexcept;

  std::vector<Account> accounts_;       // by key
  TimeNs divide_again_ns_ = INT64_MIN;  // guaranteed shares hold until then
};

}  // namespace leat::core
