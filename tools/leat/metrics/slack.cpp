#include "tools/leat/metrics/slack.h"

#include <algorithm>
#include <cstdint>

namespace leat::tools {
namespace {

using shm::PartitionCounter;
using shm::StreamCounter;

constexpr std::uint64_t kUp = 2;  // of a partition's state

template <class Counter>
double gained(const shm::RecordSnapshot& now, const shm::RecordSnapshot* before, Counter counter) {
  const std::uint64_t a = before == nullptr ? 0 : before->value(counter).value_or(0);
  const std::uint64_t b = now.value(counter).value_or(0);
  return b > a ? static_cast<double>(b - a) : 0;
}

double busy_of(const Window& window) {
  double ran = 0, could = 0;
  for (const shm::RecordSnapshot& p : window.now.partitions) {
    if (p.value(PartitionCounter::state) != kUp) continue;
    could += window.seconds() * 1e9;
    ran += gained(p, earlier(window, p), PartitionCounter::busy_ns) +
           gained(p, earlier(window, p), PartitionCounter::overhead_ns);
  }
  return could == 0 ? 1 : std::min(1.0, ran / could);
}

// Drops that a faster or freer node would not have made.
double refused_of(const shm::RecordSnapshot& total, const shm::RecordSnapshot* before) {
  const double submitted = gained(total, before, StreamCounter::submitted);
  if (submitted == 0) return 0;
  double lost = gained(total, before, StreamCounter::late) + gained(total, before, StreamCounter::rejected);
  for (const leat_reason r : {LEAT_REASON_expired, LEAT_REASON_unreachable, LEAT_REASON_window, LEAT_REASON_overload,
                              LEAT_REASON_queue_full, LEAT_REASON_no_partition}) {
    const std::uint64_t b = before == nullptr ? 0 : before->causes[r], a = total.causes[r];
    if (a != shm::kUnknown && a > b) lost += static_cast<double>(a - b);
  }
  return std::min(1.0, lost / submitted);
}

double waited_of(const Window& window, const shm::RecordSnapshot& total, const shm::RecordSnapshot* before) {
  double slo_ns = 0;
  for (const shm::RecordSnapshot& s : window.now.streams)
    if (const auto slo = s.value(StreamCounter::slo_ns); slo && *slo > 0)
      slo_ns = slo_ns == 0 ? static_cast<double>(*slo) : std::min(slo_ns, static_cast<double>(*slo));
  if (slo_ns == 0) return 0;
  shm::RecordSnapshot since = total;
  auto& buckets = since.buckets[1];
  for (std::size_t i = 0; before != nullptr && i < buckets.size() && i < before->buckets[1].size(); ++i)
    buckets[i] -= std::min(buckets[i], before->buckets[1][i]);
  const auto median = since.quantile_ns(shm::Which::second, 0.5);
  return median ? std::min(1.0, *median / slo_ns) : 0;
}

}  // namespace

std::optional<Slack> slack_of(const Window& window) {
  if (!window.now.total || window.before.at_ns == 0 || window.seconds() < 0.01) return std::nullopt;
  const shm::RecordSnapshot* const before = earlier(window, *window.now.total);
  if (before == nullptr) return std::nullopt;
  Slack out{.busy = busy_of(window),
            .refused = refused_of(*window.now.total, before),
            .waited = waited_of(window, *window.now.total, before)};
  out.free = (1 - out.busy) * (1 - out.refused) * (1 - out.waited);
  return out;
}

}  // namespace leat::tools
