// Identities (leat/track_ids.h) over scenes whose objects are known, found as a detector finds them: boxes a little
// off, some missed, the hidden ones with low scores, some that are not there.
#include "leat/track_ids.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <set>

#include "shm/src/tracks/assignment.h"
#include "tools/scene/random.h"
#include "tools/scene/scene.h"
#include "tools/scene/tracking/identity.h"
#include "tools/scene/tracking/motion_film.h"

namespace leat::scene {
namespace {

struct Destroy {
  void operator()(leat_track_ids* tracks) const { leat_track_ids_destroy(tracks); }
};
using Tracks = std::unique_ptr<leat_track_ids, Destroy>;

Tracks make(const std::function<void(leat_track_ids_options&)>& change = {}) {
  leat_track_ids_options options;
  leat_track_ids_options_init(&options);
  if (change) change(options);
  leat_track_ids* raw = nullptr;
  EXPECT_EQ(leat_track_ids_create(&options, &raw), LEAT_ERROR_ok) << leat_last_error();
  return Tracks(raw);
}

constexpr std::int64_t kSecond = 1'000'000'000;

leat_detection at(float x, float y, float score = 0.9f, std::int32_t class_id = 0, float side = 50) {
  leat_detection d{};
  d.x0 = x, d.y0 = y, d.x1 = x + side, d.y1 = y + side;
  d.score = score, d.class_id = class_id;
  return d;
}

std::vector<std::uint64_t> update(const Tracks& tracks, std::int64_t capture_ns, std::vector<leat_detection> found) {
  std::vector<std::uint64_t> ids(found.size(), 99);
  EXPECT_EQ(leat_track_ids_update(tracks.get(), capture_ns, found.data(), static_cast<std::uint32_t>(found.size()),
                                  ids.data()),
            LEAT_ERROR_ok);
  return ids;
}
using Ids = std::vector<std::uint64_t>;

TEST(TrackIds, AreKeptWhileThingsMoveAndAnswersAreLeftOut) {
  const Tracks tracks = make();
  EXPECT_EQ(update(tracks, 0, {at(0, 0), at(300, 0)}), (Ids{1, 2}));
  std::int64_t t = 0;
  for (int i = 1; i < 20; ++i) {
    t += kSecond / 10 * (i % 3 == 0 ? 3 : 1);  // two of three answers are dropped at times
    const float x = 100 * static_cast<float>(t) / kSecond;
    EXPECT_EQ(update(tracks, t, {at(300 - x / 2, 0), at(x, 0)}), (Ids{2, 1})) << i;
    if (x > 160) break;  // before they meet
  }
}

TEST(TrackIds, ANewThingHasOneFromTheSecondTimeOn) {
  const Tracks tracks = make();
  EXPECT_EQ(update(tracks, 0, {at(0, 0)}), (Ids{1}));
  EXPECT_EQ(update(tracks, 1, {at(0, 0), at(200, 0)}), (Ids{1, 0}));
  EXPECT_EQ(update(tracks, 2, {at(0, 0), at(200, 0), at(400, 0, 0.65f)}), (Ids{1, 2, 0})) << "no new one below .7";
  EXPECT_EQ(update(tracks, 3, {at(400, 0, 0.65f)}), (Ids{0}));
}

TEST(TrackIds, WhatIsDoubtfulContinuesAndBeginsNone) {
  const Tracks tracks = make();
  EXPECT_EQ(update(tracks, 0, {at(0, 0)}), (Ids{1}));
  EXPECT_EQ(update(tracks, 1, {at(2, 0, 0.3f), at(200, 0, 0.3f)}), (Ids{1, 0}));
  EXPECT_EQ(update(tracks, 2, {at(4, 0, 0.05f)}), (Ids{0})) << "below min_score";
  EXPECT_EQ(update(tracks, 3, {at(4, 0)}), (Ids{1})) << "lost, and found again";
  EXPECT_EQ(update(tracks, 4 + kSecond, {}), Ids{});
  EXPECT_EQ(update(tracks, 5 + 3 * kSecond, {at(4, 0)}), (Ids{0})) << "forgotten";
  EXPECT_EQ(update(tracks, 6 + 3 * kSecond, {at(4, 0)}), (Ids{2})) << "never given twice";
}

TEST(TrackIds, AnOlderAnswerIsToldAndChangesNothing) {
  const Tracks tracks = make();
  for (int i = 0; i <= 10; ++i) (void)update(tracks, i * kSecond / 10, {at(10.0f * static_cast<float>(i), 0)});
  EXPECT_EQ(update(tracks, 8 * kSecond / 10, {at(80, 0), at(500, 0)}), (Ids{1, 0}));
  EXPECT_EQ(update(tracks, 11 * kSecond / 10, {at(110, 0), at(500, 0)}), (Ids{1, 0})) << "500 is new here";
}

TEST(TrackIds, AGapIsNotWaitedThrough) {
  const Tracks tracks = make();
  (void)update(tracks, 0, {at(0, 0)});
  EXPECT_EQ(update(tracks, 2 * kSecond, {at(0, 0)}), (Ids{1})) << "a picture every two seconds";
  EXPECT_EQ(update(tracks, 3600 * kSecond, {at(0, 0)}), (Ids{0})) << "whatever stands there an hour later";
}

TEST(TrackIds, ClassesAreApartUnlessTheyMayChange) {
  for (const bool any : {false, true}) {
    const Tracks tracks = make([&](leat_track_ids_options& o) { o.any_class = any; });
    (void)update(tracks, 0, {at(0, 0, 0.9f, 3)});
    EXPECT_EQ(update(tracks, 1, {at(0, 0, 0.9f, 4)}), (Ids{any ? 1u : 0u}));
  }
  const std::int32_t wanted[] = {7, 2};
  const Tracks tracks = make([&](leat_track_ids_options& o) { o.classes = wanted, o.class_count = 2; });
  EXPECT_EQ(update(tracks, 0, {at(0, 0, 0.9f, 3), at(100, 0, 0.9f, 2), at(200, 0, 0.9f, 7)}), (Ids{0, 1, 2}));
}

TEST(TrackIds, NothingThatAModelAnswersHarmsThem) {
  const Tracks tracks = make();
  Random random(7);
  const float odd[] = {
      0,      -1, 1e30f, -1e30f, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
      1e-30f, 50};
  const auto any = [&] { return odd[random.below(std::size(odd))]; };
  for (int i = 0; i < 3000; ++i) {
    std::vector<leat_detection> found(random.below(8));
    for (auto& d : found) d.x0 = any(), d.y0 = any(), d.x1 = any(), d.y1 = any(), d.score = any();
    for (std::uint32_t k = random.below(3); k > 0; --k)
      found.push_back(at(5, 5, std::numeric_limits<float>::infinity()));
    found.push_back(at(5, 5));
    const std::int64_t t = i % 100 == 99 ? static_cast<std::int64_t>(random.next()) >> 1 : i * kSecond / 30;
    const Ids ids = update(tracks, t, found);
    std::set<std::uint64_t> given(ids.begin(), ids.end());
    EXPECT_EQ(
        given.size() + static_cast<std::size_t>(std::count(ids.begin(), ids.end(), 0u)) - (given.contains(0) ? 1 : 0),
        ids.size())
        << "one identity was given twice in one answer";
  }
}

TEST(TrackIds, WrongOptionsAreOneLine) {
  leat_track_ids* raw = nullptr;
  leat_track_ids_options options;
  leat_track_ids_options_init(&options);
  options.high_score = 0.05f;
  EXPECT_EQ(leat_track_ids_create(&options, &raw), LEAT_ERROR_invalid_argument);
  EXPECT_NE(std::string(leat_last_error()).find("min_score <= high_score"), std::string::npos);
}

// ---- scenes ----

// What a detector of some quality finds.
std::vector<leat_detection> find(std::span<const Object> truth, std::uint32_t width, std::uint32_t height,
                                 Random& random) {
  std::vector<leat_detection> found;
  for (const Object& o : truth) {
    if (random.unit() < (o.ignore ? 0.7 : 0.04)) continue;
    const auto off = [&](float side) { return static_cast<float>(random.between(-0.04, 0.04)) * side; };
    const float w = o.x1 - o.x0, h = o.y1 - o.y0;
    leat_detection d{};
    d.x0 = o.x0 + off(w), d.x1 = o.x1 + off(w), d.y0 = o.y0 + off(h), d.y1 = o.y1 + off(h);
    d.score = std::min(0.97f, 0.25f + 0.7f * o.visible + static_cast<float>(random.between(-0.1, 0.1)));
    found.push_back(d);
  }
  if (random.unit() < 0.05)
    found.push_back(at(static_cast<float>(random.between(0, width - 60)),
                       static_cast<float>(random.between(0, height - 60)),
                       static_cast<float>(random.between(0.2, 0.8))));
  return found;
}

template <class Film>
double idf1_of(Film& film, double source_fps, double fps, int seconds) {
  const Tracks tracks = make();
  IdentityMeter meter;
  Random random(3);
  const std::uint32_t width = film.options().width, height = film.options().height;
  std::vector<std::uint8_t> rgb(std::size_t{3} * width * height);
  for (int i = 0; i < seconds * fps; ++i) {
    const auto frame = static_cast<std::uint64_t>(i * source_fps / fps);
    const auto& truth = film.render(frame, rgb.data(), std::size_t{3} * width);
    const auto found = find(truth, width, height, random);
    const auto ids = update(tracks, static_cast<std::int64_t>(static_cast<double>(frame) / source_fps * 1e9), found);
    meter.add(truth, found, ids);
  }
  return meter.idf1();
}

TEST(TrackIds, OnTheStreet) {
  for (const double fps : {5.0, 10.0, 30.0}) {
    double sum = 0;
    constexpr int kCameras = 4;
    for (std::uint32_t camera = 0; camera < kCameras; ++camera) {
      Scene scene({.camera = camera, .width = 320, .height = 180});
      sum += idf1_of(scene, 30, fps, 10);
    }
    std::printf("street at %2.0f frames/s: IDF1 %.3f\n", fps, sum / kCameras);
    EXPECT_GE(sum / kCameras, fps < 10 ? 0.80 : 0.90) << fps;
  }
}

TEST(TrackIds, InVideosThatAreHard) {
  for (const char* kind : {"walk", "crowd", "fast", "zoom"}) {
    double last = 0;
    for (const double fps : {5.0, 10.0, 30.0}) {
      MotionFilm film(*motion_kind(kind), {.width = 320, .height = 180, .fps = 60});
      last = idf1_of(film, 60, fps, 10);
      std::printf("%s at %2.0f frames/s: IDF1 %.3f\n", kind, fps, last);
    }
    EXPECT_GE(last, 0.75) << kind;
  }
}

// ---- the assignment ----

float best_by_trying(const std::vector<float>& costs, std::size_t rows, std::size_t columns, float limit,
                     std::size_t row = 0, unsigned taken = 0) {
  if (row == rows) return 0;
  float best = best_by_trying(costs, rows, columns, limit, row + 1, taken);
  for (std::size_t c = 0; c < columns; ++c)
    if ((taken >> c & 1) == 0 && costs[row * columns + c] < limit)
      best = std::max(best, limit - costs[row * columns + c] +
                                best_by_trying(costs, rows, columns, limit, row + 1, taken | 1u << c));
  return best;
}

TEST(Assignment, IsAsGoodAsTryingAll) {
  Random random(11);
  tracks::Assignment assignment;
  for (int i = 0; i < 2000; ++i) {
    const std::size_t rows = random.below(6), columns = random.below(6);
    std::vector<float> costs(rows * columns);
    for (float& c : costs) c = random.below(4) == 0 ? 1.0f : static_cast<float>(random.unit());
    const float limit = static_cast<float>(random.between(0.2, 1.0));
    const auto with = assignment.solve(costs, rows, columns, limit);
    float sum = 0;
    std::set<std::int32_t> taken;
    for (std::size_t r = 0; r < rows; ++r) {
      if (with[r] == tracks::Assignment::kNone) continue;
      EXPECT_TRUE(taken.insert(with[r]).second);
      const float c = costs[r * columns + static_cast<std::size_t>(with[r])];
      EXPECT_LT(c, limit);
      sum += limit - c;
    }
    EXPECT_NEAR(sum, best_by_trying(costs, rows, columns, limit), 1e-4);
  }
}

}  // namespace
}  // namespace leat::scene
