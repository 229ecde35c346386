// The families that find boxes.
#include <algorithm>
#include <cmath>

#include "engine/exec/test/test_family_builder.h"

namespace leat::exec::families {
namespace {

constexpr const char* kLetterbox = "letterbox rgb norm=unit pad=114/255";
constexpr const char* kNames = "{0: 'ant', 1: \"bee\", 2: 'cow'}";
constexpr std::size_t kClasses = 3, kCells = 64 + 16 + 4;  // strides 8, 16 and 32 of 64 x 64

// What every detector finds, in pixels of its picture.
struct Object {
  double cx, cy, w, h, score;
  int label;
};
constexpr Object kObjects[] = {{30, 26, 20, 12, .9, 1}, {48.5, 50.25, 10.5, 16, .68, 2}};

std::vector<double> boxes(bool one_class = false) {
  std::vector<double> out;
  for (const Object& o : kObjects)
    out.insert(out.end(), {o.cx - o.w / 2, o.cy - o.h / 2, o.cx + o.w / 2, o.cy + o.h / 2, o.score,
                           one_class ? 0.0 : double(o.label)});
  return out;
}

// ---- detectors with one output ----

// [4 + C + extra, cells]: a column an object; `more` are the rows behind the scores.
std::vector<float> columns_of(std::size_t classes, const std::vector<std::vector<double>>& more = {}) {
  const std::size_t extra = more.empty() ? 0 : more[0].size();
  std::vector<float> v((4 + classes + extra) * kCells);
  std::size_t cell = 40;
  for (std::size_t o = 0; o < std::size(kObjects); ++o, ++cell) {
    const Object& b = kObjects[o];
    const double head[] = {b.cx, b.cy, b.w, b.h};
    for (std::size_t r = 0; r < 4; ++r) v[r * kCells + cell] = f(head[r]);
    const std::size_t label = classes == 1 ? 0 : static_cast<std::size_t>(b.label);
    v[(4 + label) * kCells + cell] = f(b.score);
    for (std::size_t r = 0; r < extra; ++r) v[(4 + classes + r) * kCells + cell] = f(more[o][r]);
  }
  return v;
}

// [rows, 5 + C]; raw: YOLOX's offsets and logarithms, of the cell at stride 16 that holds the centre.
std::vector<float> rows_of(std::size_t rows, bool raw, double objectness = 1) {
  std::vector<float> v(rows * (5 + kClasses));
  if (objectness == 1)
    for (std::size_t i = 0; i < rows; ++i) v[i * 8 + 4] = 1;  // YOLOv6 writes a one into every row
  for (const Object& b : kObjects) {
    const double x = std::floor(b.cx / 16), y = std::floor(b.cy / 16);
    float* const at = v.data() + 8 * (64 + static_cast<std::size_t>(y * 4 + x));
    at[0] = f(raw ? b.cx / 16 - x : b.cx), at[1] = f(raw ? b.cy / 16 - y : b.cy);
    at[2] = f(raw ? std::log(b.w / 16) : b.w), at[3] = f(raw ? std::log(b.h / 16) : b.h);
    at[4] = f(objectness), at[5 + b.label] = f(b.score / objectness);
  }
  return v;
}

// Rows with corners; order: the columns "bxyxysc" by letter, '-' where the row's keypoints follow.
std::vector<float> corner_rows(std::size_t rows, const std::string& order,
                               const std::vector<std::vector<double>>& more = {}, int first = 0) {
  const std::size_t extra = more.empty() ? 0 : more[0].size(), width = order.size() + extra;
  std::vector<float> v(rows * width);
  for (std::size_t o = 0; o < std::size(kObjects); ++o) {
    const Object& b = kObjects[o];
    float* const at = v.data() + o * width;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const char c = order[i];
      at[i] = f(c == 'l'   ? b.cx - b.w / 2
                : c == 't' ? b.cy - b.h / 2
                : c == 'r' ? b.cx + b.w / 2
                : c == 'b' ? b.cy + b.h / 2
                : c == 'x' ? b.cx
                : c == 'y' ? b.cy
                : c == 'w' ? b.w
                : c == 'h' ? b.h
                : c == 's' ? b.score
                : c == 'c' ? b.label + first
                           : 0);
    }
    for (std::size_t r = 0; r < extra; ++r) at[order.size() + r] = f(more[o][r]);
  }
  return v;
}

// Boxes alone, in parts of the picture or pixels; then scores, then labels, each `rows` long.
std::vector<float> lone_boxes(std::size_t rows, const std::string& order, double unit) {
  std::vector<float> v = corner_rows(rows, order);
  for (float& x : v) x = f(static_cast<double>(x) / unit);
  return v;
}

constexpr double kPoints[2][9] = {{25, 24, .7, 30, 22, .5, 35, 28, .6}, {46, 48, .4, 48, 52, .8, 50, 55, .3}};
std::vector<std::vector<double>> points() {
  return {{std::begin(kPoints[0]), std::end(kPoints[0])}, {std::begin(kPoints[1]), std::end(kPoints[1])}};
}
std::vector<double> with_points(std::vector<double> answer) {
  for (const auto& row : points()) answer.insert(answer.end(), row.begin(), row.end());
  return answer;
}

constexpr double kAngles[] = {.5, -.25};
std::vector<double> oriented() {
  std::vector<double> out, parts;
  for (std::size_t o = 0; o < std::size(kObjects); ++o) {
    const Object& b = kObjects[o];
    const double c = std::abs(std::cos(kAngles[o])), s = std::abs(std::sin(kAngles[o]));
    const double w = (b.w * c + b.h * s) / 2, h = (b.w * s + b.h * c) / 2;
    out.insert(out.end(), {b.cx - w, b.cy - h, b.cx + w, b.cy + h, b.score, double(b.label)});
    parts.insert(parts.end(), {b.cx, b.cy, b.w, b.h, kAngles[o], b.score, double(b.label)});
  }
  out.insert(out.end(), parts.begin(), parts.end());
  return out;
}

}  // namespace

void add_yolo(std::vector<FamilyModel>& out) {
  const auto put = [&](const std::string& name, const std::string& output, const Dims& dims,
                       const std::vector<float>& values, const auto& say, FamilyModel rest) {
    Builder b("images", G::f32, square());
    b.put(output, dims, values);
    say(b.g);
    rest.name = name, rest.graph = std::move(b.g);
    if (rest.preprocess.empty()) rest.preprocess = kLetterbox;
    out.push_back(std::move(rest));
  };
  const auto nothing = [](G&) {};
  const auto task = [](const char* what, const char* names = kNames, bool end2end = false) {
    return [=](G& g) { ultralytics(g, what, names, end2end); };
  };
  const auto v5 = [](G& g) { g.metadata("stride", "32"), g.metadata("names", kNames); };
  const std::int64_t cells = kCells;
  put("YOLOv8, 11, 12", "output0", {1, 7, cells}, columns_of(3), task("detect"),
      {.postprocess = "boxes layout=yolo8", .labels = kLabels, .answer = boxes()});
  put("YOLOv10, 26, nms=True", "output0", {1, 300, 6}, corner_rows(300, "ltrbsc"), task("detect", kNames, true),
      {.postprocess = "boxes columns=x0,y0,x1,y1,s,c", .labels = kLabels, .answer = boxes()});
  put("YOLO pose", "output0", {1, 14, cells}, columns_of(1, points()),
      [](G& g) { ultralytics(g, "pose", "{0: 'person'}"), g.metadata("kpt_shape", "[3, 3]"); },
      {.postprocess = "boxes layout=yolo8 extra=points points=3",
       .labels = "person",
       .answer = with_points(boxes(true))});
  put("YOLO pose, end to end", "output0", {1, 300, 15}, corner_rows(300, "ltrbs-", points()),
      [](G& g) { ultralytics(g, "pose", "{0: 'person'}", true), g.metadata("kpt_shape", "[3, 3]"); },
      {.postprocess = "boxes columns=x0,y0,x1,y1,s,c extra=points points=3",
       .labels = "person",
       .answer = with_points(boxes(true))});
  // Prototypes 0 to 3 of -seg's 32 are the left half, the upper half, everything and a stripe; the rest are noise that
  // no box uses.
  std::vector<float> prototypes(32 * 256);
  for (std::size_t k = 0; k < 32; ++k)
    for (std::size_t y = 0; y < 16; ++y)
      for (std::size_t x = 0; x < 16; ++x)
        prototypes[(k * 16 + y) * 16 + x] = k == 0   ? (x < 8 ? 1.F : 0.F)
                                            : k == 1 ? (y < 6 ? 1.F : 0.F)
                                            : k == 2 ? 1.F
                                            : k == 3 ? (x + y) % 3 == 0 ? 1.F : 0.F
                                                     : f(std::sin(double(k * 31 + y * 7 + x)));
  std::vector<std::vector<double>> coefficients(2, std::vector<double>(32, 0));
  coefficients[0][0] = 1, coefficients[0][2] = -.5;                             // the left half
  coefficients[1][1] = -2, coefficients[1][3] = .75, coefficients[1][2] = -.1;  // below, the stripe
  const auto masked = [&](std::vector<double> answer) {
    for (const Object& b : kObjects) {  // cells of 4 x 4 pixels whose corner is in the box
      const double x0 = std::ceil((b.cx - b.w / 2) / 4), x1 = std::ceil((b.cx + b.w / 2) / 4);
      const double y0 = std::ceil((b.cy - b.h / 2) / 4), y1 = std::ceil((b.cy + b.h / 2) / 4);
      answer.insert(answer.end(), {4 * x0, 4 * y0, 4 * x1, 4 * y1, x1 - x0, y1 - y0});
      for (double y = y0; y < y1; ++y)
        for (double x = x0; x < x1; ++x) answer.push_back(b.label == 1 ? x < 8 : std::fmod(x + y, 3) == 0);
    }
    return answer;
  };
  for (const bool done : {false, true}) {
    Builder b("images", G::f32, square());
    if (done)
      b.put("output0", {1, 300, 38}, corner_rows(300, "ltrbsc", coefficients));
    else
      b.put("output0", {1, 39, cells}, columns_of(3, coefficients));
    b.put("output1", {1, 32, 16, 16}, prototypes);
    ultralytics(b.g, "segment", kNames, done);
    out.push_back({.name = done ? "YOLO seg, end to end" : "YOLO seg",
                   .graph = std::move(b.g),
                   .preprocess = kLetterbox,
                   .postprocess = done ? "boxes columns=x0,y0,x1,y1,s,c extra=mask" : "boxes layout=yolo8 extra=mask",
                   .labels = kLabels,
                   .answer = masked(boxes())});
  }
  put("YOLO obb", "output0", {1, 8, cells}, columns_of(3, {{kAngles[0]}, {kAngles[1]}}), task("obb"),
      {.postprocess = "boxes layout=yolo8 extra=angle", .labels = kLabels, .answer = oriented()});
  put("YOLO obb, end to end", "output0", {1, 300, 7}, corner_rows(300, "xywhsc", {{kAngles[0]}, {kAngles[1]}}),
      task("obb", kNames, true),
      {.postprocess = "boxes columns=cx,cy,w,h,s,c,a", .labels = kLabels, .answer = oriented()});
  put("YOLOv9", "output0", {1, 7, cells}, columns_of(3), v5,
      {.postprocess = "boxes layout=yolo8", .labels = kLabels, .answer = boxes()});
  put("YOLOv5", "output0", {1, 3 * cells, 8}, rows_of(3 * kCells, false, .95), v5,
      {.postprocess = "boxes layout=yolo5", .labels = kLabels, .answer = boxes()});
  put("YOLOv7", "output", {1, 3 * cells, 8}, rows_of(3 * kCells, false, .95), nothing,
      {.postprocess = "boxes layout=yolo5", .asked = true, .answer = boxes()});
  put("YOLOv7, v9 end to end", "output", {"k", 7}, corner_rows(2, "-ltrbcs"), nothing,
      {.postprocess = "boxes columns=b,x0,y0,x1,y1,c,s", .asked = true, .answer = boxes()});
  put("YOLOv6", "outputs", {1, cells, 8}, rows_of(kCells, false), nothing,
      {.postprocess = "boxes layout=yolo5", .asked = true, .answer = boxes()});
  put("YOLOX", "output", {1, cells, 8}, rows_of(kCells, true, .95), nothing,
      {.preprocess = "letterbox at=topleft bgr norm=raw pad=114/255",
       .postprocess = "boxes layout=yolox iou=0.45",
       .asked = true,
       .answer = boxes()});
  put("YOLOX, decoded", "output", {1, cells, 8}, rows_of(kCells, false, .95),
      [](G& g) { g.op("Exp", {g.constant("", {1}, {0})}); },
      {.preprocess = "letterbox at=topleft bgr norm=raw pad=114/255",
       .postprocess = "boxes layout=yolo5",
       .asked = true,
       .answer = boxes()});
  put("YOLOX or v6, renamed", "found", {1, cells, 8}, rows_of(kCells, true, .95), nothing,
      {.preprocess = "letterbox at=topleft bgr norm=raw pad=114/255",
       .postprocess = "boxes layout=yolox",
       .asked = true,
       .answer = boxes()});
  std::vector<float> query = zeros(300 * 7);
  for (std::size_t o = 0; o < 2; ++o) {
    const Object& b = kObjects[o];
    const double v[] = {b.cx / 64, b.cy / 64, b.w / 64, b.h / 64};
    for (std::size_t i = 0; i < 4; ++i) query[o * 7 + i] = f(v[i]);
    query[o * 7 + 4 + static_cast<std::size_t>(b.label)] = f(b.score);
  }
  put("RT-DETR (Ultralytics)", "output0", {1, 300, 7}, query, task("detect"),
      {.preprocess = "stretch rgb norm=unit",
       .postprocess = "boxes layout=query",
       .labels = kLabels,
       .answer = boxes()});
}

namespace {

// ---- detectors with several outputs ----

std::vector<float> scores(std::size_t rows) {
  std::vector<float> v(rows);
  for (std::size_t o = 0; o < 2; ++o) v[o] = f(kObjects[o].score);
  return v;
}
std::vector<float> labels(std::size_t rows, int first = 0) {
  std::vector<float> v(rows, f(first));
  for (std::size_t o = 0; o < 2; ++o) v[o] = f(kObjects[o].label + first);
  return v;
}
// Logits whose sigmoid, or softmax with a last class of 0, is the score.
std::vector<float> logits(std::size_t rows, std::size_t classes, bool softmax) {
  std::vector<float> v(rows * classes, -30);
  for (std::size_t i = 0; i < rows && softmax; ++i) v[i * classes + classes - 1] = 0;
  for (std::size_t o = 0; o < 2; ++o) {
    const double s = kObjects[o].score;
    v[o * classes + static_cast<std::size_t>(kObjects[o].label)] = f(std::log(s / (1 - s)));
  }
  return v;
}

}  // namespace

void add_split(std::vector<FamilyModel>& out) {
  {
    Builder b("images", G::f32, square());
    b.put_whole("num_dets", {1, 1}, {2});
    b.put("det_boxes", {1, 100, 4}, lone_boxes(100, "ltrb", 1));
    b.put("det_scores", {1, 100}, scores(100));
    b.put_whole("det_classes", {1, 100}, labels(100));
    out.push_back({.name = "YOLOv6 end to end",
                   .graph = std::move(b.g),
                   .preprocess = kLetterbox,
                   .postprocess = "boxes layout=split",
                   .asked = true,
                   .answer = boxes()});
  }
  const char* const raw = "letterbox rgb norm=raw pad=114/255";
  {
    Builder b("input", G::u8, square());
    b.put("graph2_flat_predictions", {"k", 7}, corner_rows(2, "-ltrbsc"));
    out.push_back({.name = "YOLO-NAS, flat",
                   .graph = std::move(b.g),
                   .preprocess = raw,
                   .postprocess = "boxes columns=b,x0,y0,x1,y1,s,c",
                   .asked = true,
                   .answer = boxes()});
  }
  {
    Builder b("input", G::u8, square());
    b.put_whole("num_predictions", {1, 1}, {2});
    b.put("pred_boxes", {1, 1000, 4}, lone_boxes(1000, "ltrb", 1));
    b.put("pred_scores", {1, 1000}, scores(1000));
    b.put_whole("pred_classes", {1, 1000}, labels(1000));
    out.push_back({.name = "YOLO-NAS, batch",
                   .graph = std::move(b.g),
                   .preprocess = raw,
                   .postprocess = "boxes layout=split",
                   .asked = true,
                   .answer = boxes()});
  }
  {
    Builder b("input_tensor", G::u8, nhwc());
    b.put("detection_boxes", {1, 100, 4}, lone_boxes(100, "tlbr", 64));
    b.put("detection_classes", {1, 100}, labels(100, 1));
    b.put("detection_scores", {1, 100}, scores(100));
    b.put("num_detections", {1}, {2});
    b.put("raw_detection_boxes", {1, 120, 4}, zeros(480, .5F));
    b.put("raw_detection_scores", {1, 120, 4}, zeros(480, .5F));
    out.push_back({.name = "SSD (TensorFlow)",
                   .graph = std::move(b.g),
                   .preprocess = "stretch rgb norm=raw",
                   .postprocess = "boxes layout=split unit=one order=yxyx first=1",
                   .answer = boxes()});
  }
  for (const bool rcnn : {false, true}) {
    Builder b("images", G::f32, {3, 64, 64});
    b.put("boxes", {"k", 4}, lone_boxes(2, "ltrb", 1));
    if (rcnn) b.put_whole("labels", {"k"}, labels(2));
    b.put("scores", {"k"}, scores(2));
    if (!rcnn) b.put_whole("labels", {"k"}, labels(2));
    out.push_back({.name = rcnn ? "torchvision R-CNN" : "torchvision SSD, RetinaNet",
                   .graph = std::move(b.g),
                   .preprocess = "stretch rgb norm=unit",
                   .postprocess = "boxes layout=split score=0.5",
                   .asked = true,
                   .answer = boxes()});
  }
  {
    Builder b("image", G::f32, {3, 64, 64});
    b.put("6379", {"k", 4}, lone_boxes(2, "ltrb", 1));
    b.put_whole("6381", {"k"}, labels(2));
    b.put("6383", {"k"}, scores(2));
    out.push_back({.name = "Faster R-CNN (onnx/models)",
                   .graph = std::move(b.g),
                   .preprocess = "letterbox at=topleft bgr mean=102.98/255,115.95/255,122.77/255 std=1/255 pad=0",
                   .postprocess = "boxes layout=split score=0.5",
                   .asked = true,
                   .answer = boxes()});
  }
  {
    Builder b("image_arrays", G::u8, nhwc());
    b.put("detections", {1, 100, 7}, corner_rows(100, "-tlbrsc", {}, 1));
    out.push_back({.name = "EfficientDet",
                   .graph = std::move(b.g),
                   .preprocess = "letterbox at=topleft rgb norm=raw pad=0",
                   .postprocess = "boxes columns=b,y0,x0,y1,x1,s,c first=1",
                   .asked = true,
                   .answer = boxes()});
  }
  const std::string config = R"({"architectures": ["DetrForObjectDetection"],)"
                             R"( "id2label": {"0": "ant", "1": "bee", "2": "cow"}})";
  for (const bool sized : {false, true}) {
    Builder b("pixel_values", G::f32, {"batch", "num_channels", "height", "width"});
    b.g.input("pixel_mask", G::i64, {"batch", "height", "width"});
    b.put("logits", {"batch", 100, 4}, logits(100, 4, true));
    b.put("pred_boxes", {"batch", 100, 4}, lone_boxes(100, "xywh", 64));
    const std::string words = std::string("stretch resize=antialias rgb norm=imagenet") +
                              (sized ? " size=64x64" : " edge=64 longest=107") + " feed.pixel_mask=ones";
    out.push_back(
        {.name = sized ? "DETR (sized)" : "DETR",
         .graph = std::move(b.g),
         .beside = {{"config.json", config},
                    {"preprocessor_config.json",
                     std::string(kProcessor) + (sized ? R"("size": {"height": 64, "width": 64}})"
                                                      : R"("size": {"shortest_edge": 64, "longest_edge": 107}})")}},
         .preprocess = words,
         .postprocess = "boxes layout=query act=softmax score=0.7",
         .labels = kLabels,
         .width = sized ? 64U : 85U,
         .answer = {}});
    std::vector<double> all = boxes();
    all.resize(6);  // above .7
    if (!sized) all[0] *= 85.0 / 64, all[2] *= 85.0 / 64;
    out.back().answer = all;
  }
  {
    Builder b("images", G::f32, square("N"));
    b.g.input("orig_target_sizes", G::i64, {"N", 2});
    b.stem("images", 3);
    b.put_whole("labels", {"N", 300}, labels(300));
    b.put("boxes", {"N", 300, 4}, lone_boxes(300, "ltrb", 1));
    b.put("scores", {"N", 300}, scores(300));
    out.push_back({.name = "RT-DETR, D-FINE",
                   .graph = std::move(b.g),
                   .preprocess = "stretch resize=antialias rgb norm=unit feed.orig_target_sizes=wh",
                   .postprocess = "boxes layout=split score=0.5",
                   .answer = boxes()});
  }
  for (const bool seg : {false, true}) {
    Builder b("input", G::f32, square());
    b.put("dets", {1, 300, 4}, lone_boxes(300, "xywh", 64));
    b.put("labels", {1, 300, 91}, logits(300, 91, false));
    if (seg) b.put("4245", {1, 300, 16, 16}, zeros(300 * 256, -1));
    out.push_back({.name = seg ? "RF-DETR seg" : "RF-DETR",
                   .graph = std::move(b.g),
                   .preprocess = "stretch resize=antialias rgb norm=imagenet",
                   .postprocess = "boxes layout=query act=sigmoid score=0.5",
                   .answer = boxes()});
  }
  {
    Builder b("input", G::f32, {"batch", 3, "height", "width"});
    b.put("dets", {"batch", "num_dets", 5}, corner_rows(2, "ltrbs"));
    b.put_whole("labels", {"batch", "num_dets"}, labels(2));
    out.push_back(
        {.name = "mmdet (mmdeploy)",
         .graph = std::move(b.g),
         .beside = {{"pipeline.json",
                     R"({"pipeline": {"tasks": [{"type": "Task", "module": "Transform", "transforms": [)"
                     R"({"type": "LoadImageFromFile"}, {"type": "Resize", "keep_ratio": true, "size": [64, 64]},)"
                     R"({"type": "Normalize", "to_rgb": true, "mean": [123.675, 116.28, 103.53],)"
                     R"( "std": [58.395, 57.12, 57.375]}, {"type": "Pad", "size_divisor": 32}]}]}})"}},
         .preprocess = "letterbox at=topleft pad=0 rgb norm=imagenet size=64x64",
         .postprocess = "boxes layout=split score=0.3",
         .answer = boxes()});
  }
}

// ---- faces ----

void add_faces(std::vector<FamilyModel>& out) {
  // Two faces at stride 16, of which the second is the second anchor of its cell where there are two.
  const auto level_values = [](char what, int stride, std::size_t anchors, bool yunet) {
    const std::size_t n = static_cast<std::size_t>(64 / stride), width = what == 'b' ? 4 : what == 'k' ? 10 : 1;
    std::vector<float> v(n * n * anchors * width);
    if (stride != 16) return v;
    for (std::size_t o = 0; o < 2; ++o) {
      const Object& b = kObjects[o];
      const double x = std::floor(b.cx / 16), y = std::floor(b.cy / 16);
      float* const at = v.data() + width * ((static_cast<std::size_t>(y) * n + static_cast<std::size_t>(x)) * anchors +
                                            (anchors == 2 ? o : 0));
      if (what == 's') *at = f(b.score);
      if (what == 'c') *at = 1;
      if (what == 'o') *at = f(b.score * b.score);
      if (what == 'b' && yunet) {
        at[0] = f(b.cx / 16 - x), at[1] = f(b.cy / 16 - y), at[2] = f(std::log(b.w / 16)),
        at[3] = f(std::log(b.h / 16));
      } else if (what == 'b') {
        at[0] = f(x - (b.cx - b.w / 2) / 16), at[1] = f(y - (b.cy - b.h / 2) / 16);
        at[2] = f((b.cx + b.w / 2) / 16 - x), at[3] = f((b.cy + b.h / 2) / 16 - y);
      }
      for (std::size_t p = 0; what == 'k' && p < 5; ++p) {
        at[2 * p] = f((b.cx + double(p)) / 16 - x), at[2 * p + 1] = f((b.cy - double(p)) / 16 - y);
      }
    }
    return v;
  };
  std::vector<double> answer = boxes(true);
  for (const Object& b : kObjects)
    for (int p = 0; p < 5; ++p) answer.insert(answer.end(), {b.cx + p, b.cy - p, b.score});
  {
    Builder b("input.1", G::f32, square());
    for (const char what : {'s', 'b', 'k'})
      for (const int stride : {8, 16, 32}) {
        const std::int64_t rows = 2 * (64 / stride) * (64 / stride), width = what == 'b' ? 4 : what == 'k' ? 10 : 1;
        b.put(std::string(1, what) + std::to_string(stride), {rows, width}, level_values(what, stride, 2, false));
      }
    out.push_back({.name = "SCRFD",
                   .graph = std::move(b.g),
                   .preprocess = "letterbox at=topleft rgb mean=127.5/255 std=128/255 pad=0",
                   .postprocess = "boxes layout=levels score=0.5 iou=0.4",
                   .labels = "face",
                   .answer = answer});
  }
  {
    Builder b("input", G::f32, square());
    for (const char* const kind : {"cls", "obj", "bbox", "kps"})
      for (const int stride : {8, 16, 32}) {
        const std::int64_t rows = (64 / stride) * (64 / stride), width = *kind == 'b' ? 4 : *kind == 'k' ? 10 : 1;
        b.put(std::string(kind) + "_" + std::to_string(stride), {1, rows, width}, level_values(*kind, stride, 1, true));
      }
    out.push_back({.name = "YuNet",
                   .graph = std::move(b.g),
                   .preprocess = "letterbox at=topleft bgr norm=raw pad=0",
                   .postprocess = "boxes layout=levels score=0.6 iou=0.3",
                   .answer = answer});
  }
  {
    Builder b("input", G::f32, square());
    std::vector<float> two(400 * 2);
    for (std::size_t i = 0; i < 400; ++i) two[2 * i] = 1;
    for (std::size_t o = 0; o < 2; ++o) two[2 * o] = f(1 - kObjects[o].score), two[2 * o + 1] = f(kObjects[o].score);
    b.put("scores", {1, 400, 2}, two);
    b.put("boxes", {1, 400, 4}, lone_boxes(400, "ltrb", 64));
    b.mark("Exp");
    out.push_back({.name = "UltraFace",
                   .graph = std::move(b.g),
                   .preprocess = "stretch rgb mean=127/255 std=128/255",
                   .postprocess = "boxes layout=query order=xyxy first=1 score=0.65 iou=0.4",
                   .asked = true,
                   .answer = boxes(true)});
  }
}

}  // namespace leat::exec::families
