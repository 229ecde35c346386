// Models that are known by their structure (recognise/known_models.json), in their exporters' exact layout.
#include <algorithm>
#include <array>
#include <cmath>

#include "engine/exec/test/test_family_builder.h"

namespace leat::exec::families {
namespace structure {
namespace {

// Corners and score of what is found.
struct Known {
  double x0, y0, x1, y1, score;
};
constexpr Known kFound[] = {{20, 20, 40, 32, .9}, {43.25, 42.25, 53.75, 58.25, .68}};

std::vector<double> answer(int points) {
  std::vector<double> out;
  for (const Known& k : kFound) out.insert(out.end(), {k.x0, k.y0, k.x1, k.y1, k.score, 0});
  for (const Known& k : kFound)
    for (int p = 0; p < points; ++p) out.insert(out.end(), {k.x0 + p, k.y1 - p, k.score});
  return out;
}
double logit(double p) { return std::log(p / (1 - p)); }

// generate_priors() of Linzaer's vision/utils/box_utils.py: parts of the picture, clamped.
std::vector<std::array<double, 4>> ultraface_priors(double width, double height) {
  const std::vector<std::vector<double>> sizes = {{10, 16, 24}, {32, 48}, {64, 96}, {128, 192, 256}};
  std::vector<std::array<double, 4>> out;
  double stride = 8;
  for (const auto& level : sizes) {
    const double across = std::ceil(width / stride), down = std::ceil(height / stride);
    for (double j = 0; j < down; ++j)
      for (double i = 0; i < across; ++i)
        for (const double size : level)
          out.push_back(
              {(i + .5) / across, (j + .5) / down, std::min(size / width, 1.0), std::min(size / height, 1.0)});
    stride *= 2;
  }
  return out;
}

FamilyModel ultraface(int file) {                // 0: decoded, 1: not, 2: decoded, with masks
  constexpr double kWidth = 320, kHeight = 240;  // 240 is no multiple of 32: its maps are rounded up
  const auto priors = ultraface_priors(kWidth, kHeight);
  const std::size_t n = priors.size(), classes = file == 2 ? 3 : 2;
  std::vector<float> boxes(n * 4), scores(n * classes, -9);
  for (std::size_t i = 0; i < n; ++i) scores[i * classes] = 9;
  const std::size_t used[] = {4000, 4100};  // of the second and third grid
  for (std::size_t o = 0; o < 2; ++o) {
    const Known& k = kFound[o];
    const auto& p = priors[used[o]];
    float* const to = boxes.data() + 4 * used[o];
    if (file == 1) {
      to[0] = f(((k.x0 + k.x1) / 2 / kWidth - p[0]) / p[2] / .1),
      to[1] = f(((k.y0 + k.y1) / 2 / kHeight - p[1]) / p[3] / .1);
      to[2] = f(std::log((k.x1 - k.x0) / kWidth / p[2]) / .2), to[3] = f(std::log((k.y1 - k.y0) / kHeight / p[3]) / .2);
    } else {
      to[0] = f(k.x0 / kWidth), to[1] = f(k.y0 / kHeight), to[2] = f(k.x1 / kWidth), to[3] = f(k.y1 / kHeight);
    }
    float* const score = scores.data() + classes * used[o];
    score[0] = 0, score[classes - 1] = f(logit(k.score));
  }
  Builder b("input", G::f32, {1, 3, 240, 320});
  b.g.constant("classification_headers.0.weight", {1}, {0});
  const auto rows = static_cast<std::int64_t>(n);
  b.put("scores", {1, rows, static_cast<std::int64_t>(classes)}, scores, "Softmax");
  b.put("boxes", {1, rows, 4}, boxes, "Concat");
  if (file != 1) b.mark("Exp");
  std::vector<double> all = answer(0);
  if (file == 2) all[5] = all[11] = 1;
  for (const std::size_t s : {4U, 10U})  // the score is a softmax of 0, its logit and -9 where there are three
    if (file == 2) all[s] = std::exp(logit(all[s])) / (1 + std::exp(logit(all[s])) + std::exp(-9));
  all.resize(6);  // above .7
  static constexpr const char* kFiles[] = {"UltraFace (320)", "UltraFace, not decoded", "UltraFace, masks"};
  return {.name = kFiles[file],
          .graph = std::move(b.g),
          .preprocess = "stretch rgb mean=127/255 std=128/255",
          .postprocess = file == 1 ? "boxes layout=priors set=ultraface score=0.7 iou=0.3"
                                   : "boxes layout=query order=xyxy first=1 score=0.7 iou=0.3",
          .labels = file == 2 ? "" : "face",
          .width = 320,
          .height = 240,
          .answer = all};
}

// MediaPipe's detectors: anchors are centres alone; boxes and points in pixels from them.
FamilyModel mediapipe(const std::string& name, const Dims& input, double side,
                      const std::vector<std::pair<int, int>>& grids, int points, bool split) {
  std::vector<std::array<double, 2>> centres;
  std::vector<std::int64_t> rows;
  for (const auto& [cells, each] : grids) {
    for (int y = 0; y < cells; ++y)
      for (int x = 0; x < cells; ++x)
        centres.insert(centres.end(), static_cast<std::size_t>(each),
                       {(x + .5) / cells * side, (y + .5) / cells * side});
    rows.push_back(static_cast<std::int64_t>(cells) * cells * each);
  }
  const std::size_t n = centres.size(), width = 4 + 2 * static_cast<std::size_t>(points);
  std::vector<float> boxes(n * width), scores(n, -8);
  const std::size_t used[] = {201, n - 50};
  for (std::size_t o = 0; o < 2; ++o) {
    const Known& k = kFound[o];
    const double cx = centres[used[o]][0], cy = centres[used[o]][1];
    float* const to = boxes.data() + width * used[o];
    to[0] = f((k.x0 + k.x1) / 2 - cx), to[1] = f((k.y0 + k.y1) / 2 - cy), to[2] = f(k.x1 - k.x0),
    to[3] = f(k.y1 - k.y0);
    for (int m = 0; m < points; ++m) to[4 + 2 * m] = f(k.x0 + m - cx), to[5 + 2 * m] = f(k.y1 - m - cy);
    scores[used[o]] = f(logit(k.score));
  }
  Builder b("input:0", G::f32, input);
  const auto all = static_cast<std::int64_t>(n), wide = static_cast<std::int64_t>(width);
  if (split) {
    const auto first = static_cast<std::ptrdiff_t>(rows[0]), boxes_end = first * static_cast<std::ptrdiff_t>(width);
    b.put("Identity:0", {1, rows[0], 1}, {scores.begin(), scores.begin() + first});
    b.put("Identity_1:0", {1, rows[1], 1}, {scores.begin() + first, scores.end()});
    b.put("Identity_2:0", {1, rows[0], wide}, {boxes.begin(), boxes.begin() + boxes_end});
    b.put("Identity_3:0", {1, rows[1], wide}, {boxes.begin() + boxes_end, boxes.end()});
  } else {
    b.put("Identity", {1, all, wide}, boxes);
    b.put("Identity_1", {1, all, 1}, scores);
  }
  const auto edge = static_cast<std::uint32_t>(side);
  return {.name = name, .graph = std::move(b.g), .width = edge, .height = edge, .answer = answer(points)};
}

void add_faces_of_structure(std::vector<FamilyModel>& out) {
  for (const int file : {0, 1, 2}) out.push_back(ultraface(file));
  const auto take = [&](FamilyModel model, const char* pre, const char* set, const char* label) {
    model.preprocess = pre, model.labels = label;
    model.postprocess = std::string("boxes layout=priors set=") + set + " score=0.5 iou=0.3";
    out.push_back(std::move(model));
  };
  take(mediapipe("BlazeFace, two grids", {1, 128, 128, 3}, 128, {{16, 2}, {8, 6}}, 6, true),
       "letterbox rgb norm=half pad=0", "blazeface", "face");
  take(mediapipe("MediaPipe palm", {1, 192, 192, 3}, 192, {{24, 2}, {12, 6}}, 7, false),
       "letterbox rgb norm=unit pad=0", "palm", "palm");
  take(mediapipe("MediaPipe person", {1, 3, 224, 224}, 224, {{28, 2}, {14, 2}, {7, 6}}, 4, false),
       "letterbox rgb norm=half pad=0.5", "person", "person");
  // SCRFD of five strides: distances from the corner of the only anchor of a cell, in strides.
  Builder b("input.1", G::f32, square());
  for (const std::int64_t width : {1, 4, 10})
    for (std::int64_t stride = 8; stride <= 128; stride *= 2) {
      const std::int64_t n = (64 + stride - 1) / stride;
      std::vector<float> v(static_cast<std::size_t>(n * n * width));
      for (std::size_t o = 0; o < 2; ++o) {
        if (stride != (o == 0 ? 16 : 64)) continue;
        const Known& k = kFound[o];
        const double s = double(stride), x = o == 0 ? 1 : 0, y = o == 0 ? 1 : 0;
        float* const to = v.data() + width * static_cast<std::int64_t>(y * double(n) + x);
        if (width == 1) to[0] = f(k.score);
        if (width == 4)
          to[0] = f(x - k.x0 / s), to[1] = f(y - k.y0 / s), to[2] = f(k.x1 / s - x), to[3] = f(k.y1 / s - y);
        for (int p = 0; width == 10 && p < 5; ++p)
          to[2 * p] = f((k.x0 + p) / s - x), to[2 * p + 1] = f((k.y1 - p) / s - y);
      }
      b.put(std::to_string(1000 * width + stride), {n * n, width}, v);
    }
  out.push_back({.name = "SCRFD, five strides",
                 .graph = std::move(b.g),
                 .preprocess = "letterbox at=topleft rgb mean=127.5/255 std=128/255 pad=0",
                 .postprocess = "boxes layout=levels score=0.5 iou=0.4",
                 .labels = "face",
                 .answer = answer(5)});
}

void add_points_of_structure(std::vector<FamilyModel>& out) {
  {
    Builder b("input", G::f32, {1, 1, 64, 64});
    std::vector<float> v(136);
    std::vector<double> expected;
    for (std::size_t k = 0; k < 68; ++k) {
      v[2 * k] = f(.01 * double(k) + .1), v[2 * k + 1] = f(.9 - .005 * double(k));
      expected.insert(expected.end(), {64 * (.01 * double(k) + .1), 64 * (.9 - .005 * double(k)), 1});
    }
    const auto row = [&](float value) { return b.g.constant("", {136}, std::vector<float>(136, value)); };
    const std::string sum = b.g.op("Add", {b.g.constant("", {1, 136}, v), b.zero});
    b.g.output(b.g.op("BatchNormalization", {sum, row(1), row(0), row(0), row(1 - 1e-5F)}, "output"), G::f32, {1, 136});
    out.push_back({.name = "68 points (FaceONNX)",
                   .graph = std::move(b.g),
                   .preprocess = "stretch gray std=256/255",
                   .postprocess = "points xy unit=one",
                   .answer = expected});
  }
  for (const bool depth : {false, true}) {  // InsightFace's: -1 to 1 across the crop; of 1103 points the last 68
    Builder b("data", G::f32, {"None", 3, 192, 192});
    const std::size_t each = depth ? 3 : 2, count = depth ? 1103 : 106, taken = depth ? 68 : 106;
    std::vector<float> v(count * each, .25F);
    std::vector<double> expected;
    for (std::size_t k = 0; k < taken; ++k) {
      float* const at = v.data() + (count - taken + k) * each;
      at[0] = f(double(k) / 60 - .9), at[1] = f(.8 - double(k) / 80);
      expected.insert(expected.end(), {(double(k) / 60 - .9 + 1) * 96, (.8 - double(k) / 80 + 1) * 96, 1});
    }
    b.put("fc1", {"None", static_cast<std::int64_t>(v.size())}, v);
    out.push_back({.name = depth ? "68 points with depth (InsightFace)" : "106 points (InsightFace)",
                   .graph = std::move(b.g),
                   .preprocess = "stretch crop=0.25 aspect rgb mean=127.5/255 std=128/255",
                   .postprocess = depth ? "points xyz unit=half last=68" : "points xy unit=half",
                   .width = 192,
                   .height = 192,
                   .answer = expected});
  }
  {
    Builder b("input", G::f32, {1, 256, 256, 3});
    std::vector<float> v(1434);
    std::vector<double> expected;
    for (std::size_t k = 0; k < 478; ++k) {
      v[3 * k] = f(.5 * double(k)), v[3 * k + 1] = f(255 - .25 * double(k)), v[3 * k + 2] = -5;
      expected.insert(expected.end(), {.5 * double(k), 255 - .25 * double(k), 1});
    }
    b.put("Identity", {1, 1, 1, 1434}, v);
    b.put("Identity_1", {1, 1, 1, 1}, {3});
    out.push_back({.name = "Face mesh of 478 points",
                   .graph = std::move(b.g),
                   .preprocess = "stretch crop=0.25 rgb norm=unit",
                   .postprocess = "points xyz",
                   .width = 256,
                   .height = 256,
                   .answer = expected});
  }
  {
    // The picture is halved in the map; the first line is long enough, the second too short, the third a little worse.
    Builder b("input_image_with_alpha:0", G::f32, {1, 64, 64, 4});
    std::vector<float> offsets(32 * 32 * 4), scores(32 * 32);
    const auto line = [&](std::size_t x, std::size_t y, const std::array<float, 4>& d, float score) {
      std::copy(d.begin(), d.end(), offsets.begin() + static_cast<std::ptrdiff_t>(4 * (y * 32 + x)));
      scores[y * 32 + x] = score;
    };
    line(15, 10, {-12, -2, 12, 2.5F}, .8F), line(5, 20, {-3, 0, 4, 1}, .9F), line(20, 16, {1, -14, -2, 13.5F}, .3F);
    b.put("offsets", {1, 32, 32, 4}, offsets);
    b.put("scores", {1, 32, 32, 1}, scores);
    out.push_back({.name = "M-LSD",
                   .graph = std::move(b.g),
                   .preprocess = "stretch rgba mean=0 std=1/255",
                   .postprocess = "segments score=0.1 length=20",
                   .answer = {6, 16, .8, 54, 25, .8, 42, 4, .3, 36, 59, .3}});
  }
}

// Of two models with the ports image and depth one is a vision transformer of patches of 14, which is Depth Anything.
void add_depth(std::vector<FamilyModel>& out) {
  for (const std::int64_t patch : {14, 3}) {
    Builder b("image", G::f32, {1, 3, 70, 70});
    b.stem("image", patch);
    std::vector<float> depth(70 * 70);
    for (std::size_t i = 0; i < depth.size(); ++i) depth[i] = f(2 + std::sin(.02 * double(i)));
    b.put("depth", {1, 70, 70}, depth);
    out.push_back({.name = patch == 14 ? "Depth Anything (image, depth)" : "another depth",
                   .graph = std::move(b.g),
                   .preprocess = "stretch rgb norm=imagenet",
                   .postprocess = "map value",
                   .asked = patch != 14,
                   .width = 70,
                   .height = 70,
                   .answer = {depth.begin(), depth.end()}});
  }
}

// Three answers about one picture: of 7, 2 and 9 classes.
void add_heads(std::vector<FamilyModel>& out) {
  Builder b("input", G::f32, {1, 3, 224, 224});
  std::vector<double> expected;
  for (const std::size_t count : {7U, 2U, 9U}) {
    std::vector<float> v(count);
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) v[i] = f(double(i * 5 % count) / 2), sum += std::exp(double(v[i]));
    const auto best = static_cast<std::size_t>(std::max_element(v.begin(), v.end()) - v.begin());
    expected.insert(expected.end(), {double(best), std::exp(double(v[best])) / sum});
    b.put("o" + std::to_string(count), {1, static_cast<std::int64_t>(count)}, v);
  }
  out.push_back({.name = "FairFace",
                 .graph = std::move(b.g),
                 .preprocess = "stretch crop=0.25 rgb norm=imagenet",
                 .postprocess = "heads",
                 .asked = true,
                 .width = 224,
                 .height = 224,
                 .answer = expected});
}

void add_stages_and_turns(std::vector<FamilyModel>& out) {
  Builder ssr("input", G::f32, {1, 3, 64, 64});
  std::vector<double> expected;
  float next = .1F;
  for (const auto& [name, count] : {std::pair{"prob_stage_%d", 3}, {"stage%d_delta_k", 1}, {"index_offset_stage%d", 3}})
    for (int stage = 1; stage <= 3; ++stage) {
      std::vector<float> v;
      for (int i = 0; i < count; ++i) v.push_back(next), expected.push_back(double(next)), next += .1F;
      std::string port = name;
      port.replace(port.find("%d"), 2, std::to_string(stage));
      ssr.put(port, {1, count}, v);
    }
  ssr.g.constant("funsion_block_stream1_stage_1_before_PB.0.weight", {1}, {0});
  out.push_back({.name = "SSR-Net",
                 .graph = std::move(ssr.g),
                 .preprocess = "stretch crop=0.2 rgb norm=imagenet",
                 .postprocess = "tensors",
                 .answer = expected});
  Builder pose("input", G::f32, {1, 3, 224, 224});
  expected.clear();
  for (const std::size_t best : {31U, 40U, 33U}) {
    std::vector<float> v(66, 0);
    v[best] = 5;
    expected.insert(expected.end(), {double(best), std::exp(5.0) / (std::exp(5.0) + 65)});
    pose.put("o" + std::to_string(best), {1, 66}, v);
  }
  for (const char* const weight : {"fc_y.bias", "fc_p.bias", "fc_r.bias"}) pose.g.constant(weight, {1}, {0});
  out.push_back({.name = "Hopenet, 66 bins",
                 .graph = std::move(pose.g),
                 .preprocess = "stretch crop=0.25 rgb norm=imagenet",
                 .postprocess = "heads",
                 .asked = true,
                 .width = 224,
                 .height = 224,
                 .answer = expected});
}

void add_bins(std::vector<FamilyModel>& out) {
  // Four sides' bins, 2 sin(.9 i + .4 k), and the boxes they make, computed apart from this code:
  // sides of 2.167147, 2.194521, 2.522096 and 3.026101 strides.
  std::vector<float> bins(32);
  for (std::size_t k = 0; k < 4; ++k)
    for (std::size_t i = 0; i < 8; ++i) bins[8 * k + i] = f(2 * std::sin(.9 * double(i) + .4 * double(k)));
  const std::size_t cells[] = {64, 16, 4, 1};
  {
    Builder b("data", G::f32, square());
    std::vector<float> v(85 * 35);
    float* const at = v.data() + 35 * (3 * 8 + 4);  // stride 8, cell (4, 3)
    at[1] = .75F;
    std::copy(bins.begin(), bins.end(), at + 3);
    b.put("output", {1, 85, 35}, v);
    out.push_back(
        {.name = "NanoDet-plus",
         .graph = std::move(b.g),
         .preprocess = "stretch bgr mean=103.53/255,116.28/255,123.675/255 std=57.375/255,57.12/255,58.395/255",
         .postprocess = "boxes layout=dfl score=0.35 iou=0.6",
         .asked = true,
         .answer = {14.662822, 6.443829, 52.176772, 48.208811, .75, 1}});
  }
  {
    Builder b("image", G::f32, square());
    int name = 0;
    for (const bool sides : {false, true})
      for (std::size_t l = 0; l < 4; ++l) {
        std::vector<float> v(cells[l] * (sides ? 32 : 3));
        if (l == 0 && !sides) v[3 * 35 + 2] = .625F;  // stride 8, cell (3, 4)
        if (l == 0 && sides) std::copy(bins.begin(), bins.end(), v.begin() + 32 * 35);
        b.put("t" + std::to_string(100 + name++), {1, static_cast<std::int64_t>(cells[l]), sides ? 32 : 3}, v);
      }
    out.push_back({.name = "PicoDet, heads alone",
                   .graph = std::move(b.g),
                   .preprocess = "stretch rgb norm=imagenet",
                   .postprocess = "boxes layout=dfl centre=0.5 score=0.4 iou=0.5",
                   .asked = true,
                   .answer = {10.662822, 18.443829, 48.176772, 60.208811, .625, 2}});
  }
}

// Models that normalise their pictures themselves: (x - mean) / std, or * scale.
void add_normalised(std::vector<FamilyModel>& out) {
  const auto builder = [](const std::string& input, const Dims& dims, const std::vector<float>& minus, float scale) {
    return Builder(input, G::f32, dims, [&](G& g) {
      const std::string centred =
          g.op("Sub", {input, g.constant("", {static_cast<std::int64_t>(minus.size()), 1, 1}, minus)});
      return g.op("Mul", {centred, g.constant("", {1}, {scale})});
    });
  };
  std::vector<float> vector(512);
  std::vector<double> unit;
  double sum = 0;
  for (std::size_t i = 0; i < vector.size(); ++i) {
    vector[i] = f(std::sin(.3 * double(i)));
    sum += double(vector[i]) * double(vector[i]);
  }
  for (const float v : vector) unit.push_back(double(v) / std::sqrt(sum));
  {
    Builder b = builder("data", {1, 3, 112, 112}, {127.5F}, 1 / 128.F);
    b.put("fc1", {1, 512}, vector);
    out.push_back({.name = "ArcFace (MXNet), normalised inside",
                   .graph = std::move(b.g),
                   .preprocess = "stretch rgb norm=raw",
                   .postprocess = "embedding unit",
                   .width = 112,
                   .height = 112,
                   .answer = unit});
  }
  {
    Builder b = builder("x", {1, 3, 256, 128}, {123.675F, 116.28F, 103.53F}, 1 / 58.F);
    b.put("feat", {1, 512}, vector);
    out.push_back({.name = "FastReID",
                   .graph = std::move(b.g),
                   .preprocess = "stretch rgb norm=raw",
                   .postprocess = "embedding unit",
                   .width = 128,
                   .height = 256,
                   .answer = unit});
  }
  {
    Builder b = builder("0", square(), {.485F, .456F, .406F}, 1 / .226F);
    std::vector<float> depth(64 * 64);
    for (std::size_t i = 0; i < depth.size(); ++i) depth[i] = f(std::sin(.02 * double(i)));
    b.put("797", {1, 64, 64}, depth);
    out.push_back({.name = "MiDaS, normalised inside",
                   .graph = std::move(b.g),
                   .preprocess = "stretch rgb norm=unit",
                   .postprocess = "map value",
                   .answer = {depth.begin(), depth.end()}});
  }
  {
    // A classifier of another range than its family's, in blue, green, red.
    Builder b = builder("input", square(), {103.53F, 116.28F, 123.675F}, 1 / 57.F);
    std::vector<float> v(1000);
    v[3] = 9;
    b.put("output", {1, 1000}, v);
    const double rest = 1 / (999 + std::exp(9.0));
    out.push_back({.name = "a classifier, normalised inside",
                   .graph = std::move(b.g),
                   .preprocess = "cover=0.875 resize=antialias bgr norm=raw",
                   .postprocess = "classes",
                   .asked = true,
                   .answer = {3, std::exp(9.0) * rest, 0, rest, 1, rest, 2, rest, 4, rest}});
  }
}

}  // namespace
}  // namespace structure

void add_known(std::vector<FamilyModel>& out) {
  structure::add_faces_of_structure(out);
  structure::add_points_of_structure(out);
  structure::add_stages_and_turns(out);
  structure::add_bins(out);
  structure::add_depth(out);
  structure::add_heads(out);
  structure::add_normalised(out);
}

}  // namespace leat::exec::families
