// What a model's file says about itself, as the words that serve it: first what its exporter wrote into it, then files
// that lie beside it, then known models of its structure, then the names of its inputs and outputs, then their shapes.
// Nothing is run and nothing is guessed: what no file can say (often colour order and normalisation) is asked for in
// one line that proposes the likely words.
//
// Control plane: reads files; allocates; any thread.
#pragma once

#include <string>

#include "leat/result.hpp"

namespace leat::exec {

// Words of docs/guide/configuration.md, and what they were concluded from: "its metadata (task detect)". Empty `from`:
// they were given.
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
  std::string as;       // the known model that it is; empty: nobody says
};

struct Judgement {
  Recognised words;      // where there is a question, the likely ones; empty: nothing is likely
  std::string question;  // one line that proposes words for all that is open; empty: all of them are certain
  std::string name;      // of the known model that would answer it, "NAME" where it may be several; empty: none would
};

// Error: one line; the file is no ONNX model, there is no known model of that name, or a list of them cannot be read.
Result<Judgement> judge(const std::string& model_path, const GivenWords& given);

// Error: one line, the question. A file that is no ONNX model is the executor's to refuse where nothing is asked of it.
Result<Recognised> recognise(const std::string& model_path, const GivenWords& given);

}  // namespace leat::exec
