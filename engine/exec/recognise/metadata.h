// What exporters of the YOLO family write into a model's metadata (Ultralytics: task, names, imgsz, kpt_shape, args;
// YOLOv5 and YOLOv9: stride and names), and RapidOCR into its recognisers' (character), as words. Pure.
#pragma once

#include "engine/exec/decode/classes/class_names.h"
#include "engine/exec/recognise/facts.h"

namespace leat::exec {

struct FromMetadata {
  std::string seen;                     // "its metadata (task detect)"; empty: no metadata that is known
  std::string preprocess, postprocess;  // empty: it does not say
  std::string refused;                  // one line: its answer is not served, or contradicts the shapes
  ClassNames names;
};

// How pictures of single lines of text are prepared, as PaddleOCR and RapidOCR do: 48 high unless the model fixes it.
std::string words_for_lines(const ModelFacts& facts, const std::string& order);

FromMetadata read_metadata(const ModelFacts& facts);

}  // namespace leat::exec
