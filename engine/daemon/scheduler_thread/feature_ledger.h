// Whose features lie where between two stages: the rows of every edge, and for each request the features its tasks have
// made and that no batch has taken yet.
//
// Life of features: take() when a batch is sent that will make them, keep() when it has ended, find() when the next
// stage's batch is sent, give() when that has ended or its worker is proven dead. A request that is answered, or a task
// that starts again from the first stage, is forget()ten: only rows that no worker touches are in a chain, so they are
// free at once. Thread rule: the scheduler's thread. Nothing here allocates after construction; a broken invariant
// aborts.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "leat/outcome.h"
#include "shm/src/segments/feature_slots.h"

namespace leat::daemon {

struct Features {
  std::uint32_t module = 0, item = 0;  // of the request that the chain belongs to
  std::uint32_t edge = 0, row = 0, items = 1;
  Reason reason = Reason::none;  // why they are worth nothing: the task ends so behind the last stage
};

class FeatureLedger {
 public:
  using Chain = std::uint32_t;  // one for each request, in the caller's table
  static constexpr Chain kEmpty = UINT32_MAX;

  // `edges`: the most there can be; `tasks`: the most that can be in flight.
  FeatureLedger(std::uint32_t edges, std::uint32_t tasks);
  void begin(std::uint32_t edge, shm::FeatureRows rows) noexcept { rows_[edge] = std::move(rows); }

  [[nodiscard]] std::uint32_t take(std::uint32_t edge, std::uint32_t rows) noexcept { return rows_[edge].take(rows); }
  [[nodiscard]] bool scrap(std::uint32_t edge, std::uint32_t row) const noexcept { return rows_[edge].scrap(row); }
  void give(std::uint32_t edge, std::uint32_t row, std::uint32_t items) noexcept { rows_[edge].give(row, items); }
  [[nodiscard]] std::uint32_t in_use(std::uint32_t edge) const noexcept { return rows_[edge].in_use(); }

  void keep(Chain& chain, const Features& features) noexcept;
  // Takes them out of the chain; the rows stay in use. Aborts when they are not there: the core sends a later stage
  // only what was made.
  [[nodiscard]] Features find(Chain& chain, std::uint32_t module, std::uint32_t item) noexcept;
  void forget(Chain& chain, std::uint32_t module, std::uint32_t item) noexcept;
  void forget(Chain& chain) noexcept;  // all of them
  // The memory of an edge was lost: what was kept in it is worth nothing (Reason::partition_lost).
  void spoil(std::uint32_t edge) noexcept;

 private:
  struct Entry {
    Features features;
    std::uint32_t next = kEmpty;
    bool kept = false;
  };
  // The link that points to the entry, or to the chain's end.
  [[nodiscard]] std::uint32_t* link_to(Chain& chain, std::uint32_t module, std::uint32_t item) noexcept;
  [[nodiscard]] Features unlink(std::uint32_t* link) noexcept;

  std::vector<shm::FeatureRows> rows_;  // [edge]
  std::vector<Entry> entries_;
  std::uint32_t free_ = kEmpty;
};

}  // namespace leat::daemon
