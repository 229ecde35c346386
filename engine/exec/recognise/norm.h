// A normalisation that the graph does itself must not be done to its picture before. Pure.
#pragma once

#include <string>

#include "engine/exec/recognise/facts.h"

namespace leat::exec {

// What the graph's own normalisation wants: "raw" (pixels 0..255) or "unit" (0..1); empty: it does none, or none of
// pixels.
[[nodiscard]] std::string range_wanted(const GraphNorm& norm);

// `words` of preprocess with norm=, mean= and std= in agreement with the graph: replaced by the range it wants, the
// order of colours too where its means tell them apart; as they are where it does none.
[[nodiscard]] std::string beside_graph(const std::string& words, const GraphNorm& norm);

}  // namespace leat::exec
