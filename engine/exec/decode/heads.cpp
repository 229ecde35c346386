#include "engine/exec/decode/heads.h"

#include <algorithm>
#include <cmath>

#include "engine/exec/decode/class_names.h"
#include "engine/exec/spec_line.h"

namespace leat::exec {
namespace {

constexpr std::size_t kMostHeads = 16;

// Whether value `a` stands before value `b`: larger, or as large and earlier; what is not a number is last.
bool before(const ItemTensor& t, std::size_t a, std::size_t b) noexcept {
  const float x = t.at(a), y = t.at(b);
  if (std::isnan(x) || std::isnan(y)) return !std::isnan(x) || (std::isnan(y) && a < b);
  return x != y ? x > y : a < b;
}

}  // namespace

HeadsSpec HeadsPost::parse(SpecLine& words) {
  HeadsSpec s;
  words.whole("top", 1, LEAT_MAX_CLASSES, &s.top);
  words.choice("act", {"none", "sigmoid", "softmax"}, [&](std::size_t i) { s.act = static_cast<Activation>(i); });
  return s;
}

Result<std::unique_ptr<HeadsPost>> HeadsPost::open(const HeadsSpec& spec, const PostSetting& setting) {
  for (const ItemTensor& t : setting.outputs)
    if (t.count() == 0 || t.last() != static_cast<std::int64_t>(t.count()))
      return Error{"postprocess: heads needs outputs [C], and the model's " + std::string(t.name) + " is " + t.text()};
  if (setting.outputs.size() > kMostHeads)
    return Error{"postprocess: heads reads at most " + std::to_string(kMostHeads) + " outputs, and the model has more"};
  if (!setting.labels.empty() && setting.labels.size() != setting.outputs.size())
    return Error{"labels: " + std::to_string(setting.labels.size()) + " lists are given for " +
                 std::to_string(setting.outputs.size()) + " outputs; write one list of names an output"};
  for (std::size_t i = 0; i < setting.labels.size(); ++i)
    if (auto status = fits(setting.labels[i], setting.outputs[i].count()); !status) return Error{status.error()};
  auto out = std::make_unique<HeadsPost>();
  out->spec_ = spec, out->heads_ = static_cast<std::uint32_t>(setting.outputs.size());
  out->part_ = {.kind = LEAT_PART_classes, .rank = 2, .dims = {out->heads_, spec.top}};
  out->part_.bytes = std::uint64_t{out->heads_} * spec.top * sizeof(leat_class), out->part_.name = "classes";
  return out;
}

// The best `top` by repeated search: top <= 16, and it needs no memory.
void HeadsPost::best_of(const ItemTensor& head, leat_class* to) const noexcept {
  const std::size_t count = head.count();
  float sum = 0, largest = 0;
  std::size_t last = count;
  for (std::uint32_t k = 0; k < spec_.top && k < count; ++k) {
    std::size_t next = count;
    for (std::size_t i = 0; i < count; ++i)
      if ((last == count || before(head, last, i)) && i != last && (next == count || before(head, i, next))) next = i;
    const float value = head.at(next);
    if (k == 0) {
      largest = value;
      for (std::size_t i = 0; i < count; ++i) sum += std::exp(head.at(i) - largest);
    }
    const float score = spec_.act == Activation::softmax   ? std::exp(value - largest) / sum
                        : spec_.act == Activation::sigmoid ? 1 / (1 + std::exp(-value))
                                                           : value;
    to[k] = {static_cast<std::int32_t>(next), std::isfinite(score) ? score : 0};
    last = next;
  }
}

std::uint32_t HeadsPost::run(std::span<const ItemTensor> outputs, const PostTarget& target) noexcept {
  if (target.parts == nullptr) return 0;
  const auto row = static_cast<std::uint32_t>(std::max(target.detection, 0));
  auto* const to = reinterpret_cast<leat_class*>(place_of(target.result, *target.parts, part_, row).array);
  if (to == nullptr) return 0;
  std::fill_n(to, std::size_t{heads_} * spec_.top, leat_class{});
  for (std::uint32_t h = 0; h < heads_ && h < outputs.size(); ++h) best_of(outputs[h], to + std::size_t{h} * spec_.top);
  wrote(*target.parts, heads_, part_.bytes);
  return 0;
}

}  // namespace leat::exec
