#include "engine/exec/onnx/libraries/onnx_status.h"

#include <onnxruntime_c_api.h>

#include <stdexcept>

namespace leat::exec {
namespace {

constexpr std::string_view kFailure = " failure ", kNode = "Status Message: ", kField = " ; ", kCall = "expr=";

}  // namespace

std::string plain_words(std::string_view said) {
  said = said.substr(0, said.find('\n'));
  const std::size_t failure = said.rfind(kFailure);  // "CUDNN failure 4000: WHAT ; GPU=0 ; ... ; expr=CALL; "
  if (failure == std::string_view::npos || said.find(kField, failure) == std::string_view::npos)
    return std::string(said);
  const std::size_t library = said.rfind(' ', failure - 1) + 1;
  const std::size_t node = said.substr(0, library).find(kNode);
  std::string out(said.substr(0, node == std::string_view::npos ? 0 : node + kNode.size()));
  out += said.substr(library, said.find(kField, failure) - library);
  if (const std::size_t call = said.rfind(kCall); call != std::string_view::npos && call > failure) {
    std::string_view what = said.substr(call + kCall.size());
    what = what.substr(0, what.find_last_not_of("; ") + 1);
    if (!what.empty()) out.append(" (").append(what).append(")");
  }
  return out;
}

void check(const OrtApi& api, OrtStatus* status) {
  if (status == nullptr) return;
  const std::string text = plain_words(api.GetErrorMessage(status));
  api.ReleaseStatus(status);
  throw std::runtime_error(text);
}

}  // namespace leat::exec
