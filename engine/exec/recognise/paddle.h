// Paddle's inference.yml beside a model: PaddleOCR's detectors and recognisers, PaddleDetection's and PaddleClas'
// pictures and names. Its YAML is plain: one key or one list entry a line. Control plane; any thread.
#pragma once

#include <string>

#include "engine/exec/recognise/sidecars.h"

namespace leat::exec {

void read_paddle(const ModelFacts& facts, const std::string& folder, Sidecars& out);

}  // namespace leat::exec
