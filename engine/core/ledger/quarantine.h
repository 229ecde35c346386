// Whose frames end partitions, and what becomes of the frames that he sends next. Only where others send too: who is
// alone harms nobody.
//
//   suspected   a partition was lost with frames of several users: for a while each of them rides with his own alone
//   struck      one was lost with his frames alone: his rest run alone, one at a time over all partitions, and only
//               where another partition is left for the others (queue/gate.h)
//   convicted   struck twice: what he has waiting is dropped, and a frame of his that ends another partition is not
//               tried again. For every further one he is refused for a while, twice as long each time
//
// A partition that ends frames of several users strikes nobody who has ended no other one: it may be broken itself.
//
// All is forgiven after a minute without another loss. Thread rule: the scheduler's. Allocates only in the constructor;
// where more users have struck than there is room for, the one whose time is over soonest makes way.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/core/snapshot.h"
#include "engine/core/types.h"

namespace leat::core {

// With whom a request's tasks may share a batch.
enum class Company : std::uint8_t { anybody, own_user, nobody };

class Quarantine {
 public:
  Quarantine(std::uint32_t users, std::size_t partitions) : losses_(partitions) { records_.reserve(users); }

  [[nodiscard]] bool empty() const noexcept { return records_.empty(); }
  [[nodiscard]] Company company(std::uint32_t user, TimeNs now) const noexcept;
  [[nodiscard]] bool struck(std::uint32_t user, TimeNs now) const noexcept;
  [[nodiscard]] bool convicted(std::uint32_t user, TimeNs now) const noexcept;
  [[nodiscard]] bool refused(std::uint32_t user, TimeNs now) const noexcept;

  void suspect(std::uint32_t user, TimeNs now) noexcept;
  // The partition was lost while it ran frames of this user alone.
  void strike(std::uint32_t user, PartitionId partition, TimeNs now) noexcept;
  void visit_state(Snapshot& state) { state(records_, losses_); }

 private:
  struct Record {
    std::uint32_t user = 0;
    std::uint32_t strikes = 0;
    PartitionId partition = kNone;  // lost last
    bool several = false;           // were lost
    TimeNs suspected_until_ns = 0, refused_until_ns = 0, forgiven_ns = 0;
  };
  struct Loss {
    std::uint32_t user = 0;
    TimeNs until_ns = INT64_MIN;  // it is remembered
  };
  [[nodiscard]] const Record* find(std::uint32_t user, TimeNs now) const noexcept;
  [[nodiscard]] Record& find_or_add(std::uint32_t user, TimeNs now) noexcept;

  std::vector<Record> records_;
  std::vector<Loss> losses_;  // [partition], the last
};

}  // namespace leat::core
