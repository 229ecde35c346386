#include "tools/scene/drop_table.h"

#include <ctime>

#include "tools/scene/random.h"

namespace leat::scene {
namespace {

constexpr double kFlicker = 0.8 / 2;  // of a frame 320 wide

double cpu_us() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e6 * static_cast<double>(t.tv_sec) + 1e-3 * static_cast<double>(t.tv_nsec);
}

double normal(Random& r) {  // twelve unit numbers
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += r.unit();
  return sum;
}

double mean_of(const DropTable& t, const std::vector<float>& v, std::uint32_t stride) {
  double sum = 0;
  std::size_t n = 0;
  for (std::size_t i = stride; i < v.size(); i += DropTable::kStrides, ++n) sum += v[i];
  return n == 0 || stride >= t.kStrides ? 0 : sum / static_cast<double>(n);
}

}  // namespace

double DropTable::mean_extra(std::uint32_t stride) const { return mean_of(*this, drop, stride); }
double DropTable::mean_observed(std::uint32_t stride) const { return mean_of(*this, seen, stride); }

DropTable record_drops(const MotionKind& kind, std::uint64_t seed, std::uint32_t frames, std::uint32_t every,
                       AnyTracker tracker) {
  const MotionOptions options{.seed = seed};
  MotionScene scene(kind, options);
  const std::uint32_t all = frames + DropTable::kStrides;
  const std::size_t bytes = std::size_t{options.width} * options.height;
  std::vector<std::uint8_t> video(all * bytes);
  std::vector<std::vector<TrackedBox>> truth(all), detected(all);
  std::vector<double> detector(all);
  const auto frame = [&](std::uint32_t f) {
    return GreyFrame{video.data() + f * bytes, options.width, options.height, options.width};
  };
  for (std::uint32_t f = 0; f < all; ++f) {
    for (const MovingObject& o : scene.render(f, video.data() + f * bytes, options.width)) {
      if (o.visible < 0.5f) continue;
      Random r(mix(seed * 1'000'003 + f, static_cast<std::uint64_t>(o.id)));
      truth[f].push_back({o.x0, o.y0, o.x1, o.y1, o.id});
      TrackedBox d = truth[f].back();
      for (float* side : {&d.x0, &d.y0, &d.x1, &d.y1}) *side += static_cast<float>(kFlicker * normal(r));
      detected[f].push_back(d);
    }
    detector[f] = distance(detected[f], truth[f]);
  }
  DropTable table{.video = std::string(kind.name), .frames = frames, .every = every};
  double tracking = 0;
  std::uint64_t steps = 0;
  for (std::uint32_t f = 0; f < frames; f += every) {
    tracker.start(frame(f), detected[f]);
    table.drop.push_back(0);
    table.seen.push_back(0);
    for (std::uint32_t s = 1; s < DropTable::kStrides; ++s) {
      const double before = s % 16 == 1 ? cpu_us() : 0;
      tracker.step(frame(f + s));
      if (s % 16 == 1) tracking += cpu_us() - before, ++steps;
      table.drop.push_back(static_cast<float>(distance(tracker.boxes(), truth[f + s]) - detector[f + s]));
      table.seen.push_back(static_cast<float>(distance(tracker.boxes(), detected[f + s])));
    }
  }
  table.step_us = tracking / static_cast<double>(steps);
  return table;
}

}  // namespace leat::scene
