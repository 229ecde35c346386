// Fair shares: where users compete for the partitions of one component, each is guaranteed its part of their time, by
// weight, and within a user each of its applications that has a weight (the others are one). A share that is not used
// goes to the others.
//
// Every request is counted with the partition time that it costs in the plan's batches. An account (one user's of one
// application) is a bucket that drains at its guaranteed rate and holds one SLO of it; a request that finds room is
// within the share, and goes before all that are beyond one, whatever their class. Within and beyond, the policy
// decides as ever. With one user and one application alone nothing is marked, and nothing changes.
//
// An account is active for a second after its last request; guaranteed rates are those among the active ones. A
// bisection a request, and a pass over all accounts every few milliseconds.
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "engine/core/types.h"

namespace leat::core {

class Shares {
 public:
  // At most so many accounts; requests of those beyond are never within a share.
  explicit Shares(std::uint32_t accounts) { accounts_.reserve(accounts); }

  struct Request {
    std::uint32_t component = 0, user = 0, application = 0;
    std::uint32_t user_weight = 1000, application_weight = 1000;
    TimeNs cost_ns = 0;  // of the component's time, as if it were one partition
    TimeNs slo_ns = 0;
  };
  // False: beyond its share, or nobody competes.
  [[nodiscard]] bool within(const Request& r, TimeNs now) noexcept;

 private:
  struct Account {
    std::uint32_t component = 0, user = 0, application = 0, user_weight = 0, application_weight = 0;
    TimeNs seen_ns = 0;
    double level_ns = 0;  // of its bucket
    double share = 1;     // of the component's time; 1: nobody competes
    [[nodiscard]] auto key() const noexcept { return std::tuple(component, user, application); }
  };
  [[nodiscard]] Account* find_or_add(const Request& r, TimeNs now) noexcept;
  void divide(TimeNs now) noexcept;

  std::vector<Account> accounts_;       // by key
  TimeNs divide_again_ns_ = INT64_MIN;  // guaranteed shares hold until then
};

}  // namespace leat::core
