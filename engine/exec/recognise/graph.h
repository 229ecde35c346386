// What the nodes of a model's graph say: which operations it has, what makes each output, and what it does to the
// picture first. Control plane; any thread; allocates.
#pragma once

#include <onnx/onnx_pb.h>

#include "engine/exec/recognise/facts.h"

namespace leat::exec {

// Fills operations, names, tails, norm and stem; inputs and outputs are known already.
void read_graph(const onnx::GraphProto& graph, ModelFacts& facts);

}  // namespace leat::exec
