// Which files an ONNX model keeps weights in, beside its own. Only the graph's skeleton is walked: weights are skipped
// unread, and nothing is allocated for them, so that leatd can ask without loading the model.
// Control plane; any thread.
#pragma once

#include <string>
#include <vector>

namespace leat::exec {

// As the model names them, relative to its folder, each once, in its order. A file that is no ONNX model, or a damaged
// one, has those that were found. Reads `fd` from its beginning and leaves it anywhere.
std::vector<std::string> external_files(int fd);

}  // namespace leat::exec
