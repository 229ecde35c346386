#include "bench/coordinated/accumo_world.h"

#include <algorithm>
#include <cmath>

#include "engine/core/streams/asking.h"
#include "engine/core/streams/estimator.h"
#include "leat/local_choice.hpp"

namespace leat::bench {
namespace {

using namespace core::streams;

constexpr core::TimeNs kPeriod = 16'666'667;
constexpr double kMinSlope = 0.001;
constexpr std::int64_t kProbeFrames = 90;
constexpr double kSla = 0.06;  // that certainty's factor begins with

struct Shown {
  std::int64_t source = -1;  // frame of the newest answer
  std::int64_t probe_at = 0;
  DropEstimator estimator{{.slope_half_life_ns = 1'000'000'000, .prior_slope = 0.005}};
  // The slope of the moment, held up by its long mean: a slope that looks like nothing for a moment would leave the
  // task without answers, and so without anything to see it by.
  [[nodiscard]] double by_age() const { return (estimator.slope() + 2 * estimator.settled()) / 3; }
  Asking asking;
  LocalChoice choice;
};

}  // namespace

double max_over_round_robin(double ratio) {
  const double d = std::sqrt(ratio) - 1;
  return d * d / (4 * (ratio + 1));
}

double run_accumo(const AccumoCase& c, const AccumoPolicy& policy) {
  const StrideCurve curve(0.006, 3);
  GroupPlanner planner(curve);
  std::vector<Shown> shown(c.tasks.size());
  // Before it begins every task has just been answered once.
  const auto extra = [&](std::size_t i, std::int64_t source, std::uint64_t stride) {
    return c.tasks[i].scale * c.tasks[i].table->extra(c.offset + static_cast<std::uint64_t>(source + 600), stride);
  };
  // Scaled as what is lost; below 0: it is not said.
  const auto expected = [&](std::size_t i, std::int64_t source, std::uint64_t stride) {
    const double told = c.tasks[i].table->expected(c.offset + static_cast<std::uint64_t>(source + 600), stride);
    return policy.certain && told >= 0 ? std::min(1.0, c.tasks[i].scale * told) : -1;
  };
  const AskingSettings asking;
  SharedAsking shared;
  struct Way {
    std::size_t task;
    std::int64_t frame, back;
  };
  std::vector<Way> way;
  std::uint32_t turn = 0;
  double lost = 0;
  std::vector<GroupTask> group(c.tasks.size());
  for (std::int64_t now = 0; now < c.frames; ++now) {
    // Answers.
    for (std::size_t w = 0; w < way.size();) {
      if (way[w].back > now) {
        ++w;
        continue;
      }
      Shown& s = shown[way[w].task];
      const std::int64_t stride = way[w].frame - s.source;
      // What the client sees: the loss and the detector's flicker on both sides, the flicker not scaled with the loss.
      const AccumoTask& task = c.tasks[way[w].task];
      const auto from = c.offset + static_cast<std::uint64_t>(s.source + 600);
      const double flicker = task.table->observed(from, static_cast<std::uint64_t>(stride)) -
                             task.table->extra(from, static_cast<std::uint64_t>(stride));
      const double seen =
          std::clamp(flicker + extra(way[w].task, s.source, static_cast<std::uint64_t>(stride)), 0.0, 1.0);
      s.estimator.observe(now * kPeriod, static_cast<std::uint32_t>(stride), seen, curve);
      const double told = expected(way[w].task, s.source, static_cast<std::uint64_t>(stride));
      if (told >= 0 && stride > 1)
        s.asking.observed(shared, told, curve.at(static_cast<std::uint32_t>(stride)), s.estimator.loss(seen), kSla,
                          asking);
      // Now and then the frame before comes along (a probe): next to nothing is lost from there on.
      if (now >= s.probe_at) {
        s.probe_at = now + kProbeFrames;
        s.estimator.observe(now * kPeriod, 1, std::clamp(task.table->observed(from + 1, 1), 0.0, 1.0), curve);
      }
      s.source = way[w].frame;
      way.erase(way.begin() + static_cast<std::ptrdiff_t>(w));
    }
    // What goes next, where nothing is on its way.
    if (way.empty()) {
      for (std::size_t i = 0; i < c.tasks.size(); ++i) {
        const AccumoTask& t = c.tasks[i];
        group[i] = {.slope = shown[i].asking.slope(shown[i].by_age()) + kMinSlope,
                    .latency = t.latency,
                    .age = static_cast<std::uint32_t>(now - shown[i].source)};
        if (policy.local && t.local > 0) group[i].local = t.local;
        if (policy.turns != Turns::oracle) continue;
        // The slope of the frames that this plan will be judged by.
        double sum = 0, strides = 0;
        for (std::uint32_t s = 4; s <= 12; s += 4) sum += extra(i, now, s), strides += curve.at(s);
        group[i].slope = std::max(1e-5, sum / strides);
      }
      if (policy.turns == Turns::all) {
        std::int64_t whole = 0;
        for (const AccumoTask& t : c.tasks) whole += t.latency;
        for (std::size_t i = 0; i < c.tasks.size(); ++i) way.push_back({i, now, now + whole});
      } else {
        std::size_t task = 0;
        if (policy.turns == Turns::weighted) {
          task = turn++ % (policy.first + policy.second) < policy.first ? 0 : 1;
        } else {
          task = planner.next(group, policy.horizon);
        }
        way.push_back({task, now, now + c.tasks[task].latency});
      }
    }
    // What is shown.
    for (std::size_t i = 0; i < c.tasks.size(); ++i) {
      const auto stride = static_cast<std::uint64_t>(now - shown[i].source);
      const double tracked = extra(i, shown[i].source, stride);
      const double local = c.tasks[i].local;
      const double above = shown[i].asking.local_above(local);
      const bool by_certainty = shown[i].choice.local(expected(i, shown[i].source, stride), above);
      const bool by_age = shown[i].by_age() * curve.at(static_cast<std::uint32_t>(stride)) > local;
      lost += policy.local && local > 0 && (above > 0 ? by_certainty : by_age) ? local : tracked;
    }
  }
  return lost / static_cast<double>(c.frames) / static_cast<double>(c.tasks.size());
}

}  // namespace leat::bench
