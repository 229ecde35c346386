// A small model of every family that people bring, in the exact layout that its exporter writes: names, types, shapes,
// metadata, and the files that lie beside it. Weights are chosen so that the outputs are known; pictures are 64 x 64
// where the family leaves it open. For tests; control plane.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/exec/test/test_graph.h"

namespace leat::exec {

struct FamilyModel {
  std::string name;
  TestGraph graph;
  std::vector<std::pair<std::string, std::string>> beside;  // file, text
  // The words that serve it. `asked`: its file cannot say them all, so it is refused with a question that has them.
  std::string preprocess, postprocess;
  bool asked = false;
  // What is refused whatever is said but "tensors": a piece of the line.
  std::string refused;
  std::string labels;                     // concluded, tabs between; empty: none
  std::uint32_t width = 64, height = 64;  // of the model's picture: a frame of this size is seen pixel by pixel
  // Every number of the answer in the order of the result: of each detection x0 y0 x1 y1 score class, of classes class
  // and score, then each part's values.
  std::vector<double> answer;
};

std::vector<FamilyModel> family_models();

// Writes the model and what lies beside it into FOLDER; returns the model's path.
std::string save(const FamilyModel& family, const std::string& folder);

}  // namespace leat::exec
