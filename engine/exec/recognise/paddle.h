// Paddle's inference.yml beside a model: PaddleOCR's detectors and recognisers, PaddleDetection's and PaddleClas'
// pictures and names. Its YAML is plain: one key or one list entry a line. Control plane; any thread.
#pragma once

#include <string>

#include "engine/exec/recognise/companion_files.h"

namespace leat::exec {

void read_paddle(const ModelFacts& facts, const std::string& folder, CompanionFiles& out);

}  // namespace leat::exec
