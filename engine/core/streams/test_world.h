// For tests of the coordinator: clients whose drop is exactly a line, and a server that does what the plan says.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <set>
#include <vector>

#include "engine/core/streams/coordinator/coordinator.h"
#include "leat/look_back.hpp"

namespace leat::core::streams {

inline constexpr TimeNs kSecond = 1'000'000'000;

// What a client sees where that much is lost beside a detection of the same frame, and detections flicker
// (estimator.h).
inline double seen(double lost) {
  const double f = 0.05 / std::numbers::sqrt2;
  return std::hypot(lost + f, f);
}

inline std::vector<TimeNs> profile(double base_ms, double each_ms, int largest = 32) {
  std::vector<TimeNs> out;
  for (int b = 1; b <= largest; ++b) out.push_back(static_cast<TimeNs>(1e6 * (base_ms + each_ms * b)));
  return out;
}

struct World {
  World(std::size_t partitions, const CoordinatorSettings& s, const std::vector<TimeNs>& batch_ns = profile(6, 1.5))
      : World(std::vector<BatchTimes>{BatchTimes(partitions, batch_ns)}, s) {}
  World(std::vector<BatchTimes> batch_ns, const CoordinatorSettings& s) : c(std::move(batch_ns), s) {}
  std::uint32_t add(double slope, const CoordinatedStream& spec) {
    const std::uint32_t id = c.open(now, spec);
    if (id != kNone) {
      slopes.resize(std::max<std::size_t>(slopes.size(), id + 1));
      sources.resize(slopes.size(), INT64_MIN);
      looks.resize(slopes.size());
      slopes[id] = slope;
    }
    return id;
  }
  void run(TimeNs until) {
    while (now < until) {
      const TimeNs stop = std::min(until, c.next_tick());
      for (const PlannedBatch& b : c.batches()) {
        if (b.start_ns < now || b.start_ns >= stop) continue;
        EXPECT_LE(b.count, 32u);
        const TimeNs start = std::max(b.start_ns, free_ns);
        const TimeNs end =
            start + (slower > 0 ? static_cast<TimeNs>(slower * static_cast<double>(profile_ns[b.count - 1]))
                                : b.end_ns - b.start_ns);
        if (slower > 0) c.ran(0, b.partition, b.count, end - start, start - b.start_ns), free_ns = end;
        for (const std::uint32_t id : c.members(b)) {
          answers.push_back({end, b.start_ns, id});
          slots.push_back({b.start_ns, b.end_ns, id, b.partition});
        }
        detections += b.count;
      }
      std::stable_sort(answers.begin(), answers.end(), [](const Answer& x, const Answer& y) { return x.at < y.at; });
      while (!answers.empty() && answers.front().at <= stop) {
        const Answer a = answers.front();
        answers.erase(answers.begin());
        if (sources[a.id] == a.capture) {  // the second of a probe: one frame before
          c.observe(a.at, a.id, 1, seen(slopes[a.id] * c.curve().at(1)));
          continue;
        }
        const auto observe = [&](std::uint32_t stride, bool far) {
          const double lost = lying == a.id || liars.contains(a.id) ? 0.9 : slopes[a.id] * c.curve().at(stride);
          const double expected = expects.contains(a.id) ? std::min(1.0, expects[a.id] * lost) : -1;
          c.observe(a.at, a.id, stride, std::min(1.0, seen(lost)), far, expected);
        };
        if (sources[a.id] != INT64_MIN)
          observe(static_cast<std::uint32_t>((a.capture - sources[a.id] + 8'000'000) / 16'666'667), false);
        const auto frame = static_cast<std::uint64_t>((a.capture + 8'000'000) / 16'666'667);
        if (const auto from = looks[a.id].answered(frame)) observe(static_cast<std::uint32_t>(frame - *from), true);
        c.answered(a.at, a.id, a.capture);
        sources[a.id] = a.capture;
      }
      now = stop;
      if (now >= c.next_tick()) c.tick(now);
    }
  }
  struct Answer {
    TimeNs at, capture;
    std::uint32_t id;
  };
  Coordinator c;
  TimeNs now = 1'000'000'000;
  std::vector<double> slopes;
  std::vector<TimeNs> sources;
  std::vector<LookBack> looks;
  std::vector<Answer> answers;
  std::uint64_t detections = 0;
  struct Slot {  // what was planned and sent
    TimeNs start, end;
    std::uint32_t id;
    PartitionId partition = 0;
  };
  std::vector<Slot> slots;
  std::uint32_t lying = kNone;
  std::set<std::uint32_t> liars;
  std::map<std::uint32_t, double> expects;  // so many times what is lost, where a client says so
  double slower = 0;                        // than profile_ns batches run, on one partition; 0: as planned
  std::vector<TimeNs> profile_ns = profile(6, 1.5);
  TimeNs free_ns = 0;
};

}  // namespace leat::core::streams
