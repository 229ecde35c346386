// tensors [names=a,b] [max=1000]: the outputs as they are, one part each, of the model's type and shape without the
// batch. Where the runtime knows the shape beforehand it writes into the result slot itself; an output whose rows are
// known only after the run gets room for `max` of them, and one that needs more fails its request alone. Values that
// are not finite stay as the model gave them (some models mean them), and the answer says that there are some.
#pragma once

#include <optional>

#include "engine/exec/decode/post.h"

namespace leat::exec {

struct TensorsSpec {
  std::vector<std::string> names;  // empty: every output
  std::uint32_t max = 1000;
};

class TensorsPost final : public Post {
 public:
  static TensorsSpec parse(SpecLine& words);
  static Result<std::unique_ptr<TensorsPost>> open(const TensorsSpec& spec, const PostSetting& setting);

  [[nodiscard]] std::vector<PartSpec> parts() const override { return parts_; }
  Answered run(std::span<const ItemTensor> outputs, const PostTarget& target) noexcept override;

  // Where output `o` of this item is to be written, and the room there; null: nowhere, it was not asked for.
  [[nodiscard]] std::byte* place(std::size_t o, const PostTarget& target, std::uint64_t* room) const noexcept;

 private:
  std::vector<PartSpec> parts_;
  std::vector<std::int32_t> part_of_;  // [output]; -1: not asked for
};

}  // namespace leat::exec
