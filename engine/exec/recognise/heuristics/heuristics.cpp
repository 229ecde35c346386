#include "engine/exec/recognise/heuristics/heuristics.h"

#include <algorithm>

namespace leat::exec {
namespace {

// What else a model wants: words, or places that somebody points at. Empty: nothing of that kind.
std::string wants_besides(const ModelFacts& f) {
  static constexpr const char* kKinds[] = {"input_ids", "encoder_hidden_states", "past_key_values", "point_coords"};
  for (const ModelPort& in : f.inputs)
    for (const char* const kind : kKinds)
      if (in.name.find(kind) != std::string::npos) return in.name;
  return {};
}

}  // namespace

std::string classes_words(const ModelFacts& f) {
  return f.last(0) == "Softmax" || f.last(0) == "Sigmoid" ? "classes act=none" : "classes";
}

std::int64_t cells_of(const ModelFacts& f) {
  const std::int64_t w = f.width(), h = f.height();
  std::int64_t cells = 0;
  if (w > 0 && h > 0)
    for (const int s : {8, 16, 32}) cells += (w / s) * (h / s);
  return cells;
}

Heuristic heuristic_of(const ModelFacts& f, const std::string& architecture) {
  if (const std::string other = wants_besides(f); !other.empty())
    return {.seen = "input " + other,
            .ask =
                "it is asked with more than a picture, which is not served; write postprocess = \"tensors\" and fill "
                "its inputs yourself (preprocess = \"tensors\")"};
  Heuristic s = heuristic_by_names(f, architecture);
  if (s.seen.empty()) s = heuristic_by_shapes(f);
  if (!s.post.empty() || architecture.empty()) return s;
  const auto is = [&](const char* what) { return architecture.find(what) != std::string::npos; };
  const ModelPort out = f.outputs.empty() ? ModelPort() : f.outputs[0];
  if (is("ForImageClassification")) {
    s.post = classes_words(f), s.likely = kClassifierWords, s.classes = out.dim(-1);
  } else if (is("ForSemanticSegmentation")) {
    s.post = "map argmax", s.likely = kImagenetWords, s.classes = out.dim(1);
  } else if (is("ForDepthEstimation")) {
    s.post = "map value", s.likely = kImagenetWords;
  } else {
    return s;
  }
  s.seen = "architecture " + architecture;
  return s;
}

}  // namespace leat::exec
