// classes [top=5] [act=softmax|sigmoid|none]: every output [C] is a head. Behind a fan-out one label a head is appended
// to the detection (head = its place among the module's outputs, from first_head on): a head has one label there
// however often it runs, and workers of several modules may label one detection at once. Otherwise the first head's
// best `top` classes. act: what makes scores of the model's values; none: they are scores already. A head of which a
// value is infinite or no number names no class.
#pragma once

#include "engine/exec/decode/activation.h"
#include "engine/exec/decode/post.h"

namespace leat::exec {

struct ClassesSpec {
  std::uint32_t top = 5;
  Activation act = Activation::softmax;
};

// Takes top= and act= (of classes and heads).
void parse_classes(SpecLine& words, ClassesSpec* spec);
// The best of a head's classes with their scores, best first, of equals the earlier.
// Returns how many there are: as many as `to` holds, or as the head has; 0 where its values are not finite (-inf is a
// class that cannot be). No allocation.
std::uint32_t best_classes(const ItemTensor& head, Activation act, std::span<leat_class> to) noexcept;

class ClassesPost final : public Post {
 public:
  static ClassesSpec parse(SpecLine& words);
  static Result<std::unique_ptr<ClassesPost>> open(const ClassesSpec& spec, const PostSetting& setting);
  Answered run(std::span<const ItemTensor> outputs, const PostTarget& target) noexcept override;

 private:
  ClassesSpec spec_;
  std::uint32_t first_head_ = 0;
};

}  // namespace leat::exec
