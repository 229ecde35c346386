#include "engine/core/streams/packing.h"

#include <algorithm>
#include <optional>

namespace leat::core::streams {

Packing::Packing(std::size_t streams, std::size_t modules) : next_(modules) {
  for (auto& each : next_) each.reserve(streams);
  taken_.reserve(streams);
}

void Packing::pack(std::span<const Candidate> candidates, std::span<const BatchTimes> batch_ns, PartitionId partition,
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
    const TimeNs max = even ? c.interval_ns - c.apart_ns : c.interval_ns * 1'000'000;
    return r.at_ns - (early < static_cast<double>(max) ? static_cast<TimeNs>(early) : max);
  };
  // The heap's top has become later: half of what std's pop and push take.
  const auto sink = [&](std::vector<Request>& next) {
    if (next.empty()) return;
    const Request r = next.front();
    std::size_t at = 0;
    for (std::size_t below = 1; below < next.size(); below = 2 * at + 1) {
      if (below + 1 < next.size() && later(next[below], next[below + 1])) ++below;
      if (!later(r, next[below])) break;
      next[at] = next[below];
      at = below;
    }
    next[at] = r;
  };
  for (auto& each : next_) each.clear();
  for (std::uint32_t c = 0; c < candidates.size(); ++c)
    if (const Request r{candidates[c].next_ns, c}; counts(r)) next_[candidates[c].module].push_back(r);
  for (auto& each : next_) std::make_heap(each.begin(), each.end(), later);
  taken_.assign(candidates.size(), 0);
  std::uint32_t number = 0;
  for (TimeNs t = free_ns;;) {
    TimeNs start = until;
    std::optional<std::size_t> module;
    for (std::size_t m = 0; m < next_.size(); ++m) {
      if (next_[m].empty()) continue;
      const TimeNs here = std::max(t, earliest(next_[m].front()));
      if (here > start || (here == start && module && !later(next_[*module].front(), next_[m].front()))) continue;
      start = here;
      module = m;
    }
    if (start >= until || batches.size() == batches.capacity()) return;
    std::vector<Request>& next = next_[*module];
    const std::vector<TimeNs>& runs = batch_ns[*module][partition];
    ++number;
    std::uint32_t count = 0, max = static_cast<std::uint32_t>(runs.size());
    const auto begin = static_cast<std::uint32_t>(members.size());
    while (!next.empty()) {
      const Request r = next.front();
      const Candidate& c = candidates[r.candidate];
      // A probe takes two places; a stream that else rides alone gives way to itself.
      const bool probes = c.probe && taken_[r.candidate] == 0;
      max = std::min(max, probes && count == 0 && runs.size() > 1 ? std::max(2u, c.batch) : c.batch);
      if (count + 1 > max || taken_[r.candidate] == number || earliest(r) > start ||
          members.size() == members.capacity())
        break;
      const bool twice = probes && count + 2 <= max && members.size() + 2 <= members.capacity();
      taken_[r.candidate] = number;
      count += twice ? 2 : 1;
      members.insert(members.end(), twice ? 2 : 1, c.stream);
      next.front().at_ns = (even ? start : r.at_ns) + c.interval_ns;
      if (!counts(next.front())) {
        next.front() = next.back();
        next.pop_back();
      }
      sink(next);
    }
    if (count == 0) return;  // no room for members
    const TimeNs run = runs[count - 1];
    batches.push_back(
        {.start_ns = start, .end_ns = start + run, .first = begin, .count = count, .partition = partition});
    t = start + run + static_cast<TimeNs>(grace * static_cast<double>(run));
  }
}

}  // namespace leat::core::streams
