// What exporters of the YOLO family write into a model's metadata (Ultralytics: task, names, imgsz, kpt_shape, args;
// YOLOv5 and YOLOv9: stride and names), as words. Pure.
#pragma once

#include "engine/exec/class_names.h"
#include "engine/exec/recognise/facts.h"

namespace leat::exec {

struct FromMetadata {
  std::string seen;                     // "its metadata (task detect)"; empty: no metadata that is known
  std::string preprocess, postprocess;  // empty: it does not say
  ClassNames names;
};

// Error: one line; its metadata says what is not served, or contradicts the shapes.
Result<FromMetadata> read_metadata(const ModelFacts& facts);

}  // namespace leat::exec
