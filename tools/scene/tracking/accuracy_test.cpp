#include "tools/scene/tracking/accuracy.h"

#include <gtest/gtest.h>

namespace leat::scene {
namespace {

Object object(float x, std::int32_t shape, std::int32_t colour, bool ignore = false) {
  return {x, 0, x + 10, 10, shape, colour, 1, ignore};
}
Found found(float x, float score, std::int32_t shape, std::int32_t colour) {
  return {x, 0, x + 10, 10, score, shape, colour};
}

TEST(Accuracy, AllRightIsOne) {
  AccuracyMeter meter;
  const Object truth[] = {object(0, 0, 1), object(50, 1, 2)};
  const Found answers[] = {found(0, 0.9f, 0, 1), found(51, 0.8f, 1, 2)};
  meter.add(truth, answers);
  const Accuracy a = meter.accuracy();
  EXPECT_DOUBLE_EQ(a.map50, 1);
  EXPECT_DOUBLE_EQ(a.detection_ap50, 1);
  EXPECT_DOUBLE_EQ(a.classification, 1);
  EXPECT_EQ(a.objects, 2u);
  EXPECT_EQ(a.matched, 2u);
}

// Worked by hand: right, wrong, right over 3 objects: precision 1, 1/2, 2/3, so AP = (1 + 2/3) / 3.
TEST(Accuracy, AveragePrecisionOfAWorkedExample) {
  AccuracyMeter meter;
  const Object truth[] = {object(0, 0, 0), object(50, 0, 0), object(100, 0, 0)};
  const Found answers[] = {found(0, 0.9f, 0, 0), found(200, 0.8f, 0, 0), found(50, 0.7f, 0, 0)};
  meter.add(truth, answers);
  EXPECT_NEAR(meter.accuracy().detection_ap50, (1 + 2.0 / 3) / 3, 1e-12);
  EXPECT_NEAR(meter.accuracy().map50, (1 + 2.0 / 3) / 3, 1e-12);
}

TEST(Accuracy, ASecondDetectionOfOneObjectIsWrong) {
  AccuracyMeter meter;
  const Object truth[] = {object(0, 0, 0), object(50, 0, 0)};
  const Found answers[] = {found(0, 0.9f, 0, 0), found(1, 0.8f, 0, 0), found(50, 0.7f, 0, 0)};
  meter.add(truth, answers);
  EXPECT_NEAR(meter.accuracy().detection_ap50, (1 + 2.0 / 3) / 2, 1e-12);
}

TEST(Accuracy, LessThanHalfOverlapIsWrong) {
  AccuracyMeter meter;
  const Object truth[] = {object(0, 0, 0)};
  const Found answers[] = {found(4, 0.9f, 0, 0)};  // 6 / 14
  meter.add(truth, answers);
  EXPECT_EQ(meter.accuracy().matched, 0u);
  EXPECT_DOUBLE_EQ(meter.accuracy().detection_ap50, 0);
}

TEST(Accuracy, WhatDoesNotCountIsNeitherRightNorWrong) {
  AccuracyMeter meter;
  const Object truth[] = {object(0, 0, 0), object(50, 1, 0, true)};
  const Found answers[] = {found(50, 0.99f, 0, 0), found(0, 0.5f, 0, 0)};
  meter.add(truth, answers);
  EXPECT_DOUBLE_EQ(meter.accuracy().detection_ap50, 1);
  EXPECT_DOUBLE_EQ(meter.accuracy().map50, 1);
  EXPECT_EQ(meter.accuracy().objects, 1u);
}

TEST(Accuracy, AWrongLabelCostsClassificationAndMap) {
  AccuracyMeter meter;
  const Object truth[] = {object(0, 0, 0), object(50, 1, 0), object(100, 2, 0)};
  const Found answers[] = {found(0, 0.9f, 0, 0), found(50, 0.8f, 0, 0), found(100, 0.7f, 2, 3)};
  meter.add(truth, answers);
  EXPECT_DOUBLE_EQ(meter.accuracy().detection_ap50, 1);
  EXPECT_NEAR(meter.accuracy().classification, 1.0 / 3, 1e-12);  // wrong shape, wrong colour
  EXPECT_NEAR(meter.accuracy().map50, 2.0 / 3, 1e-12);  // shape 0: right then wrong; shape 1: missed; shape 2: right
}

TEST(Accuracy, ReadsLabelsOfAResult) {
  leat_result result{};
  result.detection_count = 1;
  result.detections[0].x1 = result.detections[0].y1 = 10;
  result.detections[0].score = 0.5f;
  result.detections[0].label_count = 2;
  result.detections[0].labels[0] = {kColourHead, 4, 1};
  result.detections[0].labels[1] = {kShapeHead, 3, 1};
  AccuracyMeter meter;
  const Object truth[] = {object(0, 3, 4)};
  meter.add(truth, result);
  EXPECT_DOUBLE_EQ(meter.accuracy().classification, 1);
}

TEST(Accuracy, NothingAddedIsZeroNotNan) {
  EXPECT_DOUBLE_EQ(AccuracyMeter().accuracy().map50, 0);
  EXPECT_DOUBLE_EQ(AccuracyMeter().accuracy().classification, 0);
}

}  // namespace
}  // namespace leat::scene
