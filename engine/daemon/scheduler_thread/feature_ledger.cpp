#include "engine/daemon/scheduler_thread/feature_ledger.h"

#include <cstdlib>

namespace leat::daemon {

FeatureLedger::FeatureLedger(std::uint32_t edges, std::uint32_t tasks)
    : rows_(edges, shm::FeatureRows({})), entries_(tasks) {
  for (std::uint32_t i = 0; i < tasks; ++i) entries_[i].next = i + 1 < tasks ? i + 1 : kEmpty;
  free_ = 0;
}

void FeatureLedger::keep(Chain& chain, const Features& features) noexcept {
  if (free_ == kEmpty) std::abort();
  const std::uint32_t entry = free_;
  free_ = entries_[entry].next;
  entries_[entry] = {features, chain, true};
  chain = entry;
}

std::uint32_t* FeatureLedger::link_to(Chain& chain, std::uint32_t module, std::uint32_t item) noexcept {
  std::uint32_t* link = &chain;
  while (*link != kEmpty && (entries_[*link].features.module != module || entries_[*link].features.item != item))
    link = &entries_[*link].next;
  return link;
}

Features FeatureLedger::unlink(std::uint32_t* link) noexcept {
  if (*link == kEmpty) std::abort();
  const std::uint32_t entry = *link;
  *link = entries_[entry].next;
  entries_[entry].next = free_;
  entries_[entry].kept = false;
  free_ = entry;
  return entries_[entry].features;
}

Features FeatureLedger::find(Chain& chain, std::uint32_t module, std::uint32_t item) noexcept {
  return unlink(link_to(chain, module, item));
}

void FeatureLedger::forget(Chain& chain, std::uint32_t module, std::uint32_t item) noexcept {
  std::uint32_t* const link = link_to(chain, module, item);
  if (*link == kEmpty) return;
  const Features f = unlink(link);
  give(f.edge, f.row, f.items);
}

void FeatureLedger::spoil(std::uint32_t edge) noexcept {
  for (Entry& e : entries_)
    if (e.kept && e.features.edge == edge && e.features.reason == Reason::none)
      e.features.reason = Reason::partition_lost;
}

void FeatureLedger::forget(Chain& chain) noexcept {
  while (chain != kEmpty) {
    const Features f = unlink(&chain);
    give(f.edge, f.row, f.items);
  }
}

}  // namespace leat::daemon
