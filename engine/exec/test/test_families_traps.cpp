// Models whose shapes, or names, are those of another family: what tells them apart, or the question that names both.
#include <algorithm>
#include <cmath>

#include "engine/exec/test/test_family_builder.h"

namespace leat::exec::families {
namespace traps {
namespace {

constexpr const char* kLetterbox = "letterbox rgb norm=unit pad=114/255";
constexpr const char* kImagenet = "stretch rgb norm=imagenet";
constexpr std::int64_t kCells = 64 + 16 + 4;  // strides 8, 16 and 32 of 64 x 64

// What is found: centre, size, score, class.
struct Object {
  double cx, cy, w, h, score;
  int label;
};
constexpr Object kObjects[] = {{30, 26, 20, 12, .9, 0}, {48.5, 50.25, 10.5, 16, .68, 0}};

std::vector<double> boxes(const std::vector<int>& labels = {0, 0}) {
  std::vector<double> out;
  for (std::size_t o = 0; o < 2; ++o) {
    const Object& b = kObjects[o];
    out.insert(out.end(), {b.cx - b.w / 2, b.cy - b.h / 2, b.cx + b.w / 2, b.cy + b.h / 2, b.score, double(labels[o])});
  }
  return out;
}

// YOLO's rows of `width` numbers: box, then what `put` writes behind it.
template <class Put>
std::vector<float> rows(std::int64_t count, std::size_t width, Put&& put) {
  std::vector<float> v(static_cast<std::size_t>(count) * width);
  for (std::size_t o = 0; o < 2; ++o) {
    const Object& b = kObjects[o];
    float* const at = v.data() + (40 + o) * width;
    at[0] = f(b.cx), at[1] = f(b.cy), at[2] = f(b.w), at[3] = f(b.h);
    put(b, at + 4);
  }
  return v;
}
std::vector<float> turned(const std::vector<float>& v, std::size_t width) {  // [n, width] as [width, n]
  std::vector<float> out(v.size());
  const std::size_t n = v.size() / width;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < width; ++k) out[k * n + i] = v[i * width + k];
  return out;
}

void add_yolo_without_metadata(std::vector<FamilyModel>& out) {
  {
    Builder b("images", G::f32, square());
    const auto v = rows(kCells, 14, [](const Object& o, float* at) {
      at[0] = f(o.score);
      for (int p = 0; p < 3; ++p) at[1 + 3 * p] = f(o.cx + p), at[2 + 3 * p] = f(o.cy - p), at[3 + 3 * p] = .5F;
    });
    b.put("output0", {1, 14, kCells}, turned(v, 14));
    std::vector<double> answer = boxes();
    for (const Object& o : kObjects)
      for (int p = 0; p < 3; ++p) answer.insert(answer.end(), {o.cx + p, o.cy - p, .5});
    out.push_back({.name = "YOLO pose, no metadata",
                   .graph = std::move(b.g),
                   .preprocess = kLetterbox,
                   .postprocess = "boxes layout=yolo8 extra=points points=3",
                   .asked = true,
                   .answer = answer});
  }
  // Prototypes: the left half, and noise that nobody uses.
  std::vector<float> prototypes(32 * 256);
  for (std::size_t i = 0; i < prototypes.size(); ++i)
    prototypes[i] = i < 256 ? (i % 16 < 8 ? 1.F : -1.F) : f(std::sin(double(i)));
  std::vector<double> masks;
  for (const Object& b : kObjects) {
    const double x0 = std::ceil((b.cx - b.w / 2) / 4), x1 = std::ceil((b.cx + b.w / 2) / 4);
    const double y0 = std::ceil((b.cy - b.h / 2) / 4), y1 = std::ceil((b.cy + b.h / 2) / 4);
    masks.insert(masks.end(), {4 * x0, 4 * y0, 4 * x1, 4 * y1, x1 - x0, y1 - y0});
    for (double y = y0; y < y1; ++y)
      for (double x = x0; x < x1; ++x) masks.push_back(x < 8);
  }
  for (const bool five : {false, true}) {
    Builder b("images", G::f32, square());
    const std::size_t scores = five ? 3 : 2, width = 4 + scores + 32;
    const auto wide = static_cast<std::int64_t>(width);
    const auto v = rows(five ? 3 * kCells : kCells, width, [&](const Object& o, float* at) {
      if (five) at[0] = 1;
      at[five ? 1 : 0] = f(o.score), at[scores] = 1;
    });
    if (five)
      b.put("output0", {1, 3 * kCells, wide}, v);
    else
      b.put("output0", {1, wide, kCells}, turned(v, width));
    b.put("output1", {1, 32, 16, 16}, prototypes);
    std::vector<double> answer = boxes();
    answer.insert(answer.end(), masks.begin(), masks.end());
    out.push_back({.name = five ? "YOLOv5 seg" : "YOLO seg, no metadata",
                   .graph = std::move(b.g),
                   .preprocess = kLetterbox,
                   .postprocess = five ? "boxes layout=yolo5 extra=mask" : "boxes layout=yolo8 extra=mask",
                   .asked = true,
                   .answer = answer});
  }
  {
    Builder b("input", G::f32, square());
    const auto v = rows(3 * kCells, 16, [](const Object& o, float* at) {
      at[0] = 1, at[11] = f(o.score);
      for (int p = 0; p < 5; ++p) at[1 + 2 * p] = f(o.cx + p), at[2 + 2 * p] = f(o.cy - p);
    });
    b.put("output", {1, 3 * kCells, 16}, v);
    std::vector<double> answer = boxes();
    for (const Object& o : kObjects)
      for (int p = 0; p < 5; ++p) answer.insert(answer.end(), {o.cx + p, o.cy - p, o.score});
    out.push_back({.name = "YOLOv5-face",
                   .graph = std::move(b.g),
                   .preprocess = kLetterbox,
                   .postprocess = "boxes layout=yolo5 extra=points points=5 score=0.6 iou=0.5",
                   .asked = true,
                   .answer = answer});
  }
  {
    Builder b("images", G::f32, square());
    std::vector<float> v(300 * 6);
    for (std::size_t o = 0; o < 2; ++o) {
      const Object& k = kObjects[o];
      const double row[] = {k.cx / 64, k.cy / 64, k.w / 64, k.h / 64, o == 0 ? k.score : 0, o == 1 ? k.score : 0};
      for (std::size_t i = 0; i < 6; ++i) v[6 * o + i] = f(row[i]);
    }
    b.put("output0", {1, 300, 6}, v);
    b.g.op("GridSample", {b.g.constant("", {1, 1, 2, 2}, {0, 0, 0, 0}), b.g.constant("", {1, 1, 1, 2}, {0, 0})});
    out.push_back({.name = "RT-DETR of two classes",
                   .graph = std::move(b.g),
                   .preprocess = "stretch rgb norm=unit",
                   .postprocess = "boxes layout=query",
                   .asked = true,
                   .answer = boxes({0, 1})});
  }
}

void add_ports_alike(std::vector<FamilyModel>& out) {
  std::vector<float> lone(300 * 4), scores(300), five(2 * 5);
  for (std::size_t o = 0; o < 2; ++o) {
    const Object& k = kObjects[o];
    const double corners[] = {k.cx - k.w / 2, k.cy - k.h / 2, k.cx + k.w / 2, k.cy + k.h / 2};
    for (std::size_t i = 0; i < 4; ++i) lone[4 * o + i] = five[5 * o + i] = f(corners[i]);
    scores[o] = five[5 * o + 4] = f(k.score);
  }
  {
    Builder b("images", G::f32, square("N"));
    b.g.input("orig_target_sizes", G::i64, {"N", 2});
    b.stem("images", 16);  // patches, as a vision transformer cuts them
    b.put_whole("labels", {"N", 300}, zeros(300));
    b.put("boxes", {"N", 300, 4}, lone);
    b.put("scores", {"N", 300}, scores);
    out.push_back({.name = "DEIMv2 with DINOv3",
                   .graph = std::move(b.g),
                   .preprocess = "stretch resize=antialias rgb norm=imagenet feed.orig_target_sizes=wh",
                   .postprocess = "boxes layout=split score=0.5",
                   .asked = true,
                   .answer = boxes()});
  }
  {
    Builder b("input", G::f32, square("batch"));
    b.put("dets", {"batch", "num_dets", 5}, five);
    b.put_whole("labels", {"batch", "num_dets"}, {0, 0});
    out.push_back({.name = "RTMDet (mmdeploy)",
                   .graph = std::move(b.g),
                   .preprocess = "letterbox at=topleft bgr mean=103.53/255,116.28/255,123.675/255 "
                                 "std=57.375/255,57.12/255,58.395/255 pad=114/255",
                   .postprocess = "boxes layout=split score=0.3",
                   .asked = true,
                   .answer = boxes()});
  }
  {
    Builder b("image", G::f32, square());
    b.g.input("im_shape", G::f32, {1, 2});
    b.g.input("scale_factor", G::f32, {1, 2});
    b.put("fetch_name_0", {"k", 6}, {0, f(.9), 20, 20, 40, 32, 0, f(.68), f(43.25), f(42.25), f(53.75), f(58.25)});
    b.put_whole("fetch_name_1", {1}, {2}, G::i32);
    out.push_back({.name = "PP-DocLayout",
                   .graph = std::move(b.g),
                   .preprocess = "stretch rgb norm=unit feed.scale_factor=ones feed.im_shape=hw",
                   .postprocess = "boxes columns=c,s,x0,y0,x1,y1",
                   .asked = true,
                   .answer = boxes()});
  }
  {
    Builder b("pixel_values", G::f32, square());
    b.g.input("input_ids", G::i64, {1, 16});
    b.put("image_embeds", {1, 512}, zeros(512, 1));
    out.push_back({.name = "with a text beside", .graph = std::move(b.g), .refused = "tensors"});
  }
}

void add_maps_and_text(std::vector<FamilyModel>& out) {
  {
    Builder b("img", G::f32, square());
    std::vector<float> edges(64 * 64);
    std::vector<double> answer;
    for (std::size_t i = 0; i < edges.size(); ++i) {
      edges[i] = f(3 * std::sin(.01 * double(i)));
      answer.push_back(std::nearbyint(255 / (1 + std::exp(-double(edges[i])))));
    }
    for (int i = 0; i < 7; ++i) b.put("o" + std::to_string(i), {1, 1, 64, 64}, edges);
    out.push_back({.name = "DexiNed",
                   .graph = std::move(b.g),
                   .preprocess = "stretch bgr mean=103.5/255,116.2/255,123.6/255 std=1/255",
                   .postprocess = "map matte act=sigmoid",
                   .asked = true,
                   .answer = answer});
  }
  {
    Builder b("input:0", G::f32, nhwc());
    std::vector<float> mask(32 * 32);
    std::vector<double> answer;
    for (std::size_t i = 0; i < mask.size(); ++i) {
      mask[i] = f(std::abs(std::sin(.05 * double(i))));
      answer.push_back(double(mask[i]));
    }
    b.put("out_mask:0", {1, 32, 32, 1}, mask);
    out.push_back({.name = "XSeg, channels last",
                   .graph = std::move(b.g),
                   .preprocess = "stretch bgr norm=unit",
                   .postprocess = "map value",
                   .asked = true,
                   .answer = answer});
  }
  {
    Builder b("input", G::f32, square());
    std::vector<float> logits(64 * 64, -4);
    for (std::size_t y = 20; y < 30; ++y)
      for (std::size_t x = 10; x < 30; ++x) logits[y * 64 + x] = 2;
    b.put("logits", {1, 1, 64, 64}, logits);
    const double d = 19 * 9 * 1.5 / (2 * (19 + 9)), w = 19 + 2 * d, h = 9 + 2 * d, score = 1 / (1 + std::exp(-2.0));
    out.push_back({.name = "docTR det",
                   .graph = std::move(b.g),
                   .preprocess = "letterbox rgb mean=0.798,0.785,0.772 std=0.264,0.2749,0.287 pad=0",
                   .postprocess = "lines act=sigmoid threshold=0.3 score=0.1",
                   .asked = true,
                   .answer = {20 - w / 2, 25 - h / 2, 20 + w / 2, 25 + h / 2, score, 0, 20, 25, w, h, 0, score, 0}});
  }
  std::string keys;
  for (int i = 0; i < 39; ++i) keys += std::string(1, static_cast<char>('0' + i)) + "\n";
  {
    Builder b("input", G::f32, {1, 3, 32, 128});
    std::vector<float> steps(8 * 40);
    const std::size_t best[] = {0, 0, 39, 0, 5, 5, 39, 38};  // 0 0 - 0 5 5 - V of 39 characters and blank
    for (std::size_t s = 0; s < 8; ++s) steps[s * 40 + best[s]] = .8F;
    b.put("logits", {1, 8, 40}, steps);
    out.push_back({.name = "docTR rec, blank last",
                   .graph = std::move(b.g),
                   .beside = {{"keys.txt", keys}},
                   .preprocess = "letterbox rgb mean=0.694,0.695,0.693 std=0.299,0.296,0.301 pad=0",
                   .postprocess = "text ctc keys=FILE blank=last",
                   .asked = true,
                   .width = 128,
                   .height = 32,
                   .answer = {'0', '0', '5', '0' + 38, .8}});
  }
  {
    Builder b("input1", G::f32, {1, 1, 32, 100});
    b.batched = false;
    std::vector<float> steps(26 * 41);
    for (std::size_t s = 0; s < 26; ++s) steps[s * 41 + (s == 4 ? 2 : s == 9 ? 40 : 0)] = .8F;
    b.put("out", {26, 1, 41}, steps);
    out.push_back({.name = "CRNN, batch in the middle",
                   .graph = std::move(b.g),
                   .beside = {{"keys.txt", keys}},
                   .preprocess = "stretch gray norm=half",
                   .postprocess = "text ctc keys=FILE",
                   .asked = true,
                   .width = 100,
                   .height = 32,
                   .answer = {'1', ' ', .8}});
  }
  {
    Builder b("images", G::f32, square());
    b.put("output0", {1, 3}, {1, 3, 2});
    b.g.metadata("stride", "32"), b.g.metadata("names", "{0: 'ant', 1: 'bee', 2: 'cow'}");
    const double sum = std::exp(1.0) + std::exp(3.0) + std::exp(2.0);
    out.push_back({.name = "YOLOv5 cls",
                   .graph = std::move(b.g),
                   .preprocess = "cover=1 rgb norm=imagenet",
                   .postprocess = "classes",
                   .labels = kLabels,
                   .answer = {1, std::exp(3.0) / sum, 2, std::exp(2.0) / sum, 0, std::exp(1.0) / sum}});
  }
  {
    Builder b("input", G::f32, {1, 3, 24, 94});
    std::vector<float> scores(68 * 18);
    std::string plates;
    for (int i = 0; i < 67; ++i) plates += std::string(1, static_cast<char>('0' + i)) + "\n";
    for (std::size_t s = 0; s < 18; ++s) scores[(s == 3 ? 20 : s == 7 ? 30 : s == 8 ? 30 : 67) * 18 + s] = .6F;
    b.put("output", {1, 68, 18}, scores);
    out.push_back({.name = "LPRNet",
                   .graph = std::move(b.g),
                   .beside = {{"plates.txt", plates}},
                   .preprocess = "stretch bgr mean=127.5/255 std=128/255",
                   .postprocess = "text ctc keys=plates.txt blank=last axis=ct",
                   .width = 94,
                   .height = 24,
                   .answer = {'0' + 20, '0' + 30, .6}});
  }
  {
    Builder b("data_0", G::f32, square());
    std::vector<float> v(1000);
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = i == 7 ? .5F : i < 5 ? f(.1 - .01 * double(i)) : 0;
    b.put("softmaxout_1", {1, 1000, 1, 1}, v);
    out.push_back({.name = "SqueezeNet (onnx/models)",
                   .graph = std::move(b.g),
                   .preprocess = "cover=0.875 resize=antialias rgb norm=imagenet",
                   .postprocess = "classes",
                   .asked = true,
                   .answer = {}});
    double sum = 0;
    for (const float x : v) sum += std::exp(double(x));
    for (const std::size_t i : {7U, 0U, 1U, 2U, 3U})
      out.back().answer.insert(out.back().answer.end(), {double(i), std::exp(double(v[i])) / sum});
  }
  {
    Builder b("pixel_values", G::f32, square());
    std::vector<float> states(5 * 8, 3), pooled(8);
    double sum = 0;
    for (std::size_t i = 0; i < 8; ++i) pooled[i] = f(double(i + 1)), sum += double(i + 1) * double(i + 1);
    b.put("last_hidden_state", {1, 5, 8}, states);
    b.put("image_embeds", {1, 8}, pooled);
    std::vector<double> answer;
    for (const float v : pooled) answer.push_back(double(v) / std::sqrt(sum));
    out.push_back({.name = "CLIP image, states first",
                   .graph = std::move(b.g),
                   .preprocess = "cover=1 resize=cubic rgb norm=clip",
                   .postprocess = "embedding unit from=image_embeds",
                   .asked = true,
                   .answer = answer});
  }
}

}  // namespace
}  // namespace traps

void add_traps(std::vector<FamilyModel>& out) {
  traps::add_yolo_without_metadata(out);
  traps::add_ports_alike(out);
  traps::add_maps_and_text(out);
}

}  // namespace leat::exec::families
