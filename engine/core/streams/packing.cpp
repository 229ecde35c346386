#include "engine/core/streams/packing.h"

#include <algorithm>

namespace leat::core::streams {
namespace {

constexpr TimeNs kUnbounded = 1'000'000;  // intervals that a frame may come early where `reach` is infinite

constexpr auto kLater = [](const auto& a, const auto& b) {
  return a.at_ns != b.at_ns ? a.at_ns > b.at_ns : a.candidate > b.candidate;
};

// The heap's top has become later: half of what std's pop and push take.
template <class Request>
void sink_top(std::vector<Request>& heap) {
  if (heap.empty()) return;
  const Request r = heap.front();
  std::size_t at = 0;
  for (std::size_t below = 1; below < heap.size(); below = 2 * at + 1) {
    if (below + 1 < heap.size() && kLater(heap[below], heap[below + 1])) ++below;
    if (!kLater(r, heap[below])) break;
    heap[at] = heap[below];
    at = below;
  }
  heap[at] = r;
}

}  // namespace

Packing::Packing(std::size_t streams, std::size_t modules) : next_(modules) {
  for (Heap& each : next_) each.reserve(streams);
  taken_.reserve(streams);
}

void Packing::pack(std::span<const Candidate> candidates, std::span<const BatchTimes> batch_ns,
                   const PackingRules& rules, std::vector<PlannedBatch>& batches, std::vector<std::uint32_t>& members) {
  candidates_ = candidates;
  rules_ = rules;
  collect();
  TimeNs free = rules.from_ns;
  while (batches.size() < batches.capacity()) {
    const std::optional<Opening> at = first_opening(free);
    if (!at) return;
    const std::vector<TimeNs>& runs = batch_ns[at->module][rules.partition];
    const auto first = static_cast<std::uint32_t>(members.size());
    const std::uint32_t count = fill(*at, static_cast<std::uint32_t>(runs.size()), members);
    if (count == 0) return;  // no room for members
    const TimeNs run = runs[count - 1], end = at->start_ns + run;
    batches.push_back(
        {.start_ns = at->start_ns, .end_ns = end, .first = first, .count = count, .partition = rules.partition});
    free = end + static_cast<TimeNs>(rules.grace * static_cast<double>(run));
  }
}

// The first frame of every candidate that has one in reach.
void Packing::collect() {
  number_ = 0;
  taken_.assign(candidates_.size(), 0);
  for (Heap& each : next_) each.clear();
  for (std::uint32_t c = 0; c < candidates_.size(); ++c)
    if (const Request r{candidates_[c].next_ns, c}; in_reach(r)) next_[candidates_[c].module].push_back(r);
  for (Heap& each : next_) std::make_heap(each.begin(), each.end(), kLater);
}

// The module whose next frame can start first; of equals the one whose frame is due first.
std::optional<Packing::Opening> Packing::first_opening(TimeNs free_ns) const {
  std::optional<Opening> best;
  for (std::size_t m = 0; m < next_.size(); ++m) {
    if (next_[m].empty()) continue;
    const Request& first = next_[m].front();
    const TimeNs start = std::max(free_ns, earliest(first));
    if (start >= rules_.until_ns) continue;
    if (!best || start < best->start_ns || (start == best->start_ns && kLater(next_[best->module].front(), first)))
      best = {m, start};
  }
  return best;
}

// Puts frames into the batch as long as all of its members allow one more, each stream's once; returns how many.
std::uint32_t Packing::fill(const Opening& at, std::uint32_t largest, std::vector<std::uint32_t>& members) {
  Heap& next = next_[at.module];
  ++number_;
  std::uint32_t count = 0, limit = largest;
  while (!next.empty()) {
    const Request r = next.front();
    const Candidate& c = candidates_[r.candidate];
    // A probe takes two places; a stream that else rides alone gives way to itself.
    const bool probes = c.probe && taken_[r.candidate] == 0;
    limit = std::min(limit, probes && count == 0 && largest > 1 ? std::max(2u, c.batch) : c.batch);
    const std::size_t room = members.capacity() - members.size();
    if (count + 1 > limit || taken_[r.candidate] == number_ || earliest(r) > at.start_ns || room == 0) break;
    const std::uint32_t places = probes && count + 2 <= limit && room >= 2 ? 2 : 1;
    taken_[r.candidate] = number_;
    count += places;
    members.insert(members.end(), places, c.stream);
    request_again(next, at.start_ns);
  }
  return count;
}

// The frame on top has been planned at `start_ns`: in its place comes the stream's next one, where it is in reach.
void Packing::request_again(Heap& next, TimeNs start_ns) {
  Request& r = next.front();
  r.at_ns = (rules_.even ? start_ns : r.at_ns) + candidates_[r.candidate].interval_ns;
  if (!in_reach(r)) {
    r = next.back();
    next.pop_back();
  }
  sink_top(next);
}

// A frame may come before its time, so those of a while after the end count as well.
bool Packing::in_reach(const Request& r) const {
  const auto interval = static_cast<double>(candidates_[r.candidate].interval_ns);
  return r.at_ns < rules_.until_ns + static_cast<TimeNs>(std::min(rules_.reach, 1.0) * interval);
}

// The earliest that the frame may come.
TimeNs Packing::earliest(const Request& r) const {
  const Candidate& c = candidates_[r.candidate];
  if (!c.early) return r.at_ns;
  const double early = rules_.reach * static_cast<double>(c.interval_ns);
  const TimeNs max = rules_.even ? c.interval_ns - c.apart_ns : c.interval_ns * kUnbounded;
  return r.at_ns - (early < static_cast<double>(max) ? static_cast<TimeNs>(early) : max);
}

}  // namespace leat::core::streams
