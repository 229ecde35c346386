#include "engine/core/streams/packing.h"

#include <algorithm>

namespace leat::core::streams {

Packing::Packing(std::size_t streams) {
  next_.reserve(streams);
  taken_.reserve(streams);
}

void Packing::pack(std::span<const Candidate> candidates, std::span<const TimeNs> batch_ns, PartitionId partition,
                   TimeNs free_ns, TimeNs until, double grace, double reach, bool even,
                   std::vector<PlannedBatch>& batches, std::vector<std::uint32_t>& members) {
  const auto later = [](const Request& a, const Request& b) {
    return a.at_ns != b.at_ns ? a.at_ns > b.at_ns : a.candidate > b.candidate;
  };
  // With `reach` a frame may come before its time, so those of a while after `until` count as well.
  const auto counts = [&](const Request& r) {
    const auto interval = static_cast<double>(candidates[r.candidate].interval_ns);
    return r.at_ns < until + static_cast<TimeNs>(std::min(reach, 1.0) * interval);
  };
  // The earliest that it may start.
  const auto earliest = [&](const Request& r) {
    const Candidate& c = candidates[r.candidate];
    const double early = reach * static_cast<double>(c.interval_ns);
    const TimeNs most = even ? c.interval_ns - c.apart_ns : c.interval_ns * 1'000'000;
    return r.at_ns - (early < static_cast<double>(most) ? static_cast<TimeNs>(early) : most);
  };
  // The heap's top has become later: half of what std's pop and push take.
  const auto sink = [&] {
    if (next_.empty()) return;
    const Request r = next_.front();
    std::size_t at = 0;
    for (std::size_t below = 1; below < next_.size(); below = 2 * at + 1) {
      if (below + 1 < next_.size() && later(next_[below], next_[below + 1])) ++below;
      if (!later(r, next_[below])) break;
      next_[at] = next_[below];
      at = below;
    }
    next_[at] = r;
  };
  next_.clear();
  for (std::uint32_t c = 0; c < candidates.size(); ++c)
    if (const Request r{candidates[c].next_ns, c}; counts(r)) next_.push_back(r);
  std::make_heap(next_.begin(), next_.end(), later);
  taken_.assign(candidates.size(), 0);
  std::uint32_t number = 0;
  for (TimeNs t = free_ns; !next_.empty();) {
    const TimeNs start = std::max(t, earliest(next_.front()));
    if (start >= until || batches.size() == batches.capacity()) return;
    ++number;
    std::uint32_t count = 0, most = static_cast<std::uint32_t>(batch_ns.size());
    const auto begin = static_cast<std::uint32_t>(members.size());
    while (!next_.empty()) {
      const Request r = next_.front();
      const Candidate& c = candidates[r.candidate];
      // A probe takes two places; a stream that else rides alone gives way to itself.
      const bool probes = c.probe && taken_[r.candidate] == 0;
      most = std::min(most, probes && count == 0 && batch_ns.size() > 1 ? std::max(2u, c.batch) : c.batch);
      if (count + 1 > most || taken_[r.candidate] == number || earliest(r) > start ||
          members.size() == members.capacity())
        break;
      const bool twice = probes && count + 2 <= most && members.size() + 2 <= members.capacity();
      taken_[r.candidate] = number;
      count += twice ? 2 : 1;
      members.insert(members.end(), twice ? 2 : 1, c.stream);
      next_.front().at_ns = (even ? start : r.at_ns) + c.interval_ns;
      if (!counts(next_.front())) {
        next_.front() = next_.back();
        next_.pop_back();
      }
      sink();
    }
    if (count == 0) return;  // no room for members
    const TimeNs run = batch_ns[count - 1];
    batches.push_back(
        {.start_ns = start, .end_ns = start + run, .first = begin, .count = count, .partition = partition});
    t = start + run + static_cast<TimeNs>(grace * static_cast<double>(run));
  }
}

}  // namespace leat::core::streams
