#include "engine/exec/decode/tensors.h"

#include <algorithm>
#include <cstring>

#include "engine/exec/decode/finite.h"
#include "engine/exec/spec_line.h"

namespace leat::exec {
namespace {

// Shape of a part from that of an output: at most four dimensions, the leading ones of more multiplied together.
void fold_into(const ItemTensor& t, std::uint32_t max, std::uint32_t* dims, std::uint32_t* rank) {
  const std::uint32_t over = t.rank > 4 ? t.rank - 4 : 0;
  *rank = t.rank - over;
  std::uint64_t first = 1;
  for (std::uint32_t d = 0; d < t.rank; ++d) {
    const auto n = static_cast<std::uint64_t>(t.shape[d] < 0 ? max : t.shape[d]);
    if (d < over) {
      first *= n;
    } else {
      dims[d - over] = static_cast<std::uint32_t>(d == over ? first * n : n);
    }
  }
}

}  // namespace

TensorsSpec TensorsPost::parse(SpecLine& words) {
  TensorsSpec out;
  out.names = words.list("names");
  words.whole("max", 1, 1'000'000, &out.max);
  return out;
}

Result<std::unique_ptr<TensorsPost>> TensorsPost::open(const TensorsSpec& spec, const PostSetting& setting) {
  auto out = std::make_unique<TensorsPost>();
  std::string known;
  for (const ItemTensor& t : setting.outputs) known += (known.empty() ? "" : ", ") + std::string(t.name);
  for (const std::string& name : spec.names)
    if (std::none_of(setting.outputs.begin(), setting.outputs.end(), [&](const auto& t) { return t.name == name; }))
      return Error{"postprocess: names= has '" + name + "', and the model's outputs are " + known};
  for (const ItemTensor& t : setting.outputs) {
    const bool wanted =
        spec.names.empty() || std::find(spec.names.begin(), spec.names.end(), t.name) != spec.names.end();
    out->part_of_.push_back(wanted ? static_cast<std::int32_t>(out->parts_.size()) : -1);
    if (!wanted) continue;
    PartSpec part;
    part.kind = LEAT_PART_tensor;
    part.dtype = t.dtype;
    part.name = t.name;
    fold_into(t, spec.max, part.dims.data(), &part.rank);
    part.bytes = leat_dtype_bytes(t.dtype);
    for (std::uint32_t d = 0; d < part.rank; ++d) {
      if (part.dims[d] != 0 && part.bytes > (std::uint64_t{1} << 32) / part.dims[d])
        return Error{"postprocess: the output '" + part.name + "' " + t.text() +
                     " could need gigabytes a frame; fix its sizes (size=), or lower max="};
      part.bytes *= part.dims[d];
    }
    out->parts_.push_back(part);
  }
  if (out->parts_.size() > LEAT_MAX_PARTS)
    return Error{"postprocess: the model has " + std::to_string(out->parts_.size()) +
                 " outputs and a result 16 parts; choose with names=A,B of " + known};
  return out;
}

std::byte* TensorsPost::place(std::size_t o, const PostTarget& target, std::uint64_t* room) const noexcept {
  if (part_of_[o] < 0 || target.parts == nullptr) return nullptr;
  const auto p = static_cast<std::size_t>(part_of_[o]);
  const auto row = static_cast<std::uint32_t>(std::max(target.detection, 0));
  *room = parts_[p].bytes;
  return place_of(target.result, target.parts[p], parts_[p], row).array;
}

Answered TensorsPost::run(std::span<const ItemTensor> outputs, const PostTarget& target) noexcept {
  if (target.parts == nullptr) return {};
  bool finite = true;
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    if (part_of_[o] < 0) continue;
    finite = finite && all_finite(outputs[o]);
    const auto p = static_cast<std::size_t>(part_of_[o]);
    leat_part& part = target.parts[p];
    const std::uint64_t bytes = outputs[o].count() * leat_dtype_bytes(outputs[o].dtype);
    std::uint64_t room = 0;
    std::byte* const at = place(o, target, &room);
    if (at != nullptr && at != outputs[o].data && bytes <= room) std::memcpy(at, outputs[o].data, bytes);
    if (part.item == LEAT_ITEM_EACH) continue;  // its shape is settled
    fold_into(outputs[o], 0, part.dims, &part.rank);
    part.bytes = std::min(bytes, parts_[p].bytes);
  }
  return {.numbers = numbers_of(finite, true)};
}

}  // namespace leat::exec
