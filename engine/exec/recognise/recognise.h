// What a model's file says about itself, as the words that serve it: first what its exporter wrote into it, then the
// names of its inputs and outputs, then their shapes, then files that lie beside it. Nothing is run and nothing is
// guessed: what no file can say (often colour order and normalisation) is asked for in one line that proposes the
// likely words.
//
// Control plane: reads files; allocates; any thread.
#pragma once

#include <string>

#include "leat/result.hpp"

namespace leat::exec {

// Words of docs/configuration.md, and what they were concluded from: "its metadata (task detect)". Empty `from`: they
// were given.
struct Concluded {
  std::string words, from;
};

struct Recognised {
  Concluded preprocess, postprocess;
  Concluded labels;  // class names with tabs between them; none: no file has names
};

// What the configuration says; empty words are asked of the model.
struct GivenWords {
  std::string preprocess, postprocess;
  bool labels = false;  // names are given
};

// Error: one line, the question. Where postprocess is given there is none: then preprocess may stay empty.
Result<Recognised> recognise(const std::string& model_path, const GivenWords& given);

}  // namespace leat::exec
