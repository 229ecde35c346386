// Detectors that tell their boxes relative to prior boxes. Each numbers its priors as its authors' code does, in the
// authors' own units, and encodes with their training's equations: the inverse of what is tested.
#include <array>
#include <cmath>

#include "engine/exec/test/test_family_builder.h"

namespace leat::exec::families {
namespace {

// Corners, score and class of two objects; class 0 is the first.
struct Known {
  double x0, y0, x1, y1, score;
  int label;
};
constexpr Known kKnown[] = {{20, 20, 40, 32, .9, 1}, {43.25, 42.25, 53.75, 58.25, .68, 2}};

std::vector<double> answer(bool one_class, int points) {
  std::vector<double> out;
  for (const Known& k : kKnown) out.insert(out.end(), {k.x0, k.y0, k.x1, k.y1, k.score, one_class ? 0.0 : k.label});
  for (const Known& k : kKnown)
    for (int p = 0; p < points; ++p) out.insert(out.end(), {k.x0 + p, k.y1 - p, k.score});
  return out;
}

// Centres and sizes as parts of the picture.
std::vector<std::array<double, 4>> retinaface_priors(double width, double height) {
  std::vector<std::array<double, 4>> out;
  constexpr double kSizes[3][2] = {{16, 32}, {64, 128}, {256, 512}};
  double step = 8;
  for (const auto& sizes : kSizes) {
    for (double i = 0; i < std::ceil(height / step); ++i)
      for (double j = 0; j < std::ceil(width / step); ++j)
        for (const double size : sizes)
          out.push_back({(j + .5) * step / width, (i + .5) * step / height, size / width, size / height});
    step *= 2;
  }
  return out;
}

FamilyModel retinaface() {
  constexpr double kSide = 640;
  const auto priors = retinaface_priors(kSide, kSide);
  const std::size_t n = priors.size();
  std::vector<float> loc(n * 4), conf(n * 2), landms(n * 10);
  for (std::size_t i = 0; i < n; ++i) conf[2 * i] = 1;
  const std::size_t used[] = {485, 12'800 + 171};  // any: one of the first grid's second size, one of the second grid's
  for (std::size_t o = 0; o < 2; ++o) {
    const Known& k = kKnown[o];
    const auto& p = priors[used[o]];
    const auto put = [&](std::vector<float>& to, std::size_t at, double x, double y) {
      to[at] = f((x / kSide - p[0]) / (.1 * p[2])), to[at + 1] = f((y / kSide - p[1]) / (.1 * p[3]));
    };
    put(loc, 4 * used[o], (k.x0 + k.x1) / 2, (k.y0 + k.y1) / 2);
    loc[4 * used[o] + 2] = f(std::log((k.x1 - k.x0) / kSide / p[2]) / .2);
    loc[4 * used[o] + 3] = f(std::log((k.y1 - k.y0) / kSide / p[3]) / .2);
    for (int m = 0; m < 5; ++m) put(landms, 10 * used[o] + 2 * static_cast<std::size_t>(m), k.x0 + m, k.y1 - m);
    conf[2 * used[o]] = f(1 - k.score), conf[2 * used[o] + 1] = f(k.score);
  }
  Builder b("input0", G::f32, {1, 3, "h", "w"});
  const auto rows = static_cast<std::int64_t>(n);
  b.put("loc", {1, rows, 4}, loc);
  b.put("conf", {1, rows, 2}, conf);
  b.put("landms", {1, rows, 10}, landms);
  return {.name = "RetinaFace",
          .graph = std::move(b.g),
          .preprocess = "letterbox at=topleft bgr mean=104/255,117/255,123/255 std=1/255 pad=0 size=640x640",
          .postprocess = "boxes layout=priors set=retinaface score=0.5 iou=0.4",
          .asked = true,
          .width = 640,
          .height = 640,
          .answer = answer(true, 5)};
}

FamilyModel retinanet() {
  constexpr std::int64_t kKinds = 80, kAnchors = 9;
  Builder b("input", G::f32, square());
  std::vector<std::vector<float>> scores, deltas;
  std::vector<std::int64_t> sides;
  for (std::int64_t stride = 8; stride <= 128; stride *= 2) {
    const std::int64_t n = (64 + stride - 1) / stride;
    sides.push_back(n);
    std::vector<float> score(static_cast<std::size_t>(kAnchors * kKinds * n * n));
    std::vector<float> delta(static_cast<std::size_t>(kAnchors * 4 * n * n));
    for (std::size_t o = 0; o < 2; ++o) {
      if (stride != (o == 0 ? 8 : 32)) continue;
      const Known& k = kKnown[o];
      const std::int64_t anchor = o == 0 ? 5 : 1, y = o == 0 ? 3 : 1, x = o == 0 ? 4 : 0;
      // Corners of the anchor of this ratio (1, 2, 1/2) and scale around the cell, then differences as in training.
      const double ratio = anchor % 3 == 0   ? 1
                           : anchor % 3 == 1 ? 2
                                             : .5,
                   scale = 4 * std::pow(2, double(anchor / 3) / 3);
      const double s = double(stride), w = std::sqrt(s * s / ratio), h = w * ratio;
      const double ax0 = double(x) * s + .5 * (s - w * scale), ax1 = double(x) * s + .5 * (s + w * scale);
      const double ay0 = double(y) * s + .5 * (s - h * scale), ay1 = double(y) * s + .5 * (s + h * scale);
      const double aw = ax1 - ax0 + 1, ah = ay1 - ay0 + 1, bw = k.x1 - k.x0 + 1, bh = k.y1 - k.y0 + 1;
      const double d[] = {(k.x0 + .5 * bw - (ax0 + .5 * aw)) / aw, (k.y0 + .5 * bh - (ay0 + .5 * ah)) / ah,
                          std::log(bw / aw), std::log(bh / ah)};
      for (std::int64_t i = 0; i < 4; ++i)
        delta[static_cast<std::size_t>(((anchor * 4 + i) * n + y) * n + x)] = f(d[i]);
      score[static_cast<std::size_t>(((anchor * kKinds + k.label) * n + y) * n + x)] = f(k.score);
    }
    scores.push_back(score), deltas.push_back(delta);
  }
  int name = 900;
  for (std::size_t l = 0; l < sides.size(); ++l)
    b.put(std::to_string(name++), {1, kAnchors * kKinds, sides[l], sides[l]}, scores[l]);
  for (std::size_t l = 0; l < sides.size(); ++l)
    b.put(std::to_string(name++), {1, kAnchors * 4, sides[l], sides[l]}, deltas[l]);
  return {.name = "RetinaNet (onnx/models)",
          .graph = std::move(b.g),
          .preprocess = "letterbox at=topleft rgb norm=imagenet pad=0",
          .postprocess = "boxes layout=priors set=retinanet score=0.3 iou=0.5",
          .asked = true,
          .answer = answer(false, 0)};
}

FamilyModel blazeface() {
  // Centres alone: 2 a cell of 16 x 16, then 6 a cell of 8 x 8.
  std::vector<std::array<double, 2>> centres;
  for (const auto& [cells, each] : {std::pair{16, 2}, {8, 6}})
    for (int y = 0; y < cells; ++y)
      for (int x = 0; x < cells; ++x)
        centres.insert(centres.end(), static_cast<std::size_t>(each), {(x + .5) / cells, (y + .5) / cells});
  const std::size_t n = centres.size();
  std::vector<float> boxes(n * 16), scores(n, -8);
  const std::size_t used[] = {201, 700};
  for (std::size_t o = 0; o < 2; ++o) {
    const Known& k = kKnown[o];
    const double cx = centres[used[o]][0] * 64, cy = centres[used[o]][1] * 64;
    float* const to = boxes.data() + 16 * used[o];
    to[0] = f((k.x0 + k.x1) / 2 - cx), to[1] = f((k.y0 + k.y1) / 2 - cy), to[2] = f(k.x1 - k.x0),
    to[3] = f(k.y1 - k.y0);
    for (int m = 0; m < 6; ++m) to[4 + 2 * m] = f(k.x0 + m - cx), to[5 + 2 * m] = f(k.y1 - m - cy);
    scores[used[o]] = f(std::log(k.score / (1 - k.score)));
  }
  Builder b("input", G::f32, square());
  b.put("regressors", {1, 896, 16}, boxes);
  b.put("classificators", {1, 896, 1}, scores);
  return {.name = "BlazeFace",
          .graph = std::move(b.g),
          .preprocess = "letterbox rgb norm=half pad=0",
          .postprocess = "boxes layout=priors set=blazeface score=0.5 iou=0.3",
          .labels = "face",
          .answer = answer(true, 6)};
}

}  // namespace

void add_priors(std::vector<FamilyModel>& out) {
  out.push_back(retinanet());
  out.push_back(retinaface());
  out.push_back(blazeface());
}

}  // namespace leat::exec::families
