// A configuration made from a model alone, as text that can be saved and edited: what `leat serve MODEL` starts and
// `leat try MODEL` runs. Words that the model says itself stand there as comments, so that leatd concludes them from
// the model and says from what.
#pragma once

#include <string>
#include <vector>

#include "leat/result.hpp"
#include "tools/base/cli/command.h"

namespace leat::tools {

struct ModelWords {
  std::string model;                    // path of an ONNX file
  std::string preprocess, postprocess;  // empty: concluded from the model
  std::string picture;                  // preprocess as it is in force, given or concluded; ask_model fills it
  std::string as;                       // the known model that it is; empty: nobody says
  std::string labels;                   // names with tabs between, where a known model has them
  // What was concluded, for people to read: "preprocess = "..." (from its metadata)".
  std::vector<std::string> concluded;
  std::string labels_file;  // empty: none, or as the model says
  double slo_ms = 100;      // 0: leatd chooses
  std::string cores;        // of the one partition, "0-3"; empty: cpu = "auto"
};

// The options that fill ModelWords, for the tables of the commands that take a model.
#define LEAT_MODEL_OPTIONS                                                                                 \
  {.name = "preprocess",                                                                                   \
   .type = cli::Type::text,                                                                                \
   .value = "WORDS",                                                                                       \
   .help = "how a picture becomes the model's input"},                                                     \
      {.name = "as",                                                                                       \
       .type = cli::Type::text,                                                                            \
       .value = "NAME",                                                                                    \
       .help = "the known model that it is, with its words; leat try --list names them"},                  \
      {.name = "postprocess",                                                                              \
       .type = cli::Type::text,                                                                            \
       .value = "WORDS",                                                                                   \
       .help = "how the model's outputs become an answer; \"tensors\": as they are"},                      \
  {                                                                                                        \
    .name = "labels", .type = cli::Type::path, .value = "FILE", .help = "names of the classes, one a line" \
  }
[[nodiscard]] ModelWords model_words(const cli::Arguments& args, std::string model);

// Fills in what the model says of itself, or what a known model of the name given wants. Returns the question where
// something is left to ask, in the words of a command line; the likely words are filled in then. Error: one line.
[[nodiscard]] Result<std::string> ask_model(ModelWords& words);

// "yolo11n" of /models/YOLO11n.onnx: the application's and the module's name.
[[nodiscard]] std::string name_of_model(const std::string& path);
// The TOML; model and labels as absolute paths, so that the text may be saved anywhere.
[[nodiscard]] std::string config_of_model(const ModelWords& words);
[[nodiscard]] std::string application_of_model(const ModelWords& words, const std::string& name);  // its table alone

}  // namespace leat::tools
