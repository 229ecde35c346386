// What ONNX Runtime says of a failure, as one line that begins with what failed. Control plane; any thread.
#pragma once

#include <string>
#include <string_view>

struct OrtApi;
struct OrtStatus;

namespace leat::exec {

// Its first line. Of a failure of CUDA or of one of its libraries: the node, where one is named, the failure and the
// call, without the source files and the signatures of functions that otherwise come first and leave no room for it.
std::string plain_words(std::string_view said);

// Releases it. Throws std::runtime_error with its plain words; null is good.
void check(const OrtApi& api, OrtStatus* status);

}  // namespace leat::exec
