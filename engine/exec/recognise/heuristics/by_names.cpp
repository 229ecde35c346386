#include <algorithm>

#include "engine/exec/recognise/heuristics/heuristics.h"

namespace leat::exec {
namespace {

bool has(const ModelFacts& f, std::initializer_list<const char*> outputs) {
  return std::all_of(outputs.begin(), outputs.end(), [&](const char* name) { return f.output(name) != nullptr; });
}

bool takes_bytes(const ModelFacts& f) { return f.picture() != nullptr && f.picture()->dtype == LEAT_U8; }

// The transformer that answers `logits` and `pred_boxes`: by what a file calls it, else by its number of queries.
Heuristic detr(const ModelFacts& f, const std::string& architecture) {
  if (!has(f, {"logits", "pred_boxes"})) return {};
  const ModelPort &logits = *f.output("logits"), &boxes = *f.output("pred_boxes");
  Heuristic s{.seen = "outputs logits and pred_boxes (DETR)", .likely = kPillowWords};
  if (f.input("pixel_mask") != nullptr) s.likely += " feed.pixel_mask=ones";
  const auto named = [&](const char* name) { return architecture.starts_with(name); };
  // The followers refine reference points, which takes a logarithm; Table Transformer asks 15 or 125 questions.
  const std::int64_t queries = boxes.dim(-2);
  const bool first_kind = !f.uses("Log") && (queries == 15 || queries == 100 || queries == 125);
  const bool softmax =
      named("Detr") || named("Yolos") || named("TableTransformer") || (architecture.empty() && first_kind);
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

// mmdet's detectors answer alike and want their pictures otherwise.
Heuristic mmdet(const ModelFacts& f) {
  if (!(has(f, {"dets", "labels"}) && f.output("dets")->dim(-1) == 5)) return {};
  Heuristic s{.seen = "outputs dets [k, 5] and labels [k] (mmdet)", .post = "boxes layout=split score=0.3"};
  if (f.uses("RoiAlign") || f.uses("MMCVRoiAlign")) {
    s.seen = "outputs dets [k, 5] and labels [k] of two stages (mmdet's R-CNN)";
    s.likely = "letterbox at=topleft rgb norm=imagenet pad=0";
    return s;
  }
  s.likely =
      "letterbox at=topleft bgr mean=103.53/255,116.28/255,123.675/255 std=57.375/255,57.12/255,58.395/255 pad=114/255";
  s.doubt =
      "RTMDet wants that; YOLOX in mmdet \"letterbox at=topleft bgr norm=raw pad=114/255\", RetinaNet, FCOS and others "
      "\"letterbox at=topleft rgb norm=imagenet pad=0\"";
  return s;
}

// RT-DETR and its kin tell their boxes in the size that they are given.
Heuristic rt_detr(const ModelFacts& f) {
  if (f.input("orig_target_sizes") == nullptr) return {};
  constexpr std::int64_t kPatch = 14;  // the least side of a vision transformer's first convolution
  const std::string unit = "stretch resize=antialias rgb norm=unit", feed = " feed.orig_target_sizes=wh";
  Heuristic s{.seen = "input orig_target_sizes (RT-DETR, D-FINE, DEIM)", .post = "boxes layout=split score=0.5"};
  if (f.stem > 0 && f.stem < kPatch) {
    s.pre = unit + feed;
    return s;
  }
  s.likely = (f.stem == 0 ? unit : kPillowWords) + feed;
  s.doubt = "RT-DETR, D-FINE and DEIM want norm=unit; DEIMv2 with a DINOv3 backbone wants norm=imagenet";
  return s;
}

// Paddle's detectors with their own suppression; what else they are given tells their kind apart.
Heuristic paddle(const ModelFacts& f) {
  if (!(f.input("scale_factor") != nullptr && f.outputs.size() >= 2 && f.outputs[0].rank() == 2)) return {};
  const std::int64_t columns = f.outputs[0].dim(1);
  const bool sized = f.input("im_shape") != nullptr;
  return {.seen = std::string("input scale_factor") + (sized ? " and im_shape" : "") + " (PaddleDetection)",
          .post = std::string("boxes columns=c,s,x0,y0,x1,y1") + (columns == 7   ? ",-"
                                                                  : columns == 8 ? ",-,-"
                                                                                 : ""),
          .likely = std::string(sized ? "stretch rgb norm=unit" : kImagenetWords) + " feed.scale_factor=ones" +
                    (sized ? " feed.im_shape=hw" : ""),
          .doubt = sized ? "RT-DETR and PP-DocLayout want that; YOLOv3 wants norm=imagenet; inference.yml says it"
                         : "PicoDet and PP-YOLOE want that; PP-YOLOE+ wants norm=unit; inference.yml says it"};
}

// Its authors publish files with decoded boxes and files without, of the same names and shapes: only decoding takes an
// exponential.
Heuristic ultraface(const ModelFacts& f) {
  if (!(has(f, {"boxes", "scores"}) && f.output("boxes")->dim(-1) == 4 &&
        (f.output("scores")->dim(-1) == 2 || f.output("scores")->dim(-1) == 3)))
    return {};
  const std::int64_t classes = f.output("scores")->dim(-1) - 1;
  const bool decoded = f.uses("Exp");
  Heuristic s{.seen = std::string("outputs boxes and scores [k, ") + std::to_string(classes + 1) +
                      (decoded ? "] (UltraFace)" : "], relative to prior boxes (UltraFace)"),
              .post = decoded ? "boxes layout=query order=xyxy first=1 score=0.65 iou=0.4"
                              : "boxes layout=priors set=ultraface score=0.65 iou=0.4",
              .likely = "stretch rgb mean=127/255 std=128/255",
              .classes = classes};
  const auto scores = static_cast<std::size_t>(f.output("scores") - f.outputs.data());
  if (f.last(scores) != "Softmax" && !decoded) s.post += " act=softmax";
  return s;
}

Heuristic yunet(const ModelFacts& f) {
  if (!has(f, {"cls_8", "bbox_32"})) return {};
  return {.seen = "outputs cls_8 .. kps_32 (YuNet)",
          .post = "boxes layout=levels score=0.6 iou=0.3",
          .pre = "letterbox at=topleft bgr norm=raw pad=0"};
}

Heuristic rtmpose(const ModelFacts& f) {
  if (!has(f, {"simcc_x", "simcc_y"})) return {};
  return {.seen = "outputs simcc_x and simcc_y (RTMPose)",
          .post = "points simcc",
          .likely = "stretch crop=0.125 aspect rgb norm=imagenet"};
}

Heuristic tensorflow(const ModelFacts& f) {
  if (!has(f, {"detection_boxes", "detection_scores"})) return {};
  return {.seen = "outputs detection_boxes and detection_scores (TensorFlow)",
          .post = "boxes layout=split unit=one order=yxyx first=1",
          .pre = takes_bytes(f) ? "stretch rgb norm=raw" : "",
          .likely = "stretch rgb norm=raw"};
}

Heuristic yolo_with_suppression(const ModelFacts& f) {
  if (!has(f, {"det_boxes", "det_scores", "det_classes"})) return {};
  return {.seen = "outputs det_boxes, det_scores and det_classes (YOLOv6 or v7 with its own suppression)",
          .post = "boxes layout=split",
          .likely = kLetterboxWords};
}

Heuristic yolo_nas(const ModelFacts& f) {
  if (!has(f, {"pred_boxes", "pred_scores", "pred_classes"})) return {};
  return {.seen = "outputs pred_boxes, pred_scores and pred_classes (YOLO-NAS)",
          .post = "boxes layout=split",
          .likely = takes_bytes(f) ? "letterbox rgb norm=raw pad=114/255" : kLetterboxWords};
}

Heuristic rf_detr(const ModelFacts& f) {
  if (!(has(f, {"dets", "labels"}) && f.output("dets")->dim(-1) == 4 && !whole(*f.output("labels")))) return {};
  return {.seen = "outputs dets [k, 4] and labels [k, C] (RF-DETR)",
          .post = "boxes layout=query act=sigmoid score=0.5",
          .pre = kPillowWords,
          .classes = f.output("labels")->dim(-1)};
}

Heuristic torchvision(const ModelFacts& f) {
  if (!(has(f, {"boxes", "scores", "labels"}) && f.picture() != nullptr && f.picture()->rank() == 3)) return {};
  return {.seen = "outputs boxes, scores and labels (torchvision)",
          .post = "boxes layout=split score=0.5",
          .likely = "stretch rgb norm=unit"};
}

Heuristic efficientdet(const ModelFacts& f) {
  if (!(has(f, {"detections"}) && f.output("detections")->dim(-1) == 7 && f.nhwc())) return {};
  return {.seen = "output detections [k, 7] of an NHWC input (EfficientDet)",
          .post = "boxes columns=b,y0,x0,y1,x1,s,c first=1",
          .likely = "letterbox at=topleft rgb norm=raw pad=0"};
}

Heuristic retinaface(const ModelFacts& f) {
  if (!has(f, {"loc", "conf", "landms"})) return {};
  const std::string size = f.width() > 0 && f.height() > 0 ? "" : " size=640x640";  // any; its authors' own test's
  return {.seen = "outputs loc, conf and landms (RetinaFace)",
          .post = "boxes layout=priors set=retinaface score=0.5 iou=0.4",
          .likely = "letterbox at=topleft bgr mean=104/255,117/255,123/255 std=1/255 pad=0" + size,
          .classes = f.output("conf")->dim(-1) - 1};
}

Heuristic depth(const ModelFacts& f) {
  if (!has(f, {"predicted_depth"})) return {};
  return {.seen = "output predicted_depth",
          .post = "map value",
          .likely = "stretch resize=cubic rgb norm=imagenet",
          .doubt =
              "Depth Anything and DPT with DINOv2 want that; other DPT, ZoeDepth and Depth Pro norm=half, GLPN "
              "norm=unit"};
}

Heuristic clip(const ModelFacts& f) {
  if (!has(f, {"image_embeds"})) return {};
  return {.seen = "output image_embeds (CLIP)",
          .post = f.outputs[0].name == "image_embeds" ? "embedding unit" : "embedding unit from=image_embeds",
          .likely = "cover=1 resize=cubic rgb norm=clip",
          .doubt = "SigLIP wants \"stretch resize=cubic rgb norm=half\""};
}

Heuristic timm(const ModelFacts& f) {
  if (!(f.input("input0") != nullptr && has(f, {"output0"}) && f.output("output0")->rank() == 2)) return {};
  return {.seen = "input0 and output0 (timm)",
          .post = classes_words(f),
          .likely = "cover=0.875 resize=cubic rgb norm=imagenet",
          .classes = f.output("output0")->dim(-1)};
}

Heuristic numbers_of_classes(const ModelFacts& f) {
  if (!(has(f, {"preds"}) && whole(*f.output("preds")))) return {};
  return {.seen = "output preds of whole numbers", .post = "map argmax", .likely = kImagenetWords};
}

Heuristic one_logit(const ModelFacts& f) {
  if (!(has(f, {"logits"}) && f.output("logits")->rank() == 4 && f.output("logits")->dim(1) == 1)) return {};
  return {.seen = "output logits [1, h, w]",
          .ask =
              "text regions (docTR: postprocess = \"lines act=sigmoid threshold=0.3 score=0.1\") and mattes (\"map "
              "matte act=sigmoid\") look like this"};
}

Heuristic logits(const ModelFacts& f) {
  if (!(has(f, {"logits"}) && f.output("logits")->rank() == 4)) return {};
  return {.seen = "output logits [C, h, w]",
          .post = "map argmax",
          .likely = kImagenetWords,
          .classes = f.output("logits")->dim(1)};
}

// The first that knows the model is right: those that ask for more stand before those that ask for less.
constexpr Heuristic (*kByNames[])(const ModelFacts&) = {yunet,
                                                        rtmpose,
                                                        tensorflow,
                                                        yolo_with_suppression,
                                                        yolo_nas,
                                                        rf_detr,
                                                        mmdet,
                                                        rt_detr,
                                                        paddle,
                                                        torchvision,
                                                        ultraface,
                                                        efficientdet,
                                                        retinaface,
                                                        depth,
                                                        clip,
                                                        timm,
                                                        numbers_of_classes,
                                                        one_logit,
                                                        logits};

}  // namespace

Heuristic heuristic_by_names(const ModelFacts& f, const std::string& architecture) {
  if (Heuristic known = detr(f, architecture); !known.seen.empty()) return known;
  for (const auto family : kByNames)
    if (Heuristic known = family(f); !known.seen.empty()) return known;
  return {};
}

}  // namespace leat::exec
