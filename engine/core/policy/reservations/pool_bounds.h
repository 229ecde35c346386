// When each partition of a pool has time, from below: a search for the one that can start first reads a few blocks
// instead of the whole pool. Partitions stand in the pool's order, sixteen to a block, and a block has one bound that
// holds for all of it, of the same form as theirs.
//
// Size is fixed at construction. Thread rule: one thread. set() is O(1), or O(16) where it gives up what bounded the
// block; search() reads every block's bound and the blocks that it cannot exclude.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/core/snapshot.h"
#include "engine/core/types.h"

namespace leat::core {

// Of one partition: its timeline has no gap before gap_ns, and its last reservation is [last_begin_ns, last_ns).
struct StartBound {
  TimeNs gap_ns = 0, last_begin_ns = 0, last_ns = 0;
  // No stage of that length that is ready at `from` starts there before.
  [[nodiscard]] TimeNs soonest(TimeNs from, TimeNs run) const noexcept {
    from = from > gap_ns ? from : gap_ns;
    return from < last_ns && from + run > last_begin_ns ? last_ns : from;
  }
  bool operator==(const StartBound&) const = default;
};

class PoolBounds {
 public:
  // When a stage's input is there: on the host `here`, and on any other.
  struct Ready {
    TimeNs near_ns = 0, far_ns = 0;  // far >= near
    std::uint32_t here = 0;
  };

  PoolBounds() = default;
  explicit PoolBounds(std::span<const std::uint32_t> hosts)  // of each partition, in the pool's order
      : of_(hosts.size()), host_(hosts.begin(), hosts.end()), blocks_((hosts.size() + kBlock - 1) / kBlock) {
    for (std::size_t i = 0; i < hosts.size(); ++i) blocks_[i / kBlock].hosts |= bit(hosts[i]);
  }

  [[nodiscard]] std::size_t size() const noexcept { return of_.size(); }
  [[nodiscard]] const StartBound& operator[](std::size_t i) const noexcept { return of_[i]; }
  [[nodiscard]] std::uint32_t host(std::size_t i) const noexcept { return host_[i]; }

  void set(std::size_t i, const StartBound& now) noexcept {
    const StartBound was = of_[i];
    if (was == now) return;
    of_[i] = now;
    StartBound& all = blocks_[i / kBlock].all;
    const bool bounded = (was.gap_ns == all.gap_ns && now.gap_ns > was.gap_ns) ||
                         (was.last_begin_ns == all.last_begin_ns && now.last_begin_ns < was.last_begin_ns) ||
                         (was.last_ns == all.last_ns && now.last_ns > was.last_ns);
    if (!bounded) {
      widen(all, now);
      return;
    }
    const std::size_t first = i / kBlock * kBlock, end = std::min(first + kBlock, of_.size());
    all = of_[first];
    for (std::size_t k = first + 1; k < end; ++k) widen(all, of_[k]);
  }

  // Calls each(i, start) in the pool's order for those that may start by `limit`, `start` being their bound. It returns
  // the limit for those behind.
  template <class Each>
  void search(const Ready& ready, TimeNs run, TimeNs limit, Each&& each) const {
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      const bool near = (blocks_[b].hosts & bit(ready.here)) != 0;  // perhaps
      if (blocks_[b].all.soonest(near ? ready.near_ns : ready.far_ns, run) > limit) continue;
      const std::size_t end = std::min((b + 1) * kBlock, of_.size());
      for (std::size_t i = b * kBlock; i < end; ++i) {
        const TimeNs start = of_[i].soonest(host_[i] == ready.here ? ready.near_ns : ready.far_ns, run);
        if (start <= limit) limit = each(i, start);
      }
    }
  }
  void visit_state(Snapshot& state) { state(of_, blocks_); }

 private:
  static constexpr std::size_t kBlock = 16;
  struct Block {
    StartBound all;           // least gap, latest last_begin, least last
    std::uint64_t hosts = 0;  // bit: a host with that remainder is among them
  };
  static std::uint64_t bit(std::uint32_t host) noexcept { return std::uint64_t{1} << (host % 64); }
  static void widen(StartBound& all, const StartBound& one) noexcept {
    all.gap_ns = std::min(all.gap_ns, one.gap_ns);
    all.last_begin_ns = std::max(all.last_begin_ns, one.last_begin_ns);
    all.last_ns = std::min(all.last_ns, one.last_ns);
  }

  std::vector<StartBound> of_;
  std::vector<std::uint32_t> host_;
  std::vector<Block> blocks_;
};

}  // namespace leat::core
