#include "engine/exec/recognise/metadata.h"

#include <cstdlib>

#include "engine/exec/recognise/heuristics/heuristics.h"

namespace leat::exec {
namespace {

// The whole numbers of a Python literal: "[640, 640]", "[17, 3]".
std::vector<std::int64_t> numbers_in(const std::string& text) {
  std::vector<std::int64_t> out;
  for (const char* at = text.c_str(); *at != '\0';) {
    if (*at < '0' || *at > '9') {
      ++at;
      continue;
    }
    char* end = nullptr;
    out.push_back(std::strtoll(at, &end, 10));
    at = end;
  }
  return out;
}

// "{..., 'nms': True, ...}" or the key's own "True".
bool says(const ModelFacts& f, const std::string& key) {
  if (const std::string own = f.meta(key); !own.empty()) return own.starts_with("True");
  return f.meta("args").find("'" + key + "': True") != std::string::npos;
}

std::string ultralytics_words(const ModelFacts& f, const std::string& task, std::size_t classes) {
  const bool done = says(f, "nms") || says(f, "end2end");
  const ModelPort& out = f.outputs[0];
  if (task == "classify") return classes_words(f);
  if (task == "detect" && !done && out.rank() == 3 && out.dim(1) == 300 &&
      out.dim(2) == static_cast<std::int64_t>(4 + classes))
    return "boxes layout=query";  // RT-DETR: one output, parts of the picture, scores already
  if (task == "detect") return done ? "boxes columns=x0,y0,x1,y1,s,c" : "boxes layout=yolo8";
  if (task == "obb") return done ? "boxes columns=cx,cy,w,h,s,c,a" : "boxes layout=yolo8 extra=angle";
  if (task == "pose") {
    const auto shape = numbers_in(f.meta("kpt_shape"));
    if (shape.size() != 2 || shape[1] != 3) return {};
    return std::string(done ? "boxes columns=x0,y0,x1,y1,s,c" : "boxes layout=yolo8") +
           " extra=points points=" + std::to_string(shape[0]);
  }
  if (task == "segment" && f.outputs.size() == 2)
    return std::string(done ? "boxes columns=x0,y0,x1,y1,s,c" : "boxes layout=yolo8") + " extra=mask";
  return {};
}

// Scores of as many classes as there are names, where words and shapes say how many.
Status agree(const ModelFacts& f, const std::string& words, std::size_t names) {
  const ModelPort& out = f.outputs[0];
  std::int64_t classes = -1, extra = 0;
  if (const std::size_t at = words.find("points="); at != std::string::npos)
    extra = 3 * std::atoi(words.c_str() + at + 7);
  if (words.find("extra=angle") != std::string::npos) extra = 1;
  if (words.find("extra=mask") != std::string::npos) extra = f.outputs[1].dim(1);
  if (words.find("layout=yolo8") != std::string::npos && out.dim(1) > 0) classes = out.dim(1) - 4 - extra;
  if (words.starts_with("classes") && out.rank() == 2) classes = out.dim(1);
  if (classes < 0 || classes == static_cast<std::int64_t>(names)) return Done{};
  return Error{f.path + ": its metadata names " + std::to_string(names) + " classes, and its output " + out.text() +
               " has " + std::to_string(classes) + "; export it again, or write postprocess yourself"};
}

}  // namespace

std::string words_for_lines(const ModelFacts& f, const std::string& order) {
  const std::string height = std::to_string(f.height() > 0 ? f.height() : 48);
  return (f.width() < 0 ? "height=" + height + " widths=96,160,240,320,480,640,960 "
                        : "letterbox at=topleft pad=0.5 ") +
         order + " norm=half";
}

FromMetadata read_metadata(const ModelFacts& f) {
  FromMetadata out;
  if (!f.meta("character").empty() && f.outputs.size() == 1 && f.outputs[0].rank() == 3) {
    out.seen = "its metadata (character, as RapidOCR writes it)";
    out.preprocess = words_for_lines(f, "bgr"), out.postprocess = "text ctc keys=model";
    return out;
  }
  out.names = names_in_literal(f.meta("names"));
  const std::string task = f.meta("task");
  if (out.names.empty() || f.outputs.empty()) return out;
  if (task.empty()) {
    if (f.meta("stride").empty()) {
      out.seen = "its metadata";
      return out;
    }
    out.seen = "its metadata (stride and names, as YOLOv5 and v9 write them)";
    out.preprocess = kLetterboxWords;
    if (f.outputs[0].rank() == 2)  // YOLOv5's classifiers; its detectors answer with a third dimension
      out.preprocess = "cover=1 rgb norm=imagenet", out.postprocess = classes_words(f);
    return out;
  }
  out.seen = "its metadata (task " + task + ")";
  out.preprocess = task == "classify" ? "cover=1 resize=antialias rgb norm=unit" : kLetterboxWords;
  const bool open = f.width() < 0 || f.height() < 0;
  if (const auto sides = numbers_in(f.meta("imgsz")); open && sides.size() == 2)  // height, width
    out.preprocess += " size=" + std::to_string(sides[1]) + "x" + std::to_string(sides[0]);
  out.postprocess = ultralytics_words(f, task, out.names.size());
  if (out.postprocess == "boxes layout=query") out.preprocess = "stretch rgb norm=unit";
  if (out.postprocess.empty())
    out.refused =
        f.path + ": its metadata says task " + task +
        ", of which no answer is made here yet; write postprocess = \"tensors\" to have its outputs as they are";
  else if (auto status = agree(f, out.postprocess, out.names.size()); !status)
    out.refused = status.error();
  return out;
}

}  // namespace leat::exec
