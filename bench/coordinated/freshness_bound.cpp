#include "bench/coordinated/freshness_bound.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>

namespace leat::bench {
namespace {

constexpr TimeNs kNever = std::numeric_limits<TimeNs>::max();
// More losses than the fewest by this many, or a last frame further back than this, are never better: a partition that
// leaves two windows out is free, with every frame still to come.
constexpr std::size_t kMoreLost = 6, kBack = 6;

std::vector<Frame> frames_of(const Scenario& c, std::size_t i, std::uint64_t seed, TimeNs length) {
  const Source& source = c.sources[i];
  std::vector<Frame> out;
  const auto stream = static_cast<std::uint32_t>(i);
  for (TimeNs at = phase_ns(source, seed, stream); at < length; at += source.period)
    out.push_back({at, drawn_ns(c.models[source.model], seed, stream, at)});
  return out;
}

}  // namespace

std::uint32_t fewest_lost_alone(const Observed& s, std::span<const Frame> frames) {
  if (s.end <= s.first) return 0;
  const auto windows = static_cast<std::size_t>((s.end - s.first) / s.period);
  // free[more][back]: earliest moment from which the partition is free, having lost `fewest` + more windows so far,
  // with frames up to window - back used.
  using States = std::array<std::array<TimeNs, kBack>, kMoreLost>;
  States now;
  for (auto& row : now) row.fill(kNever);
  now[0][kBack - 1] = s.first;
  std::uint32_t fewest = 0;
  for (std::size_t w = 0; w < windows; ++w) {
    const TimeNs begin = s.first + static_cast<TimeNs>(w) * s.period, end = begin + s.period;
    States next;
    for (auto& row : next) row.fill(kNever);
    for (std::size_t more = 0; more < kMoreLost; ++more) {
      for (std::size_t back = 0; back < kBack; ++back) {
        const TimeNs free = now[more][back];
        if (free == kNever) continue;
        if (more + 1 < kMoreLost) {  // lost
          TimeNs& to = next[more + 1][std::min(back + 1, kBack - 1)];
          to = std::min(to, free);
        }
        for (std::size_t b = 0; b < std::min(back + 1, kBack); ++b) {  // frame w - b, later than w - 1 - back
          if (b > w || w - b >= frames.size()) continue;
          const Frame& frame = frames[w - b];
          const TimeNs done = std::max(std::max(free, frame.capture) + frame.run, begin);
          if (done >= end || done - frame.capture > s.max_age) continue;
          next[more][b] = std::min(next[more][b], done);
        }
      }
    }
    if (std::all_of(next[0].begin(), next[0].end(),
                    [](TimeNs t) { return t == kNever; })) {  // this window is lost in any case
      std::move(next.begin() + 1, next.end(), next.begin());
      next.back().fill(kNever);
      ++fewest;
    }
    now = next;
  }
  return fewest;
}

double max_worth(std::vector<Offer> offers, TimeNs& capacity) {
  std::sort(offers.begin(), offers.end(), [](const Offer& a, const Offer& b) {
    return a.worth * static_cast<double>(b.run) > b.worth * static_cast<double>(a.run);
  });
  double worth = 0;
  for (const Offer& o : offers) {
    if (o.run > capacity) {
      worth += o.worth * static_cast<double>(capacity) / static_cast<double>(o.run);
      capacity = 0;
      break;
    }
    worth += o.worth;
    capacity -= o.run;
  }
  return worth;
}

double min_uncovered_permille(const Scenario& c, std::size_t i, std::uint64_t seed, TimeNs length) {
  const Source& source = c.sources[i];
  if (c.models[source.model].pool.size() > 1 || source.background) return 0;
  const TimeNs first = phase_ns(source, seed, static_cast<std::uint32_t>(i));
  const Observed s{.period = source.period, .max_age = source.max_age, .first = first, .end = length};
  const TimeNs windows = (length - first) / source.period;
  return windows <= 0 ? 0 : 1000.0 * fewest_lost_alone(s, frames_of(c, i, seed, length)) / static_cast<double>(windows);
}

double min_mean_permille(const Scenario& c, std::uint64_t seed, TimeNs length) {
  std::vector<bool> used(c.partitions, false);
  std::map<core::Priority, std::vector<Offer>, std::greater<>> classes;
  double streams = 0;
  for (std::size_t i = 0; i < c.sources.size(); ++i) {
    const Source& source = c.sources[i];
    if (source.background) continue;
    const Model& model = c.models[source.model];
    for (core::PartitionId p : model.pool) used[p] = true;
    const TimeNs windows =
        std::max<TimeNs>(0, length - phase_ns(source, seed, static_cast<std::uint32_t>(i))) / source.period;
    std::vector<TimeNs> runs;
    for (const Frame& f : frames_of(c, i, seed, length))
      runs.push_back(batch_ns(model, f.run, model.batch) / model.batch);
    std::sort(runs.begin(), runs.end());
    runs.resize(std::min(runs.size(), static_cast<std::size_t>(windows)));  // the shortest
    for (TimeNs run : runs) classes[source.priority].push_back({1 / static_cast<double>(windows), run});
    ++streams;
  }
  TimeNs capacity = length * std::count(used.begin(), used.end(), true);
  double covered = 0;
  for (const auto& [priority, offers] : classes) covered += max_worth(offers, capacity);
  return streams > 0 ? std::max(0.0, 1000 * (1 - covered / streams)) : 0;
}

}  // namespace leat::bench
