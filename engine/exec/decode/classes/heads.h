// heads [top=1] [act=softmax|sigmoid|none]: what a model with several outputs of classes says of one picture, all of
// them in one answer (FairFace: race, gender, age). Every output [C] is a head, in the model's order.
//   score of class c: exp(v_c) / sum over k of exp(v_k) (default), 1 / (1 + exp(-v_c)), or v_c as it is
// Result: a part `classes` of dims [heads, top], each head's best first; what a head has no class for has the score 0.
// Class names are one list a head. Behind a detector `classes` does the same as labels of each detection.
#pragma once

#include "engine/exec/decode/classes/classes.h"

namespace leat::exec {

class HeadsPost final : public Post {
 public:
  static ClassesSpec parse(SpecLine& words);
  static Result<std::unique_ptr<HeadsPost>> open(const ClassesSpec& spec, const PostSetting& setting);
  [[nodiscard]] std::vector<PartSpec> parts() const override { return {part_}; }
  Answered run(std::span<const ItemTensor> outputs, const PostTarget& target) noexcept override;

 private:
  ClassesSpec spec_;
  std::uint32_t heads_ = 0;
  PartSpec part_;
};

}  // namespace leat::exec
