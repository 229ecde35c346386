// embedding [unit]: the first output as one vector of float32, of length one with `unit` (x / |x|). Where a value is
// not finite there is no vector: all are 0.
#pragma once

#include "engine/exec/decode/post.h"

namespace leat::exec {

class EmbeddingPost final : public Post {
 public:
  static bool parse(SpecLine& words);  // whether `unit` was written
  static Result<std::unique_ptr<EmbeddingPost>> open(bool unit, const PostSetting& setting);
  [[nodiscard]] std::vector<PartSpec> parts() const override { return {part_}; }
  Answered run(std::span<const ItemTensor> outputs, const PostTarget& target) noexcept override;

 private:
  bool unit_ = false;
  PartSpec part_;
};

}  // namespace leat::exec
