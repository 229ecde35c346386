// Inferences in gRPC's words and in HTTP's: KServe v2 says the same in both. Values.
#pragma once

#include <list>
#include <string>

#include "leat/result.hpp"
#include "tools/grpc/upstream.h"

namespace inference {
class ModelInferRequest;
class ModelInferResponse;
}  // namespace inference

namespace leat::grpc_door {

// A request of HTTP's whose body names bytes of `asked`, and bytes of its own.
struct InferPassed {
  HttpRequest request;
  std::string head;
  std::list<std::string> converted;  // numbers that came one by one
};
// An error is one line for the client.
Result<InferPassed> passed_of(const inference::ModelInferRequest& asked);
[[nodiscard]] bool names_shared_memory(const inference::ModelInferRequest& asked);
// Fills `to` from an answer with status 200; empty, or what is wrong with it.
std::string fill_response(const HttpAnswer& answer, inference::ModelInferResponse& to);

// "/v2/models/NAME" or "/v2/models/NAME/versions/V", each byte that a path may not hold written as %XX.
std::string model_path(const std::string& name, const std::string& version);
// One word of a path.
std::string path_word(const std::string& text);

}  // namespace leat::grpc_door
