// What the names of a model's inputs and outputs, and then their shapes, say about its family. Pure.
#pragma once

#include <string>

#include "engine/exec/recognise/facts.h"

namespace leat::exec {

struct Heuristic {
  std::string seen;           // "outputs cls_8 .. kps_32 (YuNet)"; empty: nothing is known
  std::string post;           // postprocess; empty: `ask`
  std::string ask;            // what to choose among, where it has several meanings
  std::string pre;            // preprocess, where the family has only one; else `likely`
  std::string likely;         // what such models mostly want
  std::string doubt;          // who looks the same and wants something else: said behind `likely`
  std::int64_t classes = -1;  // that its scores are of; -1: not known from shapes
};

// architecture: what a file beside the model calls it ("SegformerForSemanticSegmentation"), or empty: it settles what
// names and shapes leave open.
Heuristic heuristic_of(const ModelFacts& facts, const std::string& architecture);

// Its parts: by names of inputs and outputs, and by shapes.
Heuristic heuristic_by_names(const ModelFacts& facts, const std::string& architecture);
Heuristic heuristic_by_shapes(const ModelFacts& facts);

// The number of cells of a detector with strides 8, 16 and 32; 0: the input's size is open.
std::int64_t cells_of(const ModelFacts& facts);

// act= of a classifier whose graph has made scores itself.
std::string classes_words(const ModelFacts& facts);
inline bool whole(const ModelPort& p) { return p.dtype == LEAT_I64 || p.dtype == LEAT_I32; }

inline constexpr const char* kLetterboxWords = "letterbox rgb norm=unit pad=114/255";
inline constexpr const char* kImagenetWords = "stretch rgb norm=imagenet";
inline constexpr const char* kPillowWords = "stretch resize=antialias rgb norm=imagenet";
inline constexpr const char* kClassifierWords = "cover=0.875 resize=antialias rgb norm=imagenet";

}  // namespace leat::exec
