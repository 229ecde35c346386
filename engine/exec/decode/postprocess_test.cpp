#include "engine/exec/decode/postprocess.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <thread>

#include "engine/exec/decode/boxes/suppression.h"

namespace leat::exec {
namespace {

constexpr std::uint32_t kBoxesSeed = 77;

leat_tensor tensor(std::vector<float>& data, std::initializer_list<std::int64_t> shape) {
  leat_tensor t{};
  t.data = data.data();
  t.bytes = data.size() * 4;
  std::copy(shape.begin(), shape.end(), t.shape);
  t.rank = static_cast<std::uint32_t>(shape.size());
  t.dtype = LEAT_F32;
  return t;
}

double iou_by_definition(const Candidate& a, const Candidate& b) {
  const auto shared = [](double p, double q, double c, double d) {  // of two lengths around p and c
    return std::min(p + q / 2, c + d / 2) - std::max(p - q / 2, c - d / 2);
  };
  const double w = shared(a.cx, a.w, b.cx, b.w), h = shared(a.cy, a.h, b.cy, b.h);
  if (w <= 0 || h <= 0) return 0;
  return w * h / (static_cast<double>(a.w) * a.h + static_cast<double>(b.w) * b.h - w * h);
}

TEST(Suppress, AgreesWithTheNaiveDefinition) {
  std::printf("seed %u\n", kBoxesSeed);
  std::mt19937 random(kBoxesSeed);
  std::uniform_real_distribution<float> unit(0, 1);
  for (int round = 0; round < 50; ++round) {
    std::vector<Candidate> candidates(random() % 60);
    for (Candidate& c : candidates) {
      c.cx = unit(random) * 100, c.cy = unit(random) * 100;
      c.w = 10 + unit(random) * 30, c.h = 10 + unit(random) * 30;
      c.score = unit(random), c.class_id = static_cast<std::int32_t>(random() % 3);
    }
    // By definition: strike the best out of what is left, and with it everything of its class that it overlaps too
    // much.
    std::vector<Candidate> left = candidates, wanted;
    while (!left.empty()) {
      const auto best = std::max_element(left.begin(), left.end(),
                                         [](const Candidate& a, const Candidate& b) { return a.score < b.score; });
      const Candidate chosen = *best;
      wanted.push_back(chosen);
      std::erase_if(left, [&](const Candidate& c) {
        return (c.score == chosen.score && c.cx == chosen.cx) ||
               (c.class_id == chosen.class_id && iou_by_definition(c, chosen) > 0.4);
      });
    }
    const std::uint32_t kept = suppress(candidates, 0.4f, 1000);
    ASSERT_EQ(kept, wanted.size()) << "round " << round;
    for (std::uint32_t i = 0; i < kept; ++i) {
      EXPECT_EQ(candidates[i].score, wanted[i].score);
      EXPECT_EQ(candidates[i].class_id, wanted[i].class_id);
    }
  }
}

TEST(Suppress, KeepsNoMoreThanAsked) {
  std::vector<Candidate> candidates;
  for (int i = 0; i < 10; ++i)
    candidates.push_back({.cx = static_cast<float>(i) * 20, .w = 10, .h = 10, .score = static_cast<float>(i)});
  EXPECT_EQ(suppress(candidates, 0.5f, 3), 3u);
  EXPECT_EQ(candidates[0].score, 9);
  EXPECT_EQ(suppress({}, 0.5f, 3), 0u);
}

class Boxes : public testing::Test {
 protected:
  // One batch row of maps: 2 classes, 3 x 4 cells; everything far below the threshold.
  Boxes() : data_(2 * 6 * 12, -20) {}
  float& at(std::uint32_t row, std::uint32_t channel, std::uint32_t cell) {
    return data_[(row * 6 + channel) * 12 + cell];
  }
  void put(std::uint32_t row, std::uint32_t cell, std::uint32_t class_id, float logit,
           std::initializer_list<float> sides) {
    at(row, class_id, cell) = logit;
    std::uint32_t channel = 2;
    for (const float s : sides) at(row, channel++, cell) = s;
  }
  std::uint32_t run(std::uint32_t row, Placement placement = {}) {
    const leat_tensor output = tensor(data_, {2, 6, 3, 4});
    auto post = Postprocessor::open(*parse_postprocess("boxes stride=10 score=0.5 iou=0.5"), {&output, 1}, {});
    EXPECT_TRUE(post.ok());
    return post->run({&output, 1}, row, placement, frame_, -1, &result_).found;
  }
  std::vector<float> data_;
  FrameView frame_{.width = 1000, .height = 500};
  leat_result result_{};
};

TEST_F(Boxes, MapsAreDecodedFromTheCellsCentre) {
  put(1, 6, 1, 2, {1, 0.5f, 0.5f, 1});  // row 1, column 2: centre (25, 15)
  EXPECT_EQ(run(0), 0u);
  ASSERT_EQ(run(1), 1u);
  const leat_detection& d = result_.detections[0];
  EXPECT_FLOAT_EQ(d.x0, 15);
  EXPECT_FLOAT_EQ(d.y0, 10);
  EXPECT_FLOAT_EQ(d.x1, 30);
  EXPECT_FLOAT_EQ(d.y1, 25);
  EXPECT_NEAR(d.score, 1 / (1 + std::exp(-2.0)), 1e-6);
  EXPECT_EQ(d.class_id, 1);
  EXPECT_EQ(result_.kind, LEAT_RESULT_DETECTIONS);
  EXPECT_EQ(result_.frame_width, 1000u);
}

TEST_F(Boxes, BoxesAreInFramePixelsAndClipped) {
  put(0, 0, 0, 2, {0.5f, 0.5f, 0.5f, 0.5f});  // input 0..10
  ASSERT_EQ(run(0, {.offset_x = -20, .offset_y = 490, .scale_x = 4, .scale_y = 4}), 1u);
  EXPECT_FLOAT_EQ(result_.detections[0].x0, 0);
  EXPECT_FLOAT_EQ(result_.detections[0].x1, 20);
  EXPECT_FLOAT_EQ(result_.detections[0].y0, 490);
  EXPECT_FLOAT_EQ(result_.detections[0].y1, 500);
}

TEST_F(Boxes, ScoreBelowTheLeastAndValuesThatAreNoNumbersAreNotKept) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();
  put(0, 0, 0, -0.01f, {1, 1, 1, 1});
  put(0, 1, 0, kNan, {1, 1, 1, 1});
  put(0, 2, 0, 5, {kNan, 1, 1, 1});
  put(0, 3, 0, 5, {-1, -1, 0.5f, 0.5f});  // turned inside out
  EXPECT_EQ(run(0), 0u);
  put(0, 4, 0, kInf, {1, 1, 1, 1});
  put(0, 5, 0, 5, {kInf, kInf, kInf, kInf});
  EXPECT_EQ(run(0), 0u);
  put(0, 6, 0, 5, {9, 9, 99, 99});
  ASSERT_EQ(run(0), 1u);
  EXPECT_FLOAT_EQ(result_.detections[0].x1, 1000);  // clipped to the frame
}

TEST(BoxMaps, WhatExceedsTheResultsRoomIsCounted) {
  constexpr std::uint32_t kCells = LEAT_MAX_DETECTIONS + 20;
  std::vector<float> data(std::size_t{5} * kCells, 0.4f);  // one row of cells: logits, then four sides each
  for (std::uint32_t cell = 0; cell < kCells; ++cell) data[cell] = 1 + static_cast<float>(cell) / 10;
  const leat_tensor output = tensor(data, {1, 5, 1, kCells});
  auto post = Postprocessor::open(*parse_postprocess("boxes stride=10 score=0.5"), {&output, 1}, {});
  ASSERT_TRUE(post.ok()) << post.error();
  leat_result result{};
  const FrameView frame{.width = 10 * kCells, .height = 10};
  EXPECT_EQ(post->run({&output, 1}, 0, {}, frame, -1, &result).found, std::uint32_t{LEAT_MAX_DETECTIONS});
  EXPECT_EQ(result.detection_count, std::uint32_t{LEAT_MAX_DETECTIONS});
  EXPECT_EQ(result.detections_left_out, 20u);
  EXPECT_GT(result.detections[0].x0, 10 * (kCells - 1));  // the best come first
}

TEST(BoxRows, YoloRowsAreCentreAndSize) {
  std::vector<float> data(1 * 6 * 3, 0);  // 2 classes, 3 candidates
  const float first[] = {50, 40, 20, 10, 0.2f, 0.9f};
  for (std::size_t c = 0; c < 6; ++c) data[c * 3 + 1] = first[c];
  const leat_tensor output = tensor(data, {1, 6, 3});
  auto post = Postprocessor::open(*parse_postprocess("boxes layout=rows score=0.5"), {&output, 1}, {});
  ASSERT_TRUE(post.ok()) << post.error();
  leat_result result{};
  ASSERT_EQ(post->run({&output, 1}, 0, {}, {.width = 100, .height = 100}, -1, &result).found, 1u);
  EXPECT_FLOAT_EQ(result.detections[0].x0, 40);
  EXPECT_FLOAT_EQ(result.detections[0].y1, 45);
  EXPECT_FLOAT_EQ(result.detections[0].score, 0.9f);
  EXPECT_EQ(result.detections[0].class_id, 1);
}

TEST(Classes, TopKIsSortedSoftmax) {
  std::vector<float> data = {9, 9, 9, 9, 1, 3, 3, 2};  // row 1: 1 3 3 2
  const leat_tensor output = tensor(data, {2, 4});
  auto post = Postprocessor::open(*parse_postprocess("classes top=3"), {&output, 1}, {});
  leat_result result{};
  post->run({&output, 1}, 1, {}, {.width = 8, .height = 8}, -1, &result);
  ASSERT_EQ(result.class_count, 3u);
  EXPECT_EQ(result.kind, LEAT_RESULT_CLASSES);
  const double sum = std::exp(1.0) + 2 * std::exp(3.0) + std::exp(2.0);
  EXPECT_EQ(result.classes[0].class_id, 1);
  EXPECT_EQ(result.classes[1].class_id, 2);
  EXPECT_EQ(result.classes[2].class_id, 3);
  EXPECT_NEAR(result.classes[0].score, std::exp(3.0) / sum, 1e-6);
  EXPECT_NEAR(result.classes[2].score, std::exp(2.0) / sum, 1e-6);
}

// Scores that the model has made itself are not made again.
TEST(Classes, ScoresAsTheModelMakesThem) {
  const std::vector<std::pair<std::string, std::vector<float>>> cases = {
      {"classes act=none", {0.1F, 0.7F, 0.2F}},
      {"classes act=softmax", {std::exp(0.1F), std::exp(0.7F), std::exp(0.2F)}},
      {"classes act=sigmoid", {1 / (1 + std::exp(-0.1F)), 1 / (1 + std::exp(-0.7F)), 1 / (1 + std::exp(-0.2F))}}};
  for (const auto& [line, wanted] : cases) {
    std::vector<float> data = {0.1F, 0.7F, 0.2F};
    const leat_tensor output = tensor(data, {1, 3});
    auto post = Postprocessor::open(*parse_postprocess(line), {&output, 1}, {});
    leat_result result{};
    post->run({&output, 1}, 0, {}, {.width = 8, .height = 8}, -1, &result);
    ASSERT_EQ(result.class_count, 3u) << line;
    const float all = line == "classes act=softmax" ? wanted[0] + wanted[1] + wanted[2] : 1;
    for (std::size_t k = 0; k < 3; ++k) {
      const std::size_t c = k == 0 ? 1 : k == 1 ? 2 : 0;
      EXPECT_EQ(result.classes[k].class_id, static_cast<std::int32_t>(c)) << line;
      EXPECT_NEAR(result.classes[k].score, wanted[c] / all, 1e-6F) << line;
    }
    leat_result labelled{};
    labelled.detection_count = 1;
    post->run({&output, 1}, 0, {}, {.width = 8, .height = 8}, 0, &labelled);
    EXPECT_NEAR(labelled.detections[0].labels[0].score, wanted[1] / all, 1e-6F) << line;
  }
  EXPECT_FALSE(parse_postprocess("classes act=tanh").ok());
}

TEST(Classes, BehindAFanOutEveryHeadLabelsTheDetectionAndNothingElse) {
  std::vector<float> shape = {0, 5, 0}, colour = {0, 0, 0, 4};
  const leat_tensor outputs[] = {tensor(shape, {1, 3}), tensor(colour, {1, 4})};
  auto post =
      Postprocessor::open(*parse_postprocess("classes"), outputs, std::vector<std::string>{"a\tb\tc", "w\tx\ty\tz"});
  ASSERT_TRUE(post.ok()) << post.error();
  leat_result result{};
  result.kind = LEAT_RESULT_DETECTIONS;
  result.detection_count = 3;
  leat_result before = result;
  post->run(outputs, 0, {}, {.width = 8, .height = 8}, 1, &result);
  const leat_detection& d = result.detections[1];
  ASSERT_EQ(d.label_count, 2u);
  EXPECT_EQ(d.labels[0].head, 0u);
  EXPECT_EQ(d.labels[0].class_id, 1);
  EXPECT_EQ(d.labels[1].head, 1u);
  EXPECT_EQ(d.labels[1].class_id, 3);
  EXPECT_GT(d.labels[0].score, 0.9f);
  before.detections[1] = d;
  EXPECT_EQ(std::memcmp(&before, &result, sizeof result), 0);
}

TEST(Classes, ABatchRunAgainLabelsADetectionOnce) {
  std::vector<float> shape = {0, 5, 0}, colour = {0, 0, 0, 4}, other = {7, 0};
  const leat_tensor outputs[] = {tensor(shape, {1, 3}), tensor(colour, {1, 4})};
  const leat_tensor others[] = {tensor(other, {1, 2})};
  auto first = Postprocessor::open(*parse_postprocess("classes"), outputs, {}, 0);
  auto second = Postprocessor::open(*parse_postprocess("classes"), others, {}, 2);
  ASSERT_TRUE(first.ok() && second.ok());
  leat_result result{};
  first->run(outputs, 0, {}, {}, 0, &result);
  second->run(others, 0, {}, {}, 0, &result);
  shape = {9, 0, 0};
  first->run(outputs, 0, {}, {}, 0, &result);
  second->run(others, 0, {}, {}, 0, &result);
  const leat_detection& d = result.detections[0];
  ASSERT_EQ(d.label_count, 3u);
  EXPECT_EQ(d.labels[0].head, 0u);
  EXPECT_EQ(d.labels[0].class_id, 0) << "the later run's";
  EXPECT_EQ(d.labels[1].head, 1u);
  EXPECT_EQ(d.labels[2].head, 2u);
}

TEST(Classes, HeadsAreNumberedFromTheModulesFirst) {
  std::vector<float> shape = {0, 5, 0}, colour = {0, 0, 0, 4};
  const leat_tensor outputs[] = {tensor(shape, {1, 3}), tensor(colour, {1, 4})};
  for (const std::uint32_t first : {0u, 3u, 253u}) {
    auto post = Postprocessor::open(*parse_postprocess("classes"), outputs, {}, first);
    ASSERT_TRUE(post.ok()) << post.error();
    leat_result result{};
    post->run(outputs, 0, {}, {}, 0, &result);
    const leat_detection& d = result.detections[0];
    ASSERT_EQ(d.label_count, 2u);
    EXPECT_EQ(d.labels[0].head, first);
    EXPECT_EQ(d.labels[0].class_id, 1);
    EXPECT_EQ(d.labels[1].head, first + 1);
    EXPECT_EQ(d.labels[1].class_id, 3);
  }
}

TEST(Classes, ModulesThatLabelADetectionAtOnceLoseNothing) {
  std::vector<float> logits = {1, 0};
  const leat_tensor output = tensor(logits, {1, 2});
  for (int round = 0; round < 50; ++round) {
    leat_result result{};
    std::atomic<std::uint32_t> ready{0};
    std::vector<std::thread> workers;
    for (std::uint32_t head = 0; head < LEAT_MAX_LABELS; ++head)
      workers.emplace_back([&, head] {
        auto post = Postprocessor::open(*parse_postprocess("classes"), {&output, 1}, {}, head);
        ++ready;
        while (ready < LEAT_MAX_LABELS) std::this_thread::yield();
        post->run({&output, 1}, 0, {}, {}, 0, &result);
      });
    for (auto& w : workers) w.join();
    const leat_detection& d = result.detections[0];
    ASSERT_EQ(d.label_count, LEAT_MAX_LABELS);
    std::uint32_t heads = 0;
    for (const leat_label& l : d.labels) heads |= 1u << l.head;
    ASSERT_EQ(heads, 15u);
  }
}

TEST(Classes, LogitsThatAreNoNumbersGiveNoLabel) {
  std::vector<float> data = {0, std::numeric_limits<float>::quiet_NaN(), 1};
  const leat_tensor output = tensor(data, {1, 3});
  auto post = Postprocessor::open(*parse_postprocess("classes"), {&output, 1}, {});
  leat_result result{};
  result.detection_count = 1;
  post->run({&output, 1}, 0, {}, {.width = 8, .height = 8}, 0, &result);
  EXPECT_EQ(result.detections[0].label_count, 0u);
}

TEST(Postprocess, FaultsAreNamed) {
  const auto line_error = [](std::string_view line) {
    const auto parsed = parse_postprocess(line);
    return parsed.ok() ? std::string() : parsed.error();
  };
  EXPECT_NE(line_error("boxes stride=abc").find("stride=abc"), std::string::npos);
  EXPECT_NE(line_error("boxes layout=wedges").find("maps, rows, yolo8"), std::string::npos);
  EXPECT_NE(line_error("classes top=2.5").find("whole number"), std::string::npos);
  EXPECT_NE(line_error("classes stride=8").find("'stride=8'"), std::string::npos);
  std::vector<float> data(12);
  const leat_tensor flat = tensor(data, {1, 12});
  const auto open_error = [&](std::string_view line, std::vector<std::string> labels = {}) {
    const auto opened = Postprocessor::open(*parse_postprocess(line), {&flat, 1}, labels);
    return opened.ok() ? std::string() : opened.error();
  };
  EXPECT_NE(open_error("boxes").find("[12]"), std::string::npos);
  EXPECT_NE(open_error("checksum").find("emulated"), std::string::npos);
  EXPECT_NE(open_error("classes", {"a\tb"}).find("2 names"), std::string::npos);
  EXPECT_NE(open_error("classes", {"a", "b"}).find("one list of names an output"), std::string::npos);
}

// Words of the last version do what they did, and one line says which they are now.
TEST(Postprocess, OutdatedWordsAreUnderstoodAndNamed) {
  const auto old = parse_postprocess("boxes stride=10 overlap=0.4");
  ASSERT_TRUE(old.ok()) << old.error();
  EXPECT_NE(old->outdated.find("write 'iou=0.4'"), std::string::npos) << old->outdated;
  const auto rows = parse_postprocess("tensors most=7");
  ASSERT_TRUE(rows.ok()) << rows.error();
  EXPECT_NE(rows->outdated.find("write 'max=7'"), std::string::npos) << rows->outdated;
  EXPECT_TRUE(parse_postprocess("boxes iou=0.4")->outdated.empty());
  EXPECT_FALSE(parse_postprocess("boxes iou=0.4 overlap=0.4").ok()) << "both are twice the same";
  EXPECT_FALSE(parse_postprocess("classes overlap=0.4").ok());

  // Two boxes that share 0.6 of their union: the old word hides one as the new one does.
  std::vector<float> data(6 * 3, 0);
  for (std::size_t i = 0; i < 2; ++i)
    data[i] = 50 + static_cast<float>(i) * 10, data[3 + i] = 40, data[6 + i] = 40, data[9 + i] = 20,
    data[12 + i] = 0.9f;
  const leat_tensor output = tensor(data, {1, 6, 3});
  const auto kept = [&](std::string_view line) {
    leat_result result{};
    auto post = Postprocessor::open(*parse_postprocess(line), {&output, 1}, {});
    return post->run({&output, 1}, 0, {}, {.width = 100, .height = 100}, -1, &result).found;
  };
  EXPECT_EQ(kept("boxes layout=rows score=0.5 iou=0.5"), 1u);
  EXPECT_EQ(kept("boxes layout=rows score=0.5 overlap=0.5"), 1u);
  EXPECT_EQ(kept("boxes layout=rows score=0.5 overlap=0.7"), 2u);
}

}  // namespace
}  // namespace leat::exec
