#include "engine/exec/decode/embedding.h"

#include <algorithm>
#include <cmath>

#include "engine/exec/spec_line.h"

namespace leat::exec {

bool EmbeddingPost::parse(SpecLine& words) { return words.word("unit"); }

Result<std::unique_ptr<EmbeddingPost>> EmbeddingPost::open(bool unit, const PostSetting& setting) {
  const ItemTensor& t = setting.outputs[0];
  if (t.count() == 0 || t.count() > 65536)
    return Error{"postprocess: embedding needs an output of 1 to 65536 values, and the model's first is " + t.text()};
  auto out = std::make_unique<EmbeddingPost>();
  out->unit_ = unit;
  out->part_ = {
      .kind = LEAT_PART_embedding, .dtype = LEAT_F32, .rank = 1, .dims = {static_cast<std::uint32_t>(t.count())}};
  out->part_.bytes = t.count() * sizeof(float), out->part_.name = t.name;
  return out;
}

Answered EmbeddingPost::run(std::span<const ItemTensor> outputs, const PostTarget& target) noexcept {
  if (target.parts == nullptr) return {};
  const auto row = static_cast<std::uint32_t>(std::max(target.detection, 0));
  auto* const to = reinterpret_cast<float*>(place_of(target.result, *target.parts, part_, row).array);
  if (to == nullptr) return {};
  double sum = 0;
  for (std::uint32_t i = 0; i < part_.dims[0]; ++i) {
    const double v = outputs[0].at(i);
    sum += v * v;
  }
  const bool finite = std::isfinite(sum);  // of float32, whose squares no double overflows
  const double scale = unit_ && sum > 0 ? 1 / std::sqrt(sum) : 1;
  for (std::uint32_t i = 0; i < part_.dims[0]; ++i)
    to[i] = finite ? static_cast<float>(outputs[0].at(i) * scale) : 0;  // length 0: a vector of nothing
  wrote(*target.parts, part_.dims[0], part_.bytes);
  return {.numbers = numbers_of(finite, false)};
}

}  // namespace leat::exec
