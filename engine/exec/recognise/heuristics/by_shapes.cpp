#include <algorithm>

#include "engine/exec/decode/classes/class_names.h"
#include "engine/exec/recognise/heuristics/heuristics.h"

namespace leat::exec {
namespace {

// SCRFD and its like: scores, boxes and maybe points of three or five strides, in this order, known by their widths.
bool levels(const ModelFacts& f) {
  const std::size_t n = f.outputs.size(), kinds = n % 3 == 0 && n > 6 ? 3 : 2, strides = n / kinds;
  if ((n != 6 && n != 9 && n != 10 && n != 15) || strides * kinds != n) return false;
  constexpr std::int64_t kWidths[] = {1, 4, 10};
  for (std::size_t i = 0; i < n; ++i)
    if (f.outputs[i].rank() > 3 || f.outputs[i].dim(-1) != kWidths[i / strides]) return false;
  return true;
}

// PicoDet and its like: scores of four strides, then the bins of four sides.
bool bins(const ModelFacts& f) {
  constexpr std::int64_t kBins = 32;
  if (f.outputs.size() != 8) return false;
  for (std::size_t i = 0; i < 8; ++i)
    if (f.outputs[i].rank() != 3 || f.outputs[i].dim(-1) != (i < 4 ? f.outputs[0].dim(-1) : kBins)) return false;
  return true;
}

Heuristic rows_of_cells(const ModelFacts& f, std::int64_t cells) {
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
                    (f.uses("Exp") ? "with sizes made by exp (YOLOX, decoded)" : "as it is (YOLOX)"),
            .post = f.uses("Exp") ? "boxes layout=yolo5" : "boxes layout=yolox iou=0.45",
            .likely = yolox,
            .classes = out.dim(-1) - 5};
  return {.seen = shape,
          .ask = "YOLOX's (postprocess = \"boxes layout=yolox\", preprocess = \"" + yolox +
                 "\") and YOLOv6's (postprocess = \"boxes layout=yolo5\", preprocess = \"" + kLetterboxWords +
                 "\") look like this; say which it is"};
}

// [4 + C, cells]: what stands behind the boxes can be scores alone, or scores with keypoints, mask coefficients or an
// angle; the tail tells them apart where it can be read: detection joins boxes and scores, the others join that again.
Heuristic columns_of_cells(const ModelFacts& f, std::int64_t cells) {
  const std::int64_t rows = f.outputs[0].dim(1), behind = rows - 4;
  const std::string shape = "an output [4 + C, " + std::to_string(cells) + "]";
  const auto prototypes = std::find_if(f.outputs.begin() + 1, f.outputs.end(), [&](const ModelPort& p) {
    return p.rank() == 4 && p.dim(1) > 1 && p.dim(1) < behind && p.dim(2) == f.height() / 4;
  });
  if (prototypes != f.outputs.end())
    return {.seen = shape + " and prototypes (YOLO seg)",
            .post = "boxes layout=yolo8 extra=mask",
            .likely = kLetterboxWords,
            .classes = behind - prototypes->dim(1)};
  const std::vector<std::string>& joined = f.tails[0].joined;
  const auto joins = [&](const char* what) { return std::find(joined.begin(), joined.end(), what) != joined.end(); };
  const bool plain = (joins("Sigmoid") && !joins("Concat")) ||
                     static_cast<std::int64_t>(names_in_literal(f.meta("names")).size()) == behind;
  if (plain || (!joins("Concat") && (behind - 1) % 3 != 0))
    return {.seen = shape, .post = "boxes layout=yolo8", .likely = kLetterboxWords, .classes = behind};
  const std::string points = std::to_string((behind - 1) / 3);
  return {.seen = shape,
          .ask = std::to_string(behind) + " classes (postprocess = \"boxes layout=yolo8\")" +
                 ((behind - 1) % 3 == 0 ? ", one class with " + points +
                                              " keypoints (\"boxes layout=yolo8 extra=points points=" + points + "\")"
                                        : "") +
                 " and turned boxes of " + std::to_string(behind - 1) +
                 " classes (\"boxes layout=yolo8 extra=angle\") look like this; with each likely preprocess = \"" +
                 kLetterboxWords + "\"",
          .likely = kLetterboxWords};
}

// [3 cells, 5 + C]: of 16 columns five can be a face's points, and behind 117 can be 32 coefficients of masks.
Heuristic rows_of_anchors(const ModelFacts& f, std::int64_t cells) {
  constexpr std::int64_t kFace = 16;
  const std::int64_t columns = f.outputs[0].dim(2);
  const std::string shape = "an output [3 x " + std::to_string(cells) + ", 5 + C]";
  if (f.outputs.size() > 1 && f.outputs[1].rank() == 4 && f.outputs[1].dim(1) < columns - 5 &&
      f.outputs[1].dim(2) == f.height() / 4)
    return {.seen = shape + " and prototypes (YOLOv5 seg)",
            .post = "boxes layout=yolo5 extra=mask",
            .likely = kLetterboxWords,
            .classes = columns - 5 - f.outputs[1].dim(1)};
  const auto named = static_cast<std::int64_t>(names_in_literal(f.meta("names")).size());
  if (columns == kFace && named != columns - 5)
    return {.seen = shape,
            .ask =
                "11 classes (postprocess = \"boxes layout=yolo5\") and faces with five points (YOLOv5-face: \"boxes "
                "layout=yolo5 extra=points points=5 score=0.6 iou=0.5\") look like this; with each likely preprocess "
                "= \"" +
                std::string(kLetterboxWords) + "\"",
            .likely = kLetterboxWords};
  if (f.output("drive_area_seg") != nullptr)
    return {.seen = shape + " beside drive_area_seg (YOLOP)",
            .post = "boxes layout=yolo5",
            .likely = "letterbox rgb norm=imagenet pad=114/255",
            .classes = columns - 5};
  return {.seen = shape, .post = "boxes layout=yolo5", .likely = kLetterboxWords, .classes = columns - 5};
}

bool flat(const ModelPort& p) { return p.rank() == 4 && p.dim(1) == 1 && p.dim(3) != 3; }

// What the rows of the table below look at.
struct Shapes {
  const ModelFacts& f;
  const ModelPort& out;      // the first output
  const ModelPort* picture;  // null: no input is one
  std::int64_t cells, w, h;  // cells: cells_of(f); w, h: of the picture
  bool bytes, alone;         // the picture is uint8; there is one output
};

Heuristic scrfd(const Shapes& s) {
  if (!levels(s.f)) return {};
  return {.seen = std::to_string(s.f.outputs.size()) + " outputs of 1, 4 and 10 columns (SCRFD)",
          .post = "boxes layout=levels score=0.5 iou=0.4",
          .likely = "letterbox at=topleft rgb mean=127.5/255 std=128/255 pad=0"};
}

Heuristic picodet(const Shapes& s) {
  if (!bins(s.f)) return {};
  return {.seen = "8 outputs of scores and bins (PicoDet)",
          .post = "boxes layout=dfl centre=0.5 score=0.4 iou=0.5",
          .likely = kImagenetWords,
          .classes = s.out.dim(-1)};
}

Heuristic faster_rcnn(const Shapes& s) {
  // Boxes, numbers of classes and scores, of a model that takes one picture without a batch.
  const auto count_of = [&](std::size_t rank, bool numbers) {
    return std::count_if(s.f.outputs.begin(), s.f.outputs.end(), [&](const ModelPort& p) {
      return p.rank() == rank && whole(p) == numbers && (rank == 1 || p.dim(-1) == 4);
    });
  };
  if (!(s.picture != nullptr && s.picture->rank() == 3 && count_of(2, false) == 1 && count_of(1, true) == 1 &&
        count_of(1, false) == 1))
    return {};
  return {.seen = "outputs [k, 4], whole numbers [k] and [k] (Faster R-CNN)",
          .post = "boxes layout=split score=0.5",
          .likely = "letterbox at=topleft bgr mean=102.98/255,115.95/255,122.77/255 std=1/255 pad=0"};
}

Heuristic retinanet(const Shapes& s) {
  if (!(s.f.outputs.size() == 10 &&
        std::all_of(s.f.outputs.begin(), s.f.outputs.end(), [](const ModelPort& p) { return p.rank() == 4; })))
    return {};
  return {.seen = "10 outputs of anchors (RetinaNet)",
          .post = "boxes layout=priors set=retinanet score=0.3 iou=0.5",
          .likely = "letterbox at=topleft rgb norm=imagenet pad=0",
          .classes = s.out.dim(1) / 9};
}

// MediaPipe's, whatever a converter called its outputs.
Heuristic blazeface(const Shapes& s) {
  constexpr std::int64_t kBlazeBoxes = 896;
  if (!(s.f.outputs.size() == 2 &&
        std::all_of(s.f.outputs.begin(), s.f.outputs.end(),
                    [](const ModelPort& p) { return p.dim(1) == kBlazeBoxes; }) &&
        std::max(s.out.dim(-1), s.f.outputs[1].dim(-1)) == 16 && std::min(s.out.dim(-1), s.f.outputs[1].dim(-1)) == 1))
    return {};
  return {.seen = "outputs [896, 16] and [896, 1] (BlazeFace)",
          .post = "boxes layout=priors set=blazeface score=0.5 iou=0.3",
          .likely = "letterbox rgb norm=half pad=0",
          .classes = 1};
}

Heuristic cells_of_strides(const Shapes& s) {
  if (!(s.out.rank() == 3 && s.cells > 0)) return {};
  const std::int64_t a = s.out.dim(1), b = s.out.dim(2);
  if (b == s.cells && a > 4) return columns_of_cells(s.f, s.cells);
  if (a == 3 * s.cells && b > 5) return rows_of_anchors(s.f, s.cells);
  if (a == s.cells && b > 5) return rows_of_cells(s.f, s.cells);
  return {};
}

// [300, 6]: end to end, or RT-DETR's boxes and two classes. Only the second samples its features at points.
Heuristic three_hundred(const Shapes& s) {
  if (!(s.out.rank() == 3 && s.out.dim(1) == 300 && s.out.dim(2) == 6)) return {};
  if (s.f.uses("GridSample"))
    return {.seen = "an output [300, 6] of a graph that samples at points (RT-DETR as Ultralytics exports it)",
            .post = "boxes layout=query",
            .likely = "stretch rgb norm=unit",
            .classes = 2};
  return {.seen = "an output [300, 6]", .post = "boxes columns=x0,y0,x1,y1,s,c", .likely = kLetterboxWords};
}

Heuristic yolo_with_suppression(const Shapes& s) {
  if (!(s.out.rank() == 2 && s.out.dim(1) == 7 && s.alone && s.out.dim(0) < 0)) return {};
  return {.seen = std::string("an output [k, 7] of ") +
                  (s.bytes ? "a uint8 picture (YOLO-NAS)" : "a float picture (YOLOv7, v9)"),
          .post = s.bytes ? "boxes columns=b,x0,y0,x1,y1,s,c" : "boxes columns=b,x0,y0,x1,y1,c,s",
          .likely = s.bytes ? "letterbox rgb norm=raw pad=114/255" : kLetterboxWords};
}

Heuristic movenet(const Shapes& s) {
  if (!(s.out.rank() == 4 && s.out.dim(1) == 1 && s.out.dim(2) == 17 && s.out.dim(3) == 3)) return {};
  return {.seen = "an output [1, 17, 3] (MoveNet)",
          .post = "points yxs",
          .pre = s.picture != nullptr && s.picture->dtype == LEAT_I32 ? "letterbox rgb norm=raw pad=0" : "",
          .likely = "letterbox rgb norm=raw pad=0"};
}

Heuristic movenet_of_several(const Shapes& s) {
  if (!(s.out.rank() == 3 && s.out.dim(1) == 6 && s.out.dim(2) == 56)) return {};
  return {.seen = "an output [6, 56] (MoveNet of several people)",
          .ask = "six people at once are not decoded here; write postprocess = \"tensors\" to have them as they are"};
}

// The other outputs may be features, as IS-Net's are.
Heuristic mattes(const Shapes& s) {
  if (!(s.f.outputs.size() >= 6 && flat(s.out))) return {};
  const bool settled = s.f.last(0) == "Sigmoid";
  Heuristic maps{.seen = std::to_string(s.f.outputs.size()) + " outputs, the first [1, h, w]",
                 .likely = kImagenetWords};
  if (settled)
    maps.post = "map matte", maps.doubt = "U2-Net wants that; IS-Net and RMBG want \"stretch rgb mean=0.5 std=1\"";
  else
    maps.ask = "mattes (postprocess = \"map matte\") and edges (DexiNed: \"map matte act=sigmoid\") look like this";
  return maps;
}

Heuristic pictures(const Shapes& s) {
  if (!(s.out.rank() == 4 && s.out.dim(1) == 3 && s.out.dim(3) >= s.w && s.out.dim(2) >= s.h)) return {};
  return {.seen = "an output [3, h, w] not smaller than the picture",
          .ask = "pictures (write postprocess = \"tensors\") and three classes (\"map argmax\") look like this"};
}

Heuristic classes_of_pixels(const Shapes& s) {
  if (!(s.out.rank() == 4 && s.out.dim(1) > 1 && s.w > 0 && s.out.dim(3) == s.w && s.out.dim(2) == s.h)) return {};
  return {.seen = "an output [C, h, w] as large as the picture",
          .post = "map argmax",
          .likely = kImagenetWords,
          .classes = s.out.dim(1)};
}

Heuristic values_of_pixels(const Shapes& s) {
  if (!(s.alone && s.out.rank() == 3 && s.w > 0 && s.out.dim(2) == s.w && s.out.dim(1) == s.h)) return {};
  return {.seen = "an output [h, w] as large as the picture",
          .post = whole(s.out) ? "map argmax" : "map value",
          .likely = kImagenetWords};
}

Heuristic classes_of_one(const Shapes& s) {
  if (!(s.alone && s.out.rank() == 4 && s.out.dim(1) > 3 && s.out.dim(2) == 1 && s.out.dim(3) == 1)) return {};
  return {
      .seen = "one output [C, 1, 1]", .post = classes_words(s.f), .likely = kClassifierWords, .classes = s.out.dim(1)};
}

Heuristic numbers(const Shapes& s) {
  if (!(s.alone && s.out.rank() == 2)) return {};
  const std::int64_t classes = s.out.dim(1);
  if (!s.bytes && (s.f.last(0) == "Softmax" || classes == 1000))
    return {.seen = s.f.last(0) == "Softmax" ? "one output [C] that ends in a softmax" : "one output [1000]",
            .post = classes_words(s.f),
            .likely = s.f.nhwc() ? "stretch rgb norm=half" : kClassifierWords,
            .classes = classes};
  if (s.bytes && s.f.nhwc())
    return {.seen = "one output of a uint8 NHWC picture",
            .ask = "number plates (postprocess = \"text slots keys=FILE\") and classes (\"classes\") look like this"};
  return {.seen = "one output [" + std::to_string(classes) + "]",
          .ask =
              "scores of classes (postprocess = \"classes\"), vectors (\"embedding unit\") and places of points "
              "(\"points xy\") look like this"};
}

Heuristic one_map(const Shapes& s) {
  const bool channel_last = s.out.rank() == 4 && s.out.dim(3) == 1 && s.out.dim(1) > 1 && s.out.dim(2) > 1;
  if (!(s.alone && (flat(s.out) || channel_last))) return {};
  return {
      .seen = "one output [1, h, w]",
      .ask = std::string("mattes (postprocess = \"map matte\")") +
             (channel_last ? " and depth (\"map value\")" : ", depth (\"map value\") and text regions (\"lines\")") +
             " look like this"};
}

Heuristic small_maps(const Shapes& s) {
  if (!(s.alone && s.out.rank() == 4 && s.out.dim(1) > 1)) return {};
  return {.seen = "one output [C, h, w] smaller than the picture",
          .ask =
              "heat maps of keypoints (postprocess = \"points heatmap\") and classes of places (\"map argmax\") look "
              "like this"};
}

Heuristic lines(const Shapes& s) {
  if (!(s.alone && s.out.rank() == 3 && (s.out.dim(2) > 30 || (s.out.dim(1) == 1 && s.out.dim(2) > 10)))) return {};
  return {.seen = "one output " + s.out.text(),
          .ask =
              "lines of text (postprocess = \"text ctc keys=FILE\"; \"text ctc keys=FILE blank=last\" for docTR and "
              "LPRNet, whose blank is the last class) look like this; FILE has one character a line"};
}

Heuristic several_heads(const Shapes& s) {
  if (!(!s.alone && std::all_of(s.f.outputs.begin(), s.f.outputs.end(),
                                [](const ModelPort& p) { return p.rank() == 2 && p.dim(1) > 1 && !whole(p); })))
    return {};
  return {.seen = std::to_string(s.f.outputs.size()) + " outputs [C]",
          .ask = "several answers about one picture (postprocess = \"heads\") look like this"};
}

// The first that knows the model is right: those that ask for more stand before those that ask for less.
constexpr Heuristic (*kByShapes[])(const Shapes&) = {scrfd,
                                                     picodet,
                                                     faster_rcnn,
                                                     retinanet,
                                                     blazeface,
                                                     cells_of_strides,
                                                     three_hundred,
                                                     yolo_with_suppression,
                                                     movenet,
                                                     movenet_of_several,
                                                     mattes,
                                                     pictures,
                                                     classes_of_pixels,
                                                     values_of_pixels,
                                                     classes_of_one,
                                                     numbers,
                                                     one_map,
                                                     small_maps,
                                                     lines,
                                                     several_heads};

}  // namespace

Heuristic heuristic_by_shapes(const ModelFacts& f) {
  if (f.outputs.empty()) return {};
  const ModelPort* const picture = f.picture();
  const Shapes shapes{.f = f,
                      .out = f.outputs[0],
                      .picture = picture,
                      .cells = cells_of(f),
                      .w = f.width(),
                      .h = f.height(),
                      .bytes = picture != nullptr && picture->dtype == LEAT_U8,
                      .alone = f.outputs.size() == 1};
  for (const auto family : kByShapes)
    if (Heuristic known = family(shapes); !known.seen.empty()) return known;
  return {};
}

}  // namespace leat::exec
