// Public families of models that say little of themselves, known by their structure: names and shapes of inputs and
// outputs, operations, names of weights. Leat's own list (known_models.json, compiled in, so that it is there wherever
// the library is) and lists of the same form that users write: $XDG_CONFIG_HOME or ~/.config, leat/models.json, and
// /etc/leat/models.json. docs/reference/known-models.md says the form.
//
// Control plane; any thread; files are read at every call, nothing is written.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/exec/recognise/facts.h"
#include "leat/result.hpp"

namespace leat::exec {

struct KnownModel {
  std::string name, what;  // "blazeface", "faces with six points (BlazeFace, MediaPipe)"
  std::string preprocess;
  std::string preprocess_open;  // where the model leaves its picture's size open; empty: the same
  std::string postprocess;
  std::string labels;  // names with tabs between; empty: none
  std::string source;  // where it is published that these words are right
  std::string from;    // the user's file; empty: Leat's own list
  // Whether everything of this structure wants this preprocess. Else it is proposed and asked for.
  bool sure = false;

  // Structure; what is empty is not looked at.
  std::vector<std::string> inputs, outputs;  // "boxes [?, n, 4] float32"; last "...": and more
  std::vector<std::string> tails;            // [output]: its last operation; "": any
  std::vector<std::string> uses, lacks;      // operations
  std::map<std::string, std::pair<std::uint32_t, std::uint32_t>> counts;  // operations, at least and at most
  std::vector<std::string> mentions;                                      // parts of names of nodes or weights
  std::string graph_norm;                                                 // "raw", "unit" or "none": what norm.h says
  std::string producer;
  std::int64_t stem = 0;  // the largest side of the convolutions that read the picture first

  // The very files that it is about, as sha256sum prints them: other weights of their structure want other words. Its
  // structure then only spares reading the files of others. Empty: everything of its structure.
  std::vector<std::string> sha256;
};

// Users' lists first. Error: one line with the file that cannot be read and why.
Result<std::vector<KnownModel>> known_models();

// The words for a model of these facts.
[[nodiscard]] std::string preprocess_of(const KnownModel& known, const ModelFacts& facts);

// Those whose structure is the model's; where a user's list has one, the users' alone; where one names the very file,
// that one alone. The file is read for this where an entry of its structure names files.
[[nodiscard]] std::vector<KnownModel> matching(const std::vector<KnownModel>& known, const ModelFacts& facts);

// "NAME [1, 3, h, w] TYPE" against a port: NAME may have * and ?, or be left out; a dimension is a number, several with
// | between, ? (any), open, or a letter that stands for the same number wherever it is written. TYPE may be left out.
// letters: what they stand for so far.
[[nodiscard]] bool port_matches(std::string_view pattern, const ModelPort& port,
                                std::map<std::string, std::int64_t>& letters);

}  // namespace leat::exec
