// The answer to an inference request: the tensors of a result, as JSON or as bytes behind the head. Bytes are not
// copied: the reply's pieces lie in the result. Any thread.
#pragma once

#include "leat/leat.h"
#include "tools/leat/gateway/http/reply.h"
#include "tools/leat/gateway/kserve/infer_request.h"

namespace leat::gateway {

struct FoundOutput {
  leat_part_view part{};
  const WantedOutput* wanted = nullptr;  // null: it was not named
};
// What a result's head holds, as tensors: "detections", rows of x0, y0, x1, y1 in the frame's pixels, score and class;
// "classes", rows of class and score; "checksum". Ownership: outputs_of() points into it.
struct HeadTensors {
  std::vector<float> rows;
  std::uint64_t checksum = 0;
};
// The parts of the result that were asked for, in that order; all tensors where none was named. Error: one is not
// there.
Result<std::vector<FoundOutput>> outputs_of(const leat_answer& answer, const InferRequest& request, HeadTensors& head);

// Of a request with several items `outputs` are joined ones (joined_outputs.h). Outputs whose place is a region are
// only named: the caller has written them.
[[nodiscard]] Reply infer_reply(const std::vector<FoundOutput>& outputs, const InferRequest& request,
                                const Model& model);

}  // namespace leat::gateway
