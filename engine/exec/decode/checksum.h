// checksum: the first output's row is 8 bytes, copied into the result (the answer of the `emulated` executor).
#pragma once

#include <cstring>

#include "engine/exec/decode/post.h"

namespace leat::exec {

struct ChecksumSpec {};  // it has no words

class ChecksumPost final : public Post {
 public:
  static ChecksumSpec parse(SpecLine&) { return {}; }
  static Result<std::unique_ptr<ChecksumPost>> open(const ChecksumSpec&, const PostSetting& setting) {
    const ItemTensor& first = setting.outputs[0];
    if (first.dtype != LEAT_U8 || first.count() != sizeof(std::uint64_t))
      return Error{"postprocess: checksum needs the executor 'emulated'; write 'boxes' or 'classes' for a model"};
    return std::make_unique<ChecksumPost>();
  }
  Answered run(std::span<const ItemTensor> outputs, const PostTarget& target) noexcept override {
    if (target.detection >= 0) return {};
    begin_answer(*target.result, LEAT_RESULT_CHECKSUM);
    std::memcpy(&target.result->checksum, outputs[0].data, sizeof target.result->checksum);
    return {};
  }
};

}  // namespace leat::exec
