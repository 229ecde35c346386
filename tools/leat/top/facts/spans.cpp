#include "tools/leat/top/facts/spans.h"

#include <algorithm>

namespace leat::tools::top {

using shm::RecordSnapshot;
using shm::StreamCounter;

Loss loss_of(Reason reason) noexcept {
  switch (reason) {
    case Reason::expired:
    case Reason::unreachable:
    case Reason::window:
    case Reason::superseded:
    case Reason::stale:
    case Reason::overload:
    case Reason::queue_full:
    case Reason::no_feature_slot:
    case Reason::sibling_dropped:
      return Loss::load;
    case Reason::partition_lost:
    case Reason::no_partition:
    case Reason::model_error:
    case Reason::bad_frame:
    case Reason::unschedulable:
    case Reason::poison:
    case Reason::result_too_large:
    case Reason::undecodable:
    case Reason::not_finite:
      return Loss::fault;
    default:
      return Loss::none;
  }
}

std::optional<double> quantile_of(const Buckets& buckets, double q) noexcept {
  double total = 0;
  for (const auto n : buckets) total += static_cast<double>(n);
  if (total == 0) return std::nullopt;
  const double wanted = q * total;
  double below = 0;
  for (std::uint32_t b = 0; b < buckets.size(); ++b) {
    const auto here = static_cast<double>(buckets[b]);
    if (here > 0 && below + here >= wanted) {
      const auto low = static_cast<double>(shm::bucket_low_ns(b)),
                 high = static_cast<double>(shm::bucket_low_ns(b + 1));
      return low + (high - low) * (wanted - below) / here;
    }
    below += here;
  }
  return static_cast<double>(shm::bucket_low_ns(shm::kBuckets));
}

double Span::cause(std::size_t index) const {
  const auto n = [&](const RecordSnapshot* r) {
    return r == nullptr || r->causes[index] == shm::kUnknown ? 0.0 : static_cast<double>(r->causes[index]);
  };
  return n(now) - n(before);
}

Buckets Span::buckets(shm::Which which) const {
  Buckets out{};
  const auto& is = now->buckets[static_cast<std::size_t>(which)];
  std::copy_n(is.begin(), std::min(is.size(), out.size()), out.begin());
  if (before == nullptr) return out;
  const auto& was = before->buckets[static_cast<std::size_t>(which)];
  for (std::size_t i = 0; i < std::min(was.size(), out.size()); ++i) out[i] -= std::min(out[i], was[i]);
  return out;
}

Losses Span::losses() const {
  Losses out{.seconds = seconds};
  if (seconds <= 0) return out;
  out.late = delta(StreamCounter::late);
  out.answers = delta(StreamCounter::completed) + out.late + delta(StreamCounter::dropped) +
                delta(StreamCounter::failed) + delta(StreamCounter::rejected);
  for (std::size_t r = 1; r < kReasonCount; ++r) {
    const Loss loss = loss_of(static_cast<Reason>(r));
    if (loss == Loss::load) out.load += cause(r);
    if (loss == Loss::fault) out.faults += cause(r);
  }
  out.superseded = cause(static_cast<std::size_t>(Reason::superseded));
  return out;
}

const RecordSnapshot* find_in(const std::vector<RecordSnapshot>& records, const RecordSnapshot& record) noexcept {
  const auto at = std::lower_bound(records.begin(), records.end(), record.index,
                                   [](const RecordSnapshot& r, std::uint32_t index) { return r.index < index; });
  return at != records.end() && at->index == record.index && at->epoch == record.epoch ? &*at : nullptr;
}

Span span_since(const std::vector<RecordSnapshot>* before, std::int64_t before_ns, const RecordSnapshot& now,
                std::int64_t now_ns, std::int64_t began_ns) noexcept {
  if (before == nullptr) return {&now, nullptr, 0};
  if (const RecordSnapshot* was = find_in(*before, now))
    return {&now, was, static_cast<double>(now_ns - before_ns) / 1e9};
  // What began a moment ago has no rate yet.
  if (began_ns == 0 || now_ns - began_ns < kSecondNs / 2) return {&now, nullptr, 0};
  return {&now, nullptr, static_cast<double>(now_ns - began_ns) / 1e9};
}

}  // namespace leat::tools::top
