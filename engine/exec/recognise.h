// What a model's file says about itself, as the words that serve it: first what its exporter wrote into it
// (Ultralytics), then the names of its inputs and outputs, then their shapes. Nothing is run and nothing is guessed:
// what a file cannot say (colour order, normalisation) is asked for in one line that proposes the likely words.
//
// Control plane: pure but for reading the file; allocates; any thread.
#pragma once

#include <string>

#include "leat/result.hpp"

namespace leat::exec {

struct Recognised {
  std::string preprocess, postprocess;
  std::string from;  // "its metadata (task detect)": what was concluded, and from what
};

// preprocess: as configured, or empty. Error: one line, the question.
Result<Recognised> recognise(const std::string& model_path, const std::string& preprocess);

}  // namespace leat::exec
