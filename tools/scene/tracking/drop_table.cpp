#include "tools/scene/tracking/drop_table.h"

#include <ctime>
#include <utility>

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

void DropTable::expect(const CertaintyRule& rule) {
  expects.clear();
  for (const CertaintyTerms& each : terms) expects.push_back(static_cast<float>(rule.expected(each)));
}

DropTable record_drops(const Footage& footage, std::uint32_t every, AnyTracker tracker) {
  const auto frames = static_cast<std::uint32_t>(footage.detected.size()) - DropTable::kStrides;
  std::vector<double> detector;
  for (std::size_t f = 0; f < footage.detected.size(); ++f)
    detector.push_back(distance(footage.detected[f], footage.truth[f]));
  DropTable table{.video = footage.video, .fps = footage.fps, .frames = frames, .every = every};
  double tracking = 0;
  std::uint64_t steps = 0;
  for (std::uint32_t f = 0; f < frames; f += every) {
    tracker.start(footage.frame(f), footage.detected[f]);
    table.drop.push_back(0);
    table.seen.push_back(0);
    table.terms.push_back(tracker.terms());
    for (std::uint32_t s = 1; s < DropTable::kStrides; ++s) {
      const double before = s % 16 == 1 ? cpu_us() : 0;
      tracker.step(footage.frame(f + s));
      if (s % 16 == 1) tracking += cpu_us() - before, ++steps;
      table.drop.push_back(static_cast<float>(distance(tracker.boxes(), footage.truth[f + s]) - detector[f + s]));
      table.seen.push_back(static_cast<float>(distance(tracker.boxes(), footage.detected[f + s])));
      table.terms.push_back(tracker.terms());
    }
  }
  table.expect(tracker.rule());
  table.step_us = tracking / static_cast<double>(steps);
  return table;
}

Footage generated_footage(const MotionKind& kind, std::uint64_t seed, std::uint32_t frames) {
  const MotionOptions options{.seed = seed};
  MotionScene scene(kind, options);
  const std::size_t bytes = std::size_t{options.width} * options.height;
  Footage footage{.video = std::string(kind.name), .width = options.width, .height = options.height};
  footage.pixels.resize(frames * bytes);
  footage.truth.resize(frames), footage.detected.resize(frames);
  for (std::uint32_t f = 0; f < frames; ++f) {
    for (const MovingObject& o : scene.render(f, footage.pixels.data() + f * bytes, options.width)) {
      if (o.visible < 0.5f) continue;
      Random r(mix(seed * 1'000'003 + f, static_cast<std::uint64_t>(o.id)));
      footage.truth[f].push_back({o.x0, o.y0, o.x1, o.y1, o.id});
      TrackedBox d = footage.truth[f].back();
      for (float* side : {&d.x0, &d.y0, &d.x1, &d.y1}) *side += static_cast<float>(kFlicker * normal(r));
      footage.detected[f].push_back(d);
    }
  }
  return footage;
}

DropTable record_drops(const MotionKind& kind, std::uint64_t seed, std::uint32_t frames, std::uint32_t every,
                       AnyTracker tracker) {
  return record_drops(generated_footage(kind, seed, frames + DropTable::kStrides), every, std::move(tracker));
}

}  // namespace leat::scene
