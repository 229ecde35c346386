// A configuration made from a model alone, as text that can be saved and edited: what `leat serve MODEL` starts and
// `leat try MODEL` runs. Words that were not given are left out, so that leatd concludes them from the model. Pure.
#pragma once

#include <string>
#include <vector>

#include "tools/cli/command.h"

namespace leat::tools {

struct ModelWords {
  std::string model;                    // path of an ONNX file
  std::string preprocess, postprocess;  // empty: concluded from the model
  std::string labels_file;              // empty: none, or as the model says
  double slo_ms = 100;
  std::string cores;  // of the one partition, "0-3"; empty: cpu = "auto"
};

// The options that fill ModelWords, for the tables of the commands that take a model.
#define LEAT_MODEL_OPTIONS                                                                                 \
  {.name = "preprocess",                                                                                   \
   .type = cli::Type::text,                                                                                \
   .value = "WORDS",                                                                                       \
   .help = "how a picture becomes the model's input"},                                                     \
      {.name = "postprocess",                                                                              \
       .type = cli::Type::text,                                                                            \
       .value = "WORDS",                                                                                   \
       .help = "how the model's outputs become an answer; \"tensors\": as they are"},                      \
  {                                                                                                        \
    .name = "labels", .type = cli::Type::path, .value = "FILE", .help = "names of the classes, one a line" \
  }
[[nodiscard]] ModelWords model_words(const cli::Arguments& args, std::string model);

// "yolo11n" of /models/YOLO11n.onnx: the application's and the module's name.
[[nodiscard]] std::string name_of_model(const std::string& path);
// The TOML; model and labels as absolute paths, so that the text may be saved anywhere.
[[nodiscard]] std::string config_of_model(const ModelWords& words);

}  // namespace leat::tools
