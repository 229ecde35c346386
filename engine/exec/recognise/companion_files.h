// Files that exporters and trainers put beside a model: Hugging Face's preprocessor_config.json and config.json (also
// one folder up), timm's config.json, mmdeploy's pipeline.json, data.yaml and labels.txt. What they say becomes the
// words of docs/guide/configuration.md. Control plane; any thread; files are read, nothing is written. A file that is
// not what its name says is passed over.
#pragma once

#include <array>
#include <string>

#include "engine/exec/decode/classes/class_names.h"
#include "engine/exec/recognise/facts.h"

namespace leat::exec {

struct CompanionFiles {
  std::string preprocess, preprocess_from;  // words and the file's name; empty: no file says
  std::string postprocess, postprocess_from;
  std::string size;                     // "size=1066x800" that a file makes likely where the model leaves it open
  std::string architecture, task_from;  // "SegformerForSemanticSegmentation", and the file that says it
  ClassNames names;
  std::string names_from;
  bool names_certain = false;  // the file is about this model; else its names count only if they are as many as classes
};

CompanionFiles read_companion_files(const ModelFacts& facts);

// Pieces of words, for those who read such files. A number; mean and std of pixel / 255, by name where they have one;
// " size=WxH" where the model leaves its picture's size open.
std::string shown(double value);
std::string norm_words(const std::array<double, 3>& mean, const std::array<double, 3>& deviation);
std::string size_words(const ModelFacts& facts, double width, double height);

// The one text file beside the model that has a line for each class of a recogniser but the blank, with or without a
// space; empty: there is none, or several.
std::string lines_beside(const ModelFacts& facts, std::int64_t classes);

}  // namespace leat::exec
