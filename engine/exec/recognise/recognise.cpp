#include "engine/exec/recognise/recognise.h"

#include "engine/exec/recognise/metadata.h"
#include "engine/exec/recognise/sidecars.h"
#include "engine/exec/recognise/signs.h"

namespace leat::exec {
namespace {

constexpr std::size_t kMostNameBytes = 64 * 1024;  // of one module, in what a client is told of a stream

std::string beside(const std::string& file) { return file + " beside it"; }

// Names of the metadata, else of a file that is surely about this model, else of one that has as many as there are
// classes.
Concluded labels_of(const FromMetadata& metadata, const Sidecars& files, std::int64_t classes) {
  Concluded out;
  if (!metadata.names.empty()) {
    out = {joined(metadata.names), metadata.seen};
  } else if (!files.names.empty() &&
             (classes >= 0 ? static_cast<std::int64_t>(files.names.size()) == classes : files.names_certain)) {
    out = {joined(files.names), beside(files.names_from)};
  }
  return out.words.size() <= kMostNameBytes ? out : Concluded{};
}

// The question where nothing says how the outputs are read.
Error ask_for_answer(const ModelFacts& f, const Sign& sign) {
  if (!sign.ask.empty()) return Error{f.path + ": " + sign.seen + ": " + sign.ask};
  return Error{f.path + ": nothing in it says what its outputs (" + f.outputs_text() +
               ") mean; write postprocess = \"tensors\" to have them as they are, or boxes, points, classes, map, "
               "text or embedding"};
}

}  // namespace

Result<Recognised> recognise(const std::string& model_path, const GivenWords& given) {
  Recognised out{.preprocess = {given.preprocess, ""}, .postprocess = {given.postprocess, ""}, .labels = {}};
  const bool asked = given.postprocess.empty();
  const auto facts = read_facts(model_path);
  if (!facts.ok()) return asked ? Result<Recognised>(Error{facts.error()}) : out;
  const auto metadata = read_metadata(*facts);
  if (!metadata.ok()) return asked ? Result<Recognised>(Error{metadata.error()}) : out;
  const Sidecars files = read_sidecars(*facts);
  const Sign sign = sign_of(*facts, files.architecture);
  const bool told = sign.seen.starts_with("architecture");
  const std::string seen = told ? beside(files.task_from) + " (" + sign.seen + ")" : sign.seen;

  if (asked) {
    out.postprocess =
        !metadata->postprocess.empty() ? Concluded{metadata->postprocess, metadata->seen} : Concluded{sign.post, seen};
    if (out.postprocess.words.empty() && !files.postprocess.empty())
      out.postprocess = {files.postprocess, beside(files.postprocess_from)};
    if (out.postprocess.words.empty()) return ask_for_answer(*facts, sign);
  }
  if (given.preprocess.empty()) {
    if (!metadata->preprocess.empty()) {
      out.preprocess = {metadata->preprocess, metadata->seen};
    } else if (!sign.pre.empty() && asked) {
      out.preprocess = {sign.pre, seen};
    } else if (!files.preprocess.empty()) {
      out.preprocess = {files.preprocess, beside(files.preprocess_from)};
    } else if (asked) {
      return Error{model_path + ": " + out.postprocess.from + " says postprocess = \"" + out.postprocess.words +
                   "\", but no file says its colours and their range; likely preprocess = \"" + sign.likely + "\""};
    }
    if (asked && !files.size.empty() && out.preprocess.from == beside(files.preprocess_from))
      return Error{model_path + ": " + beside(files.preprocess_from) +
                   " leaves the picture's size to its proportions; likely preprocess = \"" + out.preprocess.words +
                   files.size + "\""};
  }
  // Names belong to answers that have classes.
  const std::string& post = out.postprocess.words;
  const bool classes = post.starts_with("boxes") || post.starts_with("classes") || post.starts_with("map argmax");
  if (!given.labels && classes) out.labels = labels_of(*metadata, files, asked ? sign.classes : -1);
  return out;
}

}  // namespace leat::exec
