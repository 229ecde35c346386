// NaN and infinity in every output of every decoder, value by value. The law: no answer shows such a number as a class,
// a score or a place, and an answer that NaN or infinity has changed says so.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <limits>

#include "engine/exec/test/family_outputs.h"

namespace leat::exec {
namespace {

using namespace test;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

struct Case {
  std::string name, words;
  std::vector<Output> outputs;
  bool raw = false;  // the values are the answer, as they are
};

Output ramp(std::string name, std::vector<std::int64_t> shape) {
  std::size_t count = 1;
  for (const auto n : shape) count *= static_cast<std::size_t>(n);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>((i * 7) % 23) / 23;
  return {std::move(name), std::move(shape), values};
}

std::vector<Output> with_masks() {
  std::vector<Output> out = yolo8();
  std::vector<float>& v = out[0].values;
  v.resize(9 * kCells);
  v[7 * kCells + 40] = 1, v[8 * kCells + 40] = -0.5F;
  out[0].shape = {1, 9, kCells};
  out.push_back(ramp("output1", {1, 2, 16, 16}));
  return out;
}
std::vector<Output> posed() {
  std::vector<float> v(11 * kCells);
  const float column[] = {30, 26, 20, 12, 0.9F, 25, 24, 0.7F, 35, 28, 0.6F};
  for (std::size_t r = 0; r < 11; ++r) v[r * kCells + 7] = column[r];
  return {{"output0", {1, 11, kCells}, v}};
}
std::vector<Output> turned() {
  std::vector<float> v(7 * kCells);
  const float column[] = {30, 26, 20, 8, 0, 0.9F, 0.5F};
  for (std::size_t r = 0; r < 7; ++r) v[r * kCells + 3] = column[r];
  return {{"output0", {1, 7, kCells}, v}};
}
std::vector<Output> maps() {
  std::vector<float> v(6 * 64, -9);
  v[64 + 27] = 2;
  for (std::size_t side = 2; side < 6; ++side) v[side * 64 + 27] = 1;
  return {{"maps", {1, 6, 8, 8}, v}};
}
std::vector<Output> dfl() {
  std::vector<float> v(85 * 34);
  v[20 * 34 + 1] = 0.9F;
  for (std::size_t k = 0; k < 4; ++k) v[20 * 34 + 2 + 8 * k + 1] = 9;
  return {{"o", {1, 85, 34}, v}};
}
std::vector<Output> ultraface() {
  const std::int64_t rows = 3 * 64 + 2 * 16 + 2 * 4 + 3;
  Output boxes{"boxes", {1, rows, 4}, std::vector<float>(static_cast<std::size_t>(4 * rows))};
  Output scores{"scores", {1, rows, 2}, std::vector<float>(static_cast<std::size_t>(2 * rows))};
  scores.values[2 * 60 + 1] = 0.9F;
  return {scores, boxes};
}
std::vector<Output> regions() {
  Output map{"map", {1, 1, 32, 32}, std::vector<float>(32 * 32)};
  for (std::size_t y = 10; y < 18; ++y)
    for (std::size_t x = 6; x < 26; ++x) map.values[32 * y + x] = 0.9F;
  return {map};
}
std::vector<Output> segments() {
  Output places{"d", {1, 32, 32, 4}, std::vector<float>(32 * 32 * 4)}, scores{"s", {1, 32, 32, 1}};
  scores.values.resize(32 * 32);
  scores.values[500] = 0.8F;
  places.values[4 * 500] = -12, places.values[4 * 500 + 2] = 12;
  return {places, scores};
}

// The characters of `text`, in a file.
class Keys {
 public:
  Keys() {
    [[maybe_unused]] const int fd = ::mkstemp(path_);
    std::ofstream(path_) << "a\nb\nc\n";
  }
  ~Keys() { (void)::remove(path_); }
  [[nodiscard]] std::string words(const std::string& what) const { return "text " + what + " keys=" + path_; }

 private:
  char path_[32] = "/tmp/leat_keys_XXXXXX";
};

std::vector<Case> cases(const Keys& keys) {
  std::vector<Case> out;
  for (const Family& f : families()) out.push_back({f.name, f.words, f.outputs});
  out.push_back({"maps", "boxes layout=maps", maps()});
  out.push_back({"rows", "boxes layout=rows", yolo8()});
  out.push_back({"dfl", "boxes layout=dfl", dfl()});
  out.push_back({"priors", "boxes layout=priors set=ultraface", ultraface()});
  out.push_back({"masks", "boxes layout=yolo8 extra=mask", with_masks()});
  out.push_back({"points of boxes", "boxes layout=yolo8 extra=points points=2", posed()});
  out.push_back({"turned", "boxes layout=yolo8 extra=angle", turned()});
  out.push_back({"classes", "classes", {ramp("o", {1, 9})}});
  out.push_back({"sigmoid", "classes act=sigmoid", {ramp("o", {1, 9})}});
  out.push_back({"scores", "classes act=none", {ramp("o", {1, 9})}});
  out.push_back({"heads", "heads", {ramp("a", {1, 3}), ramp("b", {1, 5})}});
  out.push_back({"heatmap", "points heatmap", {ramp("o", {1, 2, 8, 8})}});
  out.push_back({"simcc", "points simcc", {ramp("x", {1, 2, 16}), ramp("y", {1, 2, 16})}});
  out.push_back({"yxs", "points yxs", {ramp("o", {1, 1, 2, 3})}});
  out.push_back({"xy", "points xy unit=one", {ramp("o", {1, 2, 2})}});
  out.push_back({"argmax", "map argmax", {ramp("o", {1, 3, 8, 8})}});
  out.push_back({"classes already", "map argmax", {ramp("o", {1, 8, 8})}});
  out.push_back({"matte", "map matte", {ramp("o", {1, 1, 8, 8})}});
  out.push_back({"sigmoid matte", "map matte act=sigmoid", {ramp("o", {1, 1, 8, 8})}});
  out.push_back({"depth", "map value", {ramp("o", {1, 8, 8})}, true});
  out.push_back({"lines", "lines", regions()});
  out.push_back({"lines of logits", "lines act=sigmoid threshold=0.6", regions()});
  out.push_back({"segments", "segments", segments()});
  out.push_back({"ctc", keys.words("ctc"), {ramp("o", {1, 6, 4})}});
  out.push_back({"slots", keys.words("slots"), {ramp("o", {1, 6, 3})}});
  out.push_back({"embedding", "embedding unit", {ramp("o", {1, 8})}});
  out.push_back({"tensors", "tensors", {ramp("a", {1, 4}), ramp("b", {1, 2, 3})}, true});
  return out;
}

// The first number that is none, of a head and of the parts' own types; empty: there is none.
std::string shown(const Outcome& o) {
  const leat_result& head = o.head();
  for (std::uint32_t i = 0; i < head.detection_count; ++i) {
    const leat_detection& d = head.detections[i];
    if (!std::isfinite(d.x0 + d.y0 + d.x1 + d.y1) || !(d.score >= 0 && d.score <= 1)) return "a detection";
  }
  for (std::uint32_t i = 0; i < head.class_count; ++i)
    if (!std::isfinite(head.classes[i].score) || head.classes[i].class_id < 0) return "a class";
  std::uint32_t index = 0;
  for (leat_part_view part; leat_next_part(&head, o.slot.size(), &index, &part) != 0;) {
    std::size_t floats = 0, step = 1;  // leading floats of each element, and its size
    if (part.kind == LEAT_PART_oriented) floats = 6, step = sizeof(leat_oriented_box) / 4;
    if (part.kind == LEAT_PART_keypoints) floats = step = 3;
    if (part.kind == LEAT_PART_text) floats = 9, step = sizeof(leat_text) / 4;
    if (part.kind == LEAT_PART_embedding) floats = 1;
    if (part.kind == LEAT_PART_map && part.dtype == LEAT_F32) floats = 1;
    if (part.kind == LEAT_PART_tensor) floats = 1;
    if (floats == 0) continue;
    const std::size_t words = part.kind == LEAT_PART_text ? step : part.bytes / 4;
    for (std::size_t i = 0; i + floats <= words; i += step)
      for (std::size_t f = 0; f < floats; ++f) {
        float v;
        std::memcpy(&v, static_cast<const std::byte*>(part.data) + 4 * (i + f), 4);
        if (!std::isfinite(v)) return "part " + std::to_string(index - 1);
      }
  }
  return {};
}

TEST(NotFinite, NoAnswerShowsItAndWhatItChangesSaysSo) {
  const Keys keys;
  for (const Case& c : cases(keys)) {
    SCOPED_TRACE(c.name);
    const Outcome well = answer(c.words, c.outputs);
    ASSERT_TRUE(well.ok) << well.error;
    EXPECT_EQ(well.answered.numbers, Numbers::all);
    EXPECT_EQ(shown(well), "");
    std::size_t some = 0, none = 0;
    for (std::size_t o = 0; o < c.outputs.size(); ++o)
      for (std::size_t i = 0; i < c.outputs[o].values.size(); ++i)
        for (const float value : {kNan, kInfinity, -kInfinity}) {
          std::vector<Output> damaged = c.outputs;
          damaged[o].values[i] = value;
          const Outcome now = answer(c.words, damaged);
          const std::string where = damaged[o].name + "[" + std::to_string(i) + "] = " + std::to_string(value);
          if (!c.raw || now.answered.numbers == Numbers::none) {
            ASSERT_EQ(shown(now), "") << where;
          }
          // -inf is a score below every other: it may change an answer without a word.
          if (now.answered.numbers == Numbers::all && value > -kInfinity) {
            ASSERT_EQ(now.slot, well.slot) << where;
          }
          if (now.answered.numbers == Numbers::some) ++some;
          if (now.answered.numbers == Numbers::none) ++none;
        }
    EXPECT_GT(some + none, 0U) << "no value of it decides anything";
  }
}

TEST(NotFinite, AnOutputOfNothingElseIsNoAnswer) {
  const Keys keys;
  for (const Case& c : cases(keys))
    for (const float value : {kNan, kInfinity}) {
      SCOPED_TRACE(c.name + " of " + std::to_string(value));
      std::vector<Output> damaged = c.outputs;
      for (Output& o : damaged) o.values.assign(o.values.size(), value);
      const Outcome now = answer(c.words, damaged);
      ASSERT_TRUE(now.ok) << now.error;
      EXPECT_EQ(now.answered.numbers, c.name == "tensors" ? Numbers::some : Numbers::none);
      EXPECT_EQ(now.answered.found, 0U);
    }
}

struct Row {
  const char* name;
  std::string words;
  std::vector<Output> outputs;
  std::size_t output, at;
  float value;
  Numbers numbers;
  std::uint32_t found;
};

// What each kind makes of one such number.
TEST(NotFinite, KindByKind) {
  const Keys keys;
  std::vector<Output> two = end2end();
  const float other[] = {2, 2, 12, 12, 0.8F, 2};
  std::copy(std::begin(other), std::end(other), two[0].values.begin() + 6);
  const Row rows[] = {
      {"a class", "boxes columns=x0,y0,x1,y1,s,c", two, 0, 5, kNan, Numbers::some, 1},
      {"the only box's class", "boxes columns=x0,y0,x1,y1,s,c", end2end(), 0, 5, kNan, Numbers::none, 0},
      {"a score", "boxes columns=x0,y0,x1,y1,s,c", two, 0, 4, kInfinity, Numbers::some, 1},
      {"a side", "boxes columns=x0,y0,x1,y1,s,c", two, 0, 2, kInfinity, Numbers::some, 1},
      {"the place of no box", "boxes columns=x0,y0,x1,y1,s,c", two, 0, 12, kNan, Numbers::all, 2},
      {"a filler's score", "boxes columns=x0,y0,x1,y1,s,c", two, 0, 16, -kInfinity, Numbers::all, 2},
      {"labels", "boxes layout=split", torchvision(), 2, 0, kNan, Numbers::none, 0},
      {"how many", "boxes layout=split unit=one order=yxyx first=1", ssd(), 0, 0, kNan, Numbers::none, 0},
      {"a side at the border", "boxes layout=maps", maps(), 0, 4 * 64 + 27, kInfinity, Numbers::none, 0},
      {"objectness", "boxes layout=levels score=0.6", yunet(), 4, 5, kInfinity, Numbers::none, 0},
      {"a face's point", "boxes layout=levels score=0.6", yunet(), 10, 50, kNan, Numbers::some, 1},
      {"a mask's coefficient", "boxes layout=yolo8 extra=mask", with_masks(), 0, 7 * kCells + 40, kNan, Numbers::some,
       1},
      {"a logit", "classes", {ramp("o", {1, 9})}, 0, 3, kNan, Numbers::none, 0},
      {"a class that cannot be", "classes", {ramp("o", {1, 9})}, 0, 3, -kInfinity, Numbers::all, 0},
      {"one head", "heads", {ramp("a", {1, 3}), ramp("b", {1, 5})}, 0, 1, kNan, Numbers::some, 0},
      {"the first of two outputs", "classes", {ramp("a", {1, 3}), ramp("b", {1, 5})}, 0, 1, kNan, Numbers::none, 0},
      {"one point", "points yxs", {ramp("o", {1, 1, 2, 3})}, 0, 0, kNan, Numbers::some, 0},
      {"one cell", "map argmax", {ramp("o", {1, 3, 8, 8})}, 0, 70, kNan, Numbers::some, 0},
      {"a step", keys.words("ctc"), {ramp("o", {1, 6, 4})}, 0, 9, kNan, Numbers::none, 0},
      {"a value", "embedding", {ramp("o", {1, 8})}, 0, 2, -kInfinity, Numbers::none, 0},
      {"a tensor's", "tensors", {ramp("a", {1, 4})}, 0, 2, -kInfinity, Numbers::some, 0},
  };
  for (const Row& r : rows) {
    SCOPED_TRACE(r.name);
    std::vector<Output> damaged = r.outputs;
    damaged[r.output].values[r.at] = r.value;
    const Outcome now = answer(r.words, damaged);
    ASSERT_TRUE(now.ok) << now.error;
    EXPECT_EQ(now.answered.numbers, r.numbers);
    EXPECT_EQ(now.answered.found, r.found) << now.text();
  }
}

// A cell that nothing is known of is no cell of class 0.
TEST(NotFinite, ACellOfNoClassIs255) {
  Output map = ramp("o", {1, 3, 8, 8});
  map.values[64 + 8 * 3 + 4] = kNan;
  const Outcome now = answer("map argmax", {map});
  const leat_part_view cells = now.part(LEAT_PART_map);
  const auto* const classes = static_cast<const std::uint8_t*>(cells.data);
  EXPECT_EQ(std::count(classes, classes + cells.bytes, 255), 1);
}

}  // namespace
}  // namespace leat::exec
