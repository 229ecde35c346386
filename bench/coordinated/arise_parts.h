// What the world of arise_world.h is made of: cameras and how they are judged, run times, totals.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "bench/coordinated/arise_world.h"
#include "engine/core/streams/settings.h"
#include "engine/sim/workload/random.h"
#include "leat/look_back.hpp"

namespace leat::bench {

using namespace core::streams;
using core::TimeNs;

inline constexpr TimeNs kPeriod = 16'666'667;
inline constexpr std::uint32_t kWindowFrames = 60;
inline constexpr double kServed = 0.95;

// A camera, what is shown of it, and how that is judged.
struct Camera {
  TimeNs phase_ns = 0;
  std::uint64_t offset = 0;  // in its video
  double sla = 0.06;
  DropEstimator estimator;  // of reactive policies, with what closes the loop of ours
  Margin margin;
  DropMeter meter;
  LookBack look;                       // of coordinated ones
  std::int64_t source = -1, next = 0;  // frame that its answers are of; first frame not shown yet
  std::uint32_t in_window = 0;
  double lost = 0;
  std::uint32_t windows = 0, kept = 0;
  double lost_whole = 0;

  [[nodiscard]] std::int64_t newest(TimeNs at) const { return (at - phase_ns) / kPeriod; }
  [[nodiscard]] std::int64_t first_at(TimeNs at) const { return (at - phase_ns + kPeriod - 1) / kPeriod; }
  [[nodiscard]] TimeNs taken(std::int64_t frame) const { return phase_ns + frame * kPeriod; }
};

struct World {
  explicit World(const AriseCase& of)
      : c(of), random(of.seed * 7919 + 17), end_ns(static_cast<TimeNs>(1e9 * of.seconds)) {
    // What a frame would lose at the strides of a partition of its own, by frame of the video.
    const std::uint32_t k = frames_until_answer(c.batch_ns[0], {.period_ns = kPeriod}, 0.1);
    reference.resize(c.table->frames);
    for (std::uint32_t f = 0; f < c.table->frames; ++f) {
      for (std::uint32_t s = k; s < 2 * k; ++s) reference[f] += c.table->extra(f + c.table->frames - s, s);
      reference[f] /= k;
    }
  }
  Camera camera() {
    Camera out;
    out.phase_ns = static_cast<TimeNs>(random.below(kPeriod));
    out.offset = random.below(c.table->frames);
    out.sla = c.sla_min + (c.sla_max - c.sla_min) * random.uniform();
    return out;
  }
  TimeNs run_ns(std::uint32_t batch) {
    const double noise = std::clamp(0.02 * random.normal(), -0.06, 0.06);
    return static_cast<TimeNs>(static_cast<double>(c.batch_ns[batch - 1]) * (1 + noise));
  }
  // Shows all frames before `until` with what there is.
  void show(Camera& cam, TimeNs until) const {
    const std::int64_t end = cam.first_at(until), warm = cam.newest(static_cast<TimeNs>(1e9 * c.warm_up_s));
    for (; cam.next < end; ++cam.next) {
      if (cam.source < 0 || cam.next <= warm) continue;
      const auto stride = static_cast<std::uint64_t>(cam.next - cam.source);
      cam.lost += c.table->extra(cam.offset + static_cast<std::uint64_t>(cam.source), stride) -
                  reference[(cam.offset + static_cast<std::uint64_t>(cam.next)) % c.table->frames];
      if (++cam.in_window < kWindowFrames) continue;
      ++cam.windows;
      cam.kept += cam.lost / kWindowFrames <= cam.sla ? 1 : 0;
      cam.lost_whole += cam.lost / kWindowFrames;
      cam.lost = 0;
      cam.in_window = 0;
    }
  }
  // What the client sees at an answer: the stride from frame `source`, and the distance to what tracking from there
  // makes of this frame. 0: no frame before it was answered.
  std::pair<std::uint32_t, double> compare(const Camera& cam, std::int64_t source, std::int64_t frame) const {
    if (source < 0 || frame <= source) return {0, 0};
    const auto stride = static_cast<std::uint32_t>(std::min<std::int64_t>(frame - source, kLongestStride));
    return {stride, std::clamp(c.table->observed(cam.offset + static_cast<std::uint64_t>(source), stride), 0.0, 1.0)};
  }
  [[nodiscard]] bool warm(TimeNs at) const { return at >= static_cast<TimeNs>(1e9 * c.warm_up_s); }

  const AriseCase& c;
  sim::Random random;
  TimeNs end_ns;
  std::vector<double> reference;
};

// What a run adds up to, behind its warm-up.
struct Totals {
  double windows = 0, kept = 0, stays = 0, served = 0;
  double busy_ns = 0, batches = 0, items = 0, offloaded = 0;  // of partitions; answers
  double admitted_s = 0;                                      // of all clients together
  std::vector<double> drops_over_sla;
  void stay(const Camera& cam) {
    if (cam.windows == 0) return;
    windows += cam.windows;
    kept += cam.kept;
    stays += 1;
    served += cam.lost_whole <= cam.sla * cam.windows ? 1 : 0;
    drops_over_sla.push_back(cam.lost_whole / cam.windows / cam.sla);
  }
  void ran(TimeNs run_ns, std::size_t count) {
    busy_ns += static_cast<double>(run_ns);
    batches += 1;
    items += static_cast<double>(count);
  }
  // Adds to what is in `out` already. Without a stay everything was within.
  [[nodiscard]] AriseResult result(const AriseCase& c, AriseResult out = {}) {
    const double measured_s = c.seconds - c.warm_up_s;
    out.clients = windows / std::floor(measured_s);
    out.within = stays == 0 ? 1 : served / stays;
    out.windows_within = windows == 0 ? 1 : kept / windows;
    out.batch = batches == 0 ? 0 : items / batches;
    out.idle = 1 - busy_ns / (1e9 * measured_s * c.partitions);
    out.interval = offloaded == 0 ? 0 : admitted_s * 60 / offloaded;
    out.evictions /= measured_s;
    out.drops_over_sla = std::move(drops_over_sla);
    return out;
  }
};

// As many clients as a server of the closed form would hold at the video's mean slope, half as many again.
inline std::uint32_t crowd(const AriseCase& c) {
  const CoordinatorSettings ours;
  const double slope = std::max(0.0005, (c.table->mean_extra(24) - c.table->mean_extra(4)) / 20);
  const Setting best =
      best_setting(c.batch_ns, {.period_ns = kPeriod}, 0.1, c.sla_max / slope, StrideCurve(ours.bend, ours.hidden));
  return static_cast<std::uint32_t>(c.partitions * 1.5 / best.load) + 8;
}

}  // namespace leat::bench
