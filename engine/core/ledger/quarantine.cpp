#include "engine/core/ledger/quarantine.h"

#include <algorithm>
#include <utility>

namespace leat::core {
namespace {

constexpr TimeNs kSuspected = 10'000'000'000;
constexpr TimeNs kForgiven = 60'000'000'000;
constexpr std::uint32_t kConvicted = 2;  // strikes
constexpr TimeNs kFirstRefusal = 1'000'000'000, kLongestRefusal = 300'000'000'000;

}  // namespace

Company Quarantine::company(std::uint32_t user, TimeNs now) const noexcept {
  const Record* const r = find(user, now);
  if (r == nullptr) return Company::anybody;
  if (r->strikes > 0) return Company::nobody;
  return now < r->suspected_until_ns ? Company::own_user : Company::anybody;
}

bool Quarantine::struck(std::uint32_t user, TimeNs now) const noexcept {
  const Record* const r = find(user, now);
  return r != nullptr && r->strikes > 0;
}

bool Quarantine::convicted(std::uint32_t user, TimeNs now) const noexcept {
  const Record* const r = find(user, now);
  return r != nullptr && r->strikes >= kConvicted;
}

bool Quarantine::refused(std::uint32_t user, TimeNs now) const noexcept {
  const Record* const r = find(user, now);
  return r != nullptr && now < r->refused_until_ns;
}

void Quarantine::suspect(std::uint32_t user, TimeNs now) noexcept {
  Record& r = find_or_add(user, now);
  r.suspected_until_ns = now + kSuspected;
  r.forgiven_ns = std::max(r.forgiven_ns, r.suspected_until_ns);
}

void Quarantine::strike(std::uint32_t user, PartitionId partition, TimeNs now) noexcept {
  const Loss before = std::exchange(losses_[partition], {user, now + kForgiven});
  Record& r = find_or_add(user, now);
  r.several = r.several || (r.partition != kNone && r.partition != partition);
  r.partition = partition;
  r.forgiven_ns = std::max(r.forgiven_ns, now + kForgiven);
  if (before.user != user && now < before.until_ns && !r.several) return;
  ++r.strikes;
  if (r.strikes > kConvicted) {
    const std::uint32_t doublings = std::min(r.strikes - kConvicted - 1, 20u);
    r.refused_until_ns = now + std::min(kFirstRefusal << doublings, kLongestRefusal);
  }
  r.forgiven_ns = std::max(now, r.refused_until_ns) + kForgiven;
}

// Users who ended partitions lately are few.
const Quarantine::Record* Quarantine::find(std::uint32_t user, TimeNs now) const noexcept {
  const auto found = std::ranges::find(records_, user, &Record::user);
  return found != records_.end() && now < found->forgiven_ns ? &*found : nullptr;
}

Quarantine::Record& Quarantine::find_or_add(std::uint32_t user, TimeNs now) noexcept {
  auto found = std::ranges::find(records_, user, &Record::user);
  if (found == records_.end() && records_.size() < records_.capacity())
    return records_.emplace_back(Record{.user = user});
  if (found == records_.end()) found = std::ranges::min_element(records_, {}, &Record::forgiven_ns);
  if (found->user != user || now >= found->forgiven_ns) *found = {.user = user};
  return *found;
}

}  // namespace leat::core
