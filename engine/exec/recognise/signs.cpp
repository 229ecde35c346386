#include "engine/exec/recognise/signs.h"

#include <algorithm>

namespace leat::exec {
namespace {

constexpr const char* kImagenet = "stretch rgb norm=imagenet";
constexpr const char* kClassifier = "cover=0.875 rgb norm=imagenet";

bool whole(const ModelPort& p) { return p.dtype == LEAT_I64 || p.dtype == LEAT_I32; }

// act= of a classifier whose graph has made scores itself.
std::string classes_words(const ModelFacts& f) {
  const std::string& last = f.last.empty() ? "" : f.last[0];
  return last == "Softmax" ? "classes act=none" : last == "Sigmoid" ? "classes act=none" : "classes";
}

bool has(const ModelFacts& f, std::initializer_list<const char*> outputs) {
  return std::all_of(outputs.begin(), outputs.end(), [&](const char* name) { return f.output(name) != nullptr; });
}

// The transformer that answers `logits` and `pred_boxes`: by what a file calls it, else by its number of queries.
Sign detr(const ModelFacts& f, const std::string& architecture) {
  const ModelPort &logits = *f.output("logits"), &boxes = *f.output("pred_boxes");
  Sign s{.seen = "outputs logits and pred_boxes (DETR)", .likely = kImagenet};
  if (f.input("pixel_mask") != nullptr) s.likely += " feed.pixel_mask=ones";
  const auto named = [&](const char* name) { return architecture.starts_with(name); };
  const bool softmax =
      named("Detr") || named("Yolos") || named("TableTransformer") || (architecture.empty() && boxes.dim(-2) == 100);
  if (!softmax && architecture.empty()) {
    s.ask =
        "DETR's scores come from a softmax, those of its followers (RT-DETR, Deformable DETR) from a sigmoid; write "
        "postprocess = \"boxes layout=query act=softmax score=0.7\" or \"boxes layout=query act=sigmoid score=0.5\"";
    return s;
  }
  s.post = softmax ? "boxes layout=query act=softmax score=0.7" : "boxes layout=query act=sigmoid score=0.5";
  if (logits.dim(-1) > 0) s.classes = logits.dim(-1) - (softmax ? 1 : 0);
  return s;
}

Sign by_names(const ModelFacts& f, const std::string& architecture) {
  const ModelPort* const picture = f.picture();
  const bool bytes = picture != nullptr && picture->dtype == LEAT_U8;
  if (has(f, {"cls_8", "bbox_32"}))
    return {.seen = "outputs cls_8 .. kps_32 (YuNet)",
            .post = "boxes layout=levels score=0.6 overlap=0.3",
            .pre = "letterbox at=topleft bgr norm=raw pad=0"};
  if (has(f, {"simcc_x", "simcc_y"}))
    return {.seen = "outputs simcc_x and simcc_y (RTMPose)",
            .post = "points simcc",
            .likely = "stretch crop=0.125 aspect rgb norm=imagenet"};
  if (has(f, {"detection_boxes", "detection_scores"}))
    return {.seen = "outputs detection_boxes and detection_scores (TensorFlow)",
            .post = "boxes layout=split unit=one order=yxyx first=1",
            .pre = bytes ? "stretch rgb norm=raw" : "",
            .likely = "stretch rgb norm=raw"};
  if (has(f, {"det_boxes", "det_scores", "det_classes"}))
    return {.seen = "outputs det_boxes, det_scores and det_classes (YOLOv6 or v7 with its own suppression)",
            .post = "boxes layout=split",
            .likely = kLetterboxWords};
  if (has(f, {"pred_boxes", "pred_scores", "pred_classes"}))
    return {.seen = "outputs pred_boxes, pred_scores and pred_classes (YOLO-NAS)",
            .post = "boxes layout=split",
            .likely = bytes ? "letterbox rgb norm=raw pad=114/255" : kLetterboxWords};
  if (has(f, {"logits", "pred_boxes"})) return detr(f, architecture);
  if (has(f, {"dets", "labels"}) && f.output("dets")->dim(-1) == 4 && !whole(*f.output("labels")))
    return {.seen = "outputs dets [k, 4] and labels [k, C] (RF-DETR)",
            .post = "boxes layout=query act=sigmoid score=0.5",
            .pre = kImagenet,
            .classes = f.output("labels")->dim(-1)};
  if (has(f, {"dets", "labels"}) && f.output("dets")->dim(-1) == 5)
    return {.seen = "outputs dets [k, 5] and labels [k] (mmdet)",
            .post = "boxes layout=split score=0.3",
            .likely = "letterbox at=topleft rgb norm=imagenet pad=0"};
  if (f.input("orig_target_sizes") != nullptr)
    return {.seen = "input orig_target_sizes (RT-DETR, D-FINE)",
            .post = "boxes layout=split score=0.5",
            .pre = "stretch rgb norm=unit feed.orig_target_sizes=wh"};
  if (has(f, {"boxes", "scores", "labels"}))
    return {.seen = "outputs boxes, scores and labels (torchvision)",
            .post = "boxes layout=split score=0.5",
            .likely = "stretch rgb norm=unit"};
  if (has(f, {"boxes", "scores"}) && f.output("scores")->dim(-1) == 2)
    return {.seen = "outputs boxes and scores [k, 2] (UltraFace)",
            .post = "boxes layout=query order=xyxy first=1 score=0.65 overlap=0.4",
            .likely = "stretch rgb mean=127/255 std=128/255",
            .classes = 1};
  if (has(f, {"detections"}) && f.output("detections")->dim(-1) == 7 && f.nhwc())
    return {.seen = "output detections [k, 7] of an NHWC input (EfficientDet)",
            .post = "boxes columns=b,y0,x0,y1,x1,s,c first=1",
            .likely = "letterbox at=topleft rgb norm=raw pad=0"};
  if (has(f, {"loc", "conf", "landms"})) {
    const std::string size = f.width() > 0 && f.height() > 0 ? "" : " size=640x640";  // any; its authors' own test's
    return {.seen = "outputs loc, conf and landms (RetinaFace)",
            .post = "boxes layout=priors set=retinaface score=0.5 overlap=0.4",
            .likely = "letterbox at=topleft bgr mean=104/255,117/255,123/255 std=1/255 pad=0" + size,
            .classes = f.output("conf")->dim(-1) - 1};
  }
  if (has(f, {"predicted_depth"})) return {.seen = "output predicted_depth", .post = "map value", .likely = kImagenet};
  if (has(f, {"image_embeds"}))
    return {.seen = "output image_embeds (CLIP)", .post = "embedding unit", .likely = "cover=1 rgb norm=clip"};
  if (f.input("input0") != nullptr && has(f, {"output0"}) && f.output("output0")->rank() == 2)
    return {.seen = "input0 and output0 (timm)",
            .post = classes_words(f),
            .likely = kClassifier,
            .classes = f.output("output0")->dim(-1)};
  if (has(f, {"preds"}) && whole(*f.output("preds")))
    return {.seen = "output preds of whole numbers", .post = "map argmax", .likely = kImagenet};
  if (has(f, {"logits"}) && f.output("logits")->rank() == 4)
    return {.seen = "output logits [C, h, w]",
            .post = "map argmax",
            .likely = kImagenet,
            .classes = f.output("logits")->dim(1)};
  return {};
}

// SCRFD and its like: scores, boxes and maybe points of three or five strides, in this order, known by their widths.
bool levels(const ModelFacts& f) {
  const std::size_t n = f.outputs.size(), kinds = n % 3 == 0 && n > 6 ? 3 : 2, strides = n / kinds;
  if ((n != 6 && n != 9 && n != 10 && n != 15) || strides * kinds != n) return false;
  constexpr std::int64_t kWidths[] = {1, 4, 10};
  for (std::size_t i = 0; i < n; ++i)
    if (f.outputs[i].rank() > 3 || f.outputs[i].dim(-1) != kWidths[i / strides]) return false;
  return true;
}

Sign rows_of_cells(const ModelFacts& f, std::int64_t cells) {
  const ModelPort& out = f.outputs[0];
  const std::string shape = "an output [" + std::to_string(cells) + ", 5 + C]";
  const std::string yolox = "letterbox at=topleft bgr norm=raw pad=114/255";
  if (out.name == "outputs")
    return {.seen = shape + " named outputs (YOLOv6)",
            .post = "boxes layout=yolo5",
            .likely = kLetterboxWords,
            .classes = out.dim(-1) - 5};
  if (out.name == "output")
    return {.seen = shape + " named output, " +
                    (f.operations.contains("Exp") ? "with sizes made by exp (YOLOX, decoded)" : "as it is (YOLOX)"),
            .post = f.operations.contains("Exp") ? "boxes layout=yolo5" : "boxes layout=yolox overlap=0.45",
            .likely = yolox,
            .classes = out.dim(-1) - 5};
  return {.seen = shape,
          .ask = "YOLOX's (postprocess = \"boxes layout=yolox\", preprocess = \"" + yolox +
                 "\") and YOLOv6's (postprocess = \"boxes layout=yolo5\", preprocess = \"" + kLetterboxWords +
                 "\") look like this; say which it is"};
}

Sign by_shapes(const ModelFacts& f) {
  if (f.outputs.empty()) return {};
  const ModelPort& out = f.outputs[0];
  const ModelPort* const picture = f.picture();
  const std::int64_t cells = cells_of(f), w = f.width(), h = f.height();
  const bool bytes = picture != nullptr && picture->dtype == LEAT_U8, alone = f.outputs.size() == 1;
  if (levels(f))
    return {.seen = std::to_string(f.outputs.size()) + " outputs of 1, 4 and 10 columns (SCRFD)",
            .post = "boxes layout=levels score=0.5 overlap=0.4",
            .likely = "letterbox at=topleft rgb mean=127.5/255 std=128/255 pad=0"};
  // Boxes, numbers of classes and scores, of a model that takes one picture without a batch.
  const auto count_of = [&](std::size_t rank, bool numbers) {
    return std::count_if(f.outputs.begin(), f.outputs.end(), [&](const ModelPort& p) {
      return p.rank() == rank && whole(p) == numbers && (rank == 1 || p.dim(-1) == 4);
    });
  };
  if (picture != nullptr && picture->rank() == 3 && count_of(2, false) == 1 && count_of(1, true) == 1 &&
      count_of(1, false) == 1)
    return {.seen = "outputs [k, 4], whole numbers [k] and [k] (Faster R-CNN)",
            .post = "boxes layout=split score=0.5",
            .likely = "letterbox at=topleft bgr mean=102.98/255,115.95/255,122.77/255 std=1/255 pad=0"};
  if (f.outputs.size() == 10 &&
      std::all_of(f.outputs.begin(), f.outputs.end(), [](const ModelPort& p) { return p.rank() == 4; }))
    return {.seen = "10 outputs of anchors (RetinaNet)",
            .post = "boxes layout=priors set=retinanet score=0.3 overlap=0.5",
            .likely = "letterbox at=topleft rgb norm=imagenet pad=0",
            .classes = out.dim(1) / 9};
  // MediaPipe's, whatever a converter called its outputs.
  constexpr std::int64_t kBlazeBoxes = 896;
  if (f.outputs.size() == 2 &&
      std::all_of(f.outputs.begin(), f.outputs.end(), [](const ModelPort& p) { return p.dim(1) == kBlazeBoxes; }) &&
      std::max(out.dim(-1), f.outputs[1].dim(-1)) == 16 && std::min(out.dim(-1), f.outputs[1].dim(-1)) == 1)
    return {.seen = "outputs [896, 16] and [896, 1] (BlazeFace)",
            .post = "boxes layout=priors set=blazeface score=0.5 overlap=0.3",
            .likely = "letterbox rgb norm=half pad=0",
            .classes = 1};
  if (out.rank() == 3 && cells > 0) {
    const std::int64_t a = out.dim(1), b = out.dim(2);
    if (b == cells && a > 4)
      return {.seen = "an output [4 + C, " + std::to_string(cells) + "]",
              .post = "boxes layout=yolo8",
              .likely = kLetterboxWords,
              .classes = a - 4};
    if (a == 3 * cells && b > 5)
      return {.seen = "an output [3 x " + std::to_string(cells) + ", 5 + C]",
              .post = "boxes layout=yolo5",
              .likely = kLetterboxWords,
              .classes = b - 5};
    if (a == cells && b > 5) return rows_of_cells(f, cells);
  }
  if (out.rank() == 3 && out.dim(1) == 300 && out.dim(2) == 6)
    return {.seen = "an output [300, 6]", .post = "boxes columns=x0,y0,x1,y1,s,c", .likely = kLetterboxWords};
  if (out.rank() == 2 && out.dim(1) == 7 && alone && out.dim(0) < 0)
    return {.seen = std::string("an output [k, 7] of ") +
                    (bytes ? "a uint8 picture (YOLO-NAS)" : "a float picture (YOLOv7, v9)"),
            .post = bytes ? "boxes columns=b,x0,y0,x1,y1,s,c" : "boxes columns=b,x0,y0,x1,y1,c,s",
            .likely = bytes ? "letterbox rgb norm=raw pad=114/255" : kLetterboxWords};
  if (out.rank() == 4 && out.dim(1) == 1 && out.dim(2) == 17 && out.dim(3) == 3)
    return {.seen = "an output [1, 17, 3] (MoveNet)",
            .post = "points yxs",
            .pre = picture != nullptr && picture->dtype == LEAT_I32 ? "letterbox rgb norm=raw pad=0" : "",
            .likely = "letterbox rgb norm=raw pad=0"};
  if (out.rank() == 3 && out.dim(1) == 6 && out.dim(2) == 56)
    return {.seen = "an output [6, 56] (MoveNet of several people)",
            .ask = "six people at once are not decoded here; write postprocess = \"tensors\" to have them as they are"};
  const auto flat = [](const ModelPort& p) { return p.rank() == 4 && p.dim(1) == 1 && p.dim(3) != 3; };
  if (f.outputs.size() >= 6 && std::all_of(f.outputs.begin(), f.outputs.end(), flat))
    return {.seen = std::to_string(f.outputs.size()) + " outputs [1, h, w] (U2Net, ISNet)",
            .post = "map matte",
            .likely = kImagenet};
  if (out.rank() == 4 && out.dim(1) > 1 && w > 0 && out.dim(3) == w && out.dim(2) == h)
    return {.seen = "an output [C, h, w] as large as the picture",
            .post = "map argmax",
            .likely = kImagenet,
            .classes = out.dim(1)};
  if (alone && out.rank() == 3 && w > 0 && out.dim(2) == w && out.dim(1) == h)
    return {.seen = "an output [h, w] as large as the picture",
            .post = whole(out) ? "map argmax" : "map value",
            .likely = kImagenet};
  if (alone && out.rank() == 2 && !bytes && (f.last[0] == "Softmax" || out.dim(1) == 1000))
    return {.seen = f.last[0] == "Softmax" ? "one output [C] that ends in a softmax" : "one output [1000]",
            .post = classes_words(f),
            .likely = f.nhwc() ? "stretch rgb norm=half" : kClassifier,
            .classes = out.dim(1)};
  if (alone && out.rank() == 2 && bytes && f.nhwc())
    return {.seen = "one output of a uint8 NHWC picture",
            .ask = "number plates (postprocess = \"text slots keys=FILE\") and classes (\"classes\") look like this"};
  if (alone && out.rank() == 2)
    return {.seen = "one output [" + std::to_string(out.dim(1)) + "]",
            .ask = "scores of classes (postprocess = \"classes\") and vectors (\"embedding unit\") look like this"};
  if (alone && flat(out))
    return {
        .seen = "one output [1, h, w]",
        .ask =
            "mattes (postprocess = \"map matte\"), depth (\"map value\") and text regions (\"lines\") look like this"};
  if (alone && out.rank() == 4 && out.dim(1) > 1)
    return {.seen = "one output [C, h, w] smaller than the picture",
            .ask =
                "heat maps of keypoints (postprocess = \"points heatmap\") and classes of places (\"map argmax\") look "
                "like this"};
  if (alone && out.rank() == 3 && out.dim(2) > 30)
    return {
        .seen = "one output [T, " + std::to_string(out.dim(2)) + "]",
        .ask = "lines of text (postprocess = \"text ctc keys=FILE\") look like this; FILE has one character a line"};
  return {};
}

}  // namespace

std::int64_t cells_of(const ModelFacts& f) {
  const std::int64_t w = f.width(), h = f.height();
  std::int64_t cells = 0;
  if (w > 0 && h > 0)
    for (const int s : {8, 16, 32}) cells += (w / s) * (h / s);
  return cells;
}

Sign sign_of(const ModelFacts& f, const std::string& architecture) {
  Sign s = by_names(f, architecture);
  if (s.seen.empty()) s = by_shapes(f);
  if (!s.post.empty() || architecture.empty()) return s;
  const auto is = [&](const char* what) { return architecture.find(what) != std::string::npos; };
  const ModelPort out = f.outputs.empty() ? ModelPort() : f.outputs[0];
  if (is("ForImageClassification")) {
    s.post = classes_words(f), s.likely = kClassifier, s.classes = out.dim(-1);
  } else if (is("ForSemanticSegmentation")) {
    s.post = "map argmax", s.likely = kImagenet, s.classes = out.dim(1);
  } else if (is("ForDepthEstimation")) {
    s.post = "map value", s.likely = kImagenet;
  } else {
    return s;
  }
  s.seen = "architecture " + architecture;
  return s;
}

}  // namespace leat::exec
