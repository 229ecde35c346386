#include "engine/daemon/workers/remeasure.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tools/base/text/units.h"

namespace leat::daemon {
namespace {

constexpr std::int64_t kLookNs = 250'000'000;
constexpr std::int64_t kIdleNs = 1'000'000'000;
constexpr std::int64_t kLearnNs = 5'000'000'000;
constexpr std::uint64_t kMinBatches = 16;  // that say what batches take
constexpr double kMuchLess = .8;
constexpr std::int64_t kAgainNs = 2'000'000'000;  // after one that was disturbed, of a tenth of a second

bool was_measured(const worker::Ready& ready, std::size_t module) { return !ready.latency_by_batch[module].empty(); }

// What takes the place of a measurement.
std::uint32_t better_than(const worker::Ready& ready) {
  return std::clamp(ready.undisturbed_percent * 5 / 4 + 1, 1U, worker::kUndisturbedPercent);
}

bool same_shape(const worker::Ready& ready, const worker::Measured& what) {
  return what.latency_by_batch.size() == ready.latency_by_batch[what.module].size() &&
         (what.module >= ready.latency_by_size.size() ||
          what.latency_by_size.size() == ready.latency_by_size[what.module].size());
}

}  // namespace

Remeasure::Remeasure(const Deployment& deployment, Metrics& metrics, Supervisor& supervisor,
                     std::span<worker::Ready> ready)
    : deployment_(deployment), metrics_(metrics), supervisor_(supervisor), ready_(ready), partitions_(ready.size()) {
  for (std::size_t p = 0; p < ready_.size(); ++p) {
    partitions_[p].doubtful = ready_[p].undisturbed_percent < worker::kUndisturbedPercent;
    if (partitions_[p].doubtful) next_ns_ = 0;
  }
}

std::optional<std::string> Remeasure::advance(std::int64_t now) {
  if (now < next_ns_) return {};
  next_ns_ = INT64_MAX;
  std::optional<std::string> line;
  for (std::uint32_t p = 0; p < partitions_.size(); ++p) {
    if (!partitions_[p].doubtful) continue;
    next_ns_ = now + kLookNs;
    look_at(p, now);
    if (!line) line = learn(p, now);
  }
  return line;
}

std::optional<std::string> Remeasure::learn(std::uint32_t p, std::int64_t now) {
  Partition& of = partitions_[p];
  if (now - of.window_ns < kLearnNs) return {};
  const Ran from = std::exchange(of.window, of.seen);
  const bool whole = std::exchange(of.window_ns, now) != 0;
  const std::uint64_t batches = of.seen.batches - from.batches;
  worker::Ready& ready = ready_[p];
  // Where batches overlap, they take longer than they keep the partition busy.
  const bool overlap = std::ranges::any_of(ready.overlap_permille, [](std::uint32_t n) { return n != 0; });
  if (!whole || of.asked || batches < kMinBatches || overlap || ready.latency_by_batch.size() != 1 ||
      ready.latency_by_batch[0].empty() ||
      std::ranges::any_of(ready.latency_by_size, [](auto& l) { return !l.empty(); }))
    return {};
  std::vector<planner::Latency>& rows = ready.latency_by_batch[0];
  const auto took = static_cast<double>(of.seen.busy_ns - from.busy_ns) / static_cast<double>(batches);
  const std::uint64_t items = (of.seen.items - from.items + batches / 2) / batches;
  const auto said = static_cast<double>(rows[std::clamp<std::uint64_t>(items, 1, rows.size()) - 1].p50_ns);
  if (took >= kMuchLess * said) return {};
  for (planner::Latency& l : rows) {
    l.p50_ns = std::max<std::int64_t>(1, std::llround(static_cast<double>(l.p50_ns) * took / said));
    l.p99_ns = std::max<std::int64_t>(l.p50_ns, std::llround(static_cast<double>(l.p99_ns) * took / said));
  }
  of.found = {}, of.module = 0;
  return "partition '" + deployment_.partitions[p].partition.name + "': its batches take " +
         std::to_string(std::lround(100 * took / said)) + " % of what was measured; planned anew by that";
}

void Remeasure::look_at(std::uint32_t p, std::int64_t now) {
  using shm::PartitionCounter;
  Partition& of = partitions_[p];
  const shm::Record record = metrics_.of(shm::RecordKind::partition, deployment_.slots[p]);
  const Ran ran{record.value(PartitionCounter::batches), record.value(PartitionCounter::items),
                record.value(PartitionCounter::busy_ns)};
  const bool busy = record.value(PartitionCounter::queued) != 0 || ran.batches != of.seen.batches;
  of.seen = ran;
  if (busy || of.idle_since == 0 || supervisor_.state(deployment_.slots[p]) != WorkerState::up) {
    of.idle_since = now;
  } else if (!of.asked && now >= of.not_before && now - of.idle_since >= kIdleNs) {
    while (of.module < ready_[p].latency_by_batch.size() && !was_measured(ready_[p], of.module)) ++of.module;
    if (of.module == ready_[p].latency_by_batch.size()) return void(of.doubtful = false);
    if (of.found.latency_by_batch.empty()) of.found = ready_[p], of.found.undisturbed_percent = 100;
    of.asked = true;
    supervisor_.ask_to_measure(
        deployment_.slots[p],
        {.module = of.module, .longest_ns = shortest_objective(p) / 2, .undisturbed_percent = better_than(ready_[p])});
  }
}

std::int64_t Remeasure::shortest_objective(std::uint32_t p) const {
  std::int64_t shortest = INT64_MAX;
  for (std::uint32_t a = 0; a < deployment_.applications.size(); ++a)
    for (std::size_t m = 0; m < deployment_.applications[a].modules.size(); ++m)
      if (deployment_.session_of[p][deployment_.first_module[a] + m] != UINT32_MAX)
        shortest = std::min(shortest, deployment_.applications[a].slo_ns);
  return shortest;
}

std::uint32_t Remeasure::partition_of(std::uint32_t slot) const {
  return static_cast<std::uint32_t>(std::ranges::find(deployment_.slots, slot) - deployment_.slots.begin());
}

void Remeasure::lost(std::uint32_t slot) {
  if (const std::uint32_t p = partition_of(slot); p < partitions_.size()) partitions_[p].asked = false;
}

std::optional<std::string> Remeasure::measured(std::uint32_t slot, const worker::Measured& what, std::int64_t now) {
  const std::uint32_t p = partition_of(slot);
  if (p >= partitions_.size()) return {};
  Partition& of = partitions_[p];
  of.asked = false;
  if (what.undisturbed_percent < better_than(ready_[p]) || !same_shape(ready_[p], what)) {
    of.not_before = now + kAgainNs;
    return {};
  }
  of.found.latency_by_batch[what.module] = what.latency_by_batch;
  if (what.module < of.found.latency_by_size.size()) of.found.latency_by_size[what.module] = what.latency_by_size;
  of.found.undisturbed_percent = std::min(of.found.undisturbed_percent, what.undisturbed_percent);
  ++of.module;
  while (of.module < ready_[p].latency_by_batch.size() && !was_measured(ready_[p], of.module)) ++of.module;
  next_ns_ = now;
  if (of.module < ready_[p].latency_by_batch.size()) return {};
  const worker::Ready before = std::exchange(ready_[p], std::exchange(of.found, {}));
  of.module = 0;
  of.not_before = now + kAgainNs;
  of.doubtful = ready_[p].undisturbed_percent < worker::kUndisturbedPercent;
  return line_of(p, before);
}

// "partition 'p': measured again while it was idle; alone, 'a/m' takes 16 ms, not 74 ms"
std::string Remeasure::line_of(std::uint32_t p, const worker::Ready& before) const {
  std::string out, separator = "; one frame of ";
  for (std::size_t m = 0; m < before.latency_by_batch.size(); ++m) {
    if (!was_measured(before, m)) continue;
    const worker::ModuleSetup& module = deployment_.setups[p].modules[m];
    const std::string now = text::time_text(ready_[p].latency_by_batch[m].front().p50_ns),
                      then = text::time_text(before.latency_by_batch[m].front().p50_ns);
    if (now == then) continue;
    out += separator + "'" + module.application + "/" + module.name + "' takes " + now + ", not " + then;
    separator = ", of ";
  }
  if (out.empty()) return out;  // as it is printed, nothing has changed
  return "partition '" + deployment_.partitions[p].partition.name +
         "': its models were measured again while it was idle" + out;
}

}  // namespace leat::daemon
