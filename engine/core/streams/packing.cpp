#include "engine/core/streams/packing.h"

#include <algorithm>

namespace leat::core::streams {

Packing::Packing(std::size_t streams, std::size_t requests) : limit_(requests) {
  requests_.reserve(requests);
  taken_.reserve(streams);
}

void Packing::pack(std::span<const Candidate> candidates, std::span<const TimeNs> batch_ns, PartitionId partition,
                   TimeNs free_ns, TimeNs until, double grace, double reach, std::vector<PlannedBatch>& batches,
                   std::vector<std::uint32_t>& members) {
  // Simulate. With `reach` a frame may come before its time, so those of a while after `until` count as well.
  requests_.clear();
  for (std::uint32_t c = 0; c < candidates.size(); ++c) {
    const Candidate& each = candidates[c];
    const TimeNs ahead = static_cast<TimeNs>(std::min(reach, 1.0) * static_cast<double>(each.interval_ns));
    for (TimeNs at = each.next_ns; at < until + ahead && requests_.size() < limit_; at += each.interval_ns)
      requests_.push_back({at, c});
  }
  std::sort(requests_.begin(), requests_.end(), [](const Request& a, const Request& b) {
    return a.at_ns != b.at_ns ? a.at_ns < b.at_ns : a.candidate < b.candidate;
  });
  taken_.assign(candidates.size(), 0);
  // Adjust.
  std::uint32_t number = 0;
  TimeNs t = free_ns;
  for (std::size_t i = 0; i < requests_.size();) {
    const auto reaches = [&](const Request& r, TimeNs start) {
      return static_cast<double>(r.at_ns - start) <= reach * static_cast<double>(candidates[r.candidate].interval_ns);
    };
    const Request& first = requests_[i];
    TimeNs start = t;
    if (!reaches(first, t))
      start = first.at_ns - static_cast<TimeNs>(reach * static_cast<double>(candidates[first.candidate].interval_ns));
    if (start >= until || batches.size() == batches.capacity()) return;
    ++number;
    std::uint32_t count = 0, most = static_cast<std::uint32_t>(batch_ns.size());
    const auto begin = static_cast<std::uint32_t>(members.size());
    std::size_t next = i;
    for (; next < requests_.size(); ++next) {
      const Request& r = requests_[next];
      const Candidate& c = candidates[r.candidate];
      // A probe takes two places; a stream that else rides alone gives way to itself.
      const bool probes = c.probe && taken_[r.candidate] == 0;
      most = std::min(most, probes && count == 0 && batch_ns.size() > 1 ? std::max(2u, c.batch) : c.batch);
      if (count + 1 > most || taken_[r.candidate] == number || !reaches(r, start) ||
          members.size() == members.capacity())
        break;
      const bool twice = probes && count + 2 <= most && members.size() + 2 <= members.capacity();
      taken_[r.candidate] = number;
      count += twice ? 2 : 1;
      members.insert(members.end(), twice ? 2 : 1, c.stream);
    }
    if (count == 0) return;  // no room for members
    const TimeNs run = batch_ns[count - 1];
    batches.push_back(
        {.start_ns = start, .end_ns = start + run, .first = begin, .count = count, .partition = partition});
    i = next;
    t = start + run + static_cast<TimeNs>(grace * static_cast<double>(run));
  }
}

}  // namespace leat::core::streams
