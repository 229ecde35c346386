#include "engine/exec/decode/classes/heads.h"

#include <algorithm>

#include "engine/exec/decode/classes/class_names.h"
#include "engine/exec/spec_line.h"

namespace leat::exec {
namespace {

constexpr std::size_t kMaxHeads = 16;

}  // namespace

ClassesSpec HeadsPost::parse(SpecLine& words) {
  ClassesSpec s{.top = 1};
  parse_classes(words, &s);
  return s;
}

Result<std::unique_ptr<HeadsPost>> HeadsPost::open(const ClassesSpec& spec, const PostSetting& setting) {
  for (const ItemTensor& t : setting.outputs)
    if (t.count() == 0 || t.last() != static_cast<std::int64_t>(t.count()))
      return Error{"postprocess: heads needs outputs [C], and the model's " + std::string(t.name) + " is " + t.text()};
  if (setting.outputs.size() > kMaxHeads)
    return Error{"postprocess: heads reads at most " + std::to_string(kMaxHeads) + " outputs, and the model has more"};
  std::vector<std::size_t> classes;
  for (const ItemTensor& t : setting.outputs) classes.push_back(t.count());
  if (auto status = fit(setting.labels, classes); !status) return Error{status.error()};
  auto out = std::make_unique<HeadsPost>();
  out->spec_ = spec, out->heads_ = static_cast<std::uint32_t>(setting.outputs.size());
  out->part_ = {.kind = LEAT_PART_classes, .rank = 2, .dims = {out->heads_, spec.top}};
  out->part_.bytes = std::uint64_t{out->heads_} * spec.top * sizeof(leat_class), out->part_.name = "classes";
  return out;
}

Answered HeadsPost::run(std::span<const ItemTensor> outputs, const PostTarget& target) noexcept {
  if (target.parts == nullptr) return {};
  const auto row = static_cast<std::uint32_t>(std::max(target.detection, 0));
  auto* const to = reinterpret_cast<leat_class*>(place_of(target.result, *target.parts, part_, row).array);
  if (to == nullptr) return {};
  std::fill_n(to, std::size_t{heads_} * spec_.top, leat_class{});
  std::uint32_t named = 0;
  for (std::uint32_t h = 0; h < heads_ && h < outputs.size(); ++h)
    if (best_classes(outputs[h], spec_.act, {to + std::size_t{h} * spec_.top, spec_.top}) != 0) ++named;
  wrote(*target.parts, heads_, part_.bytes);
  return {.numbers = numbers_of(named == heads_, named != 0)};
}

}  // namespace leat::exec
