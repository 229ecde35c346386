// Outputs of the families of models, made from each layout's published description, and how a decoder answers them. The
// picture is 64 x 64, the frame 128 x 128 seen at half size with an offset. For tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "engine/exec/decode/postprocess.h"
#include "engine/exec/picture/preprocess.h"
#include "leat/result_parts.h"

namespace leat::exec::test {

inline constexpr float kOffsetX = -8, kOffsetY = 4, kScale = 2;

struct Output {
  std::string name;
  std::vector<std::int64_t> shape;  // with the batch
  std::vector<float> values;
  bool whole = false;  // no batch
};

struct Outcome {
  bool ok = false;
  std::string error;
  std::vector<std::byte> slot;
  Answered answered;
  const leat_result& head() const { return *reinterpret_cast<const leat_result*>(slot.data()); }
  leat_part_view part(std::uint32_t kind) const {
    leat_part_view view;
    (void)leat_find_part(&head(), slot.size(), kind, nullptr, &view);
    return view;
  }
  // "x0 y0 x1 y1 score class" of each box, rounded: what tells two readings apart.
  std::string text() const {
    if (!ok) return "refused";
    std::string out;
    for (std::uint32_t i = 0; i < head().detection_count; ++i) {
      const leat_detection& d = head().detections[i];
      char line[128];
      std::snprintf(line, sizeof line, "%.3f %.3f %.3f %.3f %.4f %d;", d.x0, d.y0, d.x1, d.y1, d.score, d.class_id);
      out += line;
    }
    return out;
  }
};

inline Outcome answer(const std::string& line, const std::vector<Output>& outputs) {
  Outcome out;
  const auto spec = parse_postprocess(line);
  if (!spec) return out.error = spec.error(), out;
  std::vector<leat_tensor> tensors;
  for (const Output& o : outputs) {
    leat_tensor t{};
    t.data = const_cast<float*>(o.values.data());
    t.bytes = o.values.size() * sizeof(float);
    t.rank = static_cast<std::uint32_t>(o.shape.size());
    std::copy(o.shape.begin(), o.shape.end(), t.shape);
    t.flags = o.whole ? LEAT_TENSOR_UNBATCHED : 0;
    t.name = o.name.c_str();
    tensors.push_back(t);
  }
  auto opened = Postprocessor::open(*spec, tensors, {}, 0, 64, 64);
  if (!opened) return out.error = opened.error(), out;
  std::uint64_t at = LEAT_PAYLOAD_OFFSET;
  std::vector<leat_part> parts;
  for (const PartSpec& need : opened->parts()) {
    parts.push_back(entry_of(need, 0, false, 1));
    parts.back().offset = at;
    at += round_part(need.bytes + need.tail);
  }
  out.slot.resize(at);
  auto* const head = reinterpret_cast<leat_result*>(out.slot.data());
  head->part_count = static_cast<std::uint32_t>(parts.size());
  std::memcpy(out.slot.data() + LEAT_PARTS_OFFSET, parts.data(), parts.size() * sizeof(leat_part));
  Placement placement;
  placement.offset_x = kOffsetX, placement.offset_y = kOffsetY, placement.scale_x = placement.scale_y = kScale;
  FrameView frame;
  frame.width = frame.height = 128;
  out.answered = opened->run(tensors, 0, placement, frame, -1, head, parts_of(head, 0));
  out.ok = true;
  return out;
}

inline constexpr std::size_t kCells = 64 + 16 + 4;  // strides 8, 16, 32 of 64 x 64

// One object at (30, 26), 20 x 12, class 1 of 3, score .9; a worse copy that suppression takes; nothing else.
inline std::vector<Output> yolo8() {
  std::vector<float> v(7 * kCells);
  const auto put = [&](std::size_t i, float cx, float score) {
    v[i] = cx, v[kCells + i] = 26, v[2 * kCells + i] = 20, v[3 * kCells + i] = 12, v[5 * kCells + i] = score;
  };
  put(40, 30, 0.9F), put(41, 31, 0.8F);
  return {{"output0", {1, 7, kCells}, v}};
}
inline std::vector<Output> yolo5(bool raw) {
  std::vector<float> v(kCells * 8);
  float* const row = v.data() + 8 * (64 + 5);  // stride 16: cell (1, 1)
  row[0] = raw ? 30.0F / 16 - 1 : 30, row[1] = raw ? 26.0F / 16 - 1 : 26;
  row[2] = raw ? std::log(20.0F / 16) : 20, row[3] = raw ? std::log(12.0F / 16) : 12;
  row[4] = 1, row[6] = 0.9F;
  return {{"output", {1, kCells, 8}, v}};
}
inline std::vector<Output> end2end() {
  std::vector<float> v(300 * 6);
  const float row[] = {20, 20, 40, 32, 0.9F, 1};
  std::copy(std::begin(row), std::end(row), v.begin());
  return {{"output0", {1, 300, 6}, v}};
}
inline std::vector<Output> batched7() { return {{"output", {1, 7}, {0, 20, 20, 40, 32, 1, 0.9F}, true}}; }
inline std::vector<Output> ssd() {
  std::vector<float> boxes(400), scores(100), classes(100);
  boxes[0] = 20 / 64.0F, boxes[1] = 20 / 64.0F, boxes[2] = 32 / 64.0F, boxes[3] = 40 / 64.0F;
  scores[0] = 0.9F, classes[0] = 2;
  return {{"num_detections", {1}, {1}},
          {"detection_boxes", {1, 100, 4}, boxes},
          {"detection_scores", {1, 100}, scores},
          {"detection_classes", {1, 100}, classes}};
}
inline std::vector<Output> torchvision() {
  return {{"boxes", {1, 4}, {20, 20, 40, 32}, true}, {"scores", {1}, {0.9F}, true}, {"labels", {1}, {1}, true}};
}
inline std::vector<Output> mmdet() {
  return {{"dets", {1, 2, 5}, {20, 20, 40, 32, 0.9F, 0, 0, 0, 0, 0}}, {"labels", {1, 2}, {1, 0}}};
}
inline std::vector<Output> detr(bool softmax) {
  std::vector<float> logits(300 * 4, -9), boxes(300 * 4, 0.1F);
  for (std::size_t i = 0; i < 300; ++i) logits[4 * i + 3] = softmax ? 9 : -9;
  // softmax: e^v / (e^v + 2 e^-9 + e^0) = .9 at v = ln 9 but for the tiny rest
  logits[1] = std::log(9.0F), logits[3] = softmax ? 0 : -9;
  const float box[] = {30 / 64.0F, 26 / 64.0F, 20 / 64.0F, 12 / 64.0F};
  std::copy(std::begin(box), std::end(box), boxes.begin());
  return {{"logits", {1, 300, 4}, logits}, {"pred_boxes", {1, 300, 4}, boxes}};
}
inline std::vector<Output> scrfd() {
  std::vector<Output> out;
  for (const int what : {1, 4, 10})
    for (const int stride : {8, 16, 32}) {
      const auto rows = static_cast<std::size_t>(2 * (64 / stride) * (64 / stride));
      std::vector<float> v(rows * static_cast<std::size_t>(what));
      if (stride == 16) {  // second anchor of cell (2, 1): corner (32, 16)
        const std::size_t i = 2 * (1 * 4 + 2) + 1;
        if (what == 1) v[i] = 0.9F;
        const float box[] = {12 / 16.0F, -4 / 16.0F, 8 / 16.0F, 16 / 16.0F};
        if (what == 4) std::copy(std::begin(box), std::end(box), v.begin() + static_cast<std::ptrdiff_t>(4 * i));
        if (what == 10) v[10 * i] = -0.5F, v[10 * i + 1] = 0.25F;
      }
      out.push_back({std::to_string(400 + out.size()), {static_cast<std::int64_t>(rows), what}, v, true});
    }
  return out;
}
inline std::vector<Output> yunet() {
  std::vector<Output> out;
  for (const char* what : {"cls", "obj", "bbox", "kps"})
    for (const int stride : {8, 16, 32}) {
      const std::int64_t rows = (64 / stride) * (64 / stride), n = *what == 'b' ? 4 : *what == 'k' ? 10 : 1;
      std::vector<float> v(static_cast<std::size_t>(rows * n));
      if (stride == 16) {  // cell (1, 1)
        if (n == 1) v[5] = *what == 'c' ? 1.0F : 0.81F;
        const float box[] = {30.0F / 16 - 1, 26.0F / 16 - 1, std::log(20.0F / 16), std::log(12.0F / 16)};
        if (n == 4) std::copy(std::begin(box), std::end(box), v.begin() + 20);
        if (n == 10) v[50] = 0.5F, v[51] = 0.25F;
      }
      out.push_back({std::string(what) + "_" + std::to_string(stride), {1, rows, n}, v});
    }
  return out;
}

struct Family {
  const char* name;
  std::string words;
  std::vector<Output> outputs;
};
inline std::vector<Family> families() {
  return {{"YOLOv8 11 12 v9", "boxes layout=yolo8", yolo8()},
          {"YOLOv5 v7 v6", "boxes layout=yolo5", yolo5(false)},
          {"YOLOX", "boxes layout=yolox", yolo5(true)},
          {"YOLOv10 26 end2end", "boxes columns=x0,y0,x1,y1,s,c", end2end()},
          {"v7 v9 end2end", "boxes columns=b,x0,y0,x1,y1,c,s", batched7()},
          {"SSD (TF)", "boxes layout=split unit=one order=yxyx first=1", ssd()},
          {"torchvision", "boxes layout=split", torchvision()},
          {"mmdet", "boxes layout=split score=0.3", mmdet()},
          {"DETR", "boxes layout=query act=softmax", detr(true)},
          {"RF-DETR", "boxes layout=query act=sigmoid", detr(false)},
          {"SCRFD", "boxes layout=levels", scrfd()},
          {"YuNet", "boxes layout=levels score=0.6", yunet()}};
}

}  // namespace leat::exec::test
