#include "engine/exec/decode/classes/classes.h"

#include <atomic>
#include <cmath>

#include "engine/exec/decode/classes/class_names.h"
#include "engine/exec/spec_line.h"

namespace leat::exec {
namespace {

// Puts a head's label where that head has put one before (a batch that is run again), else where there is none yet. A
// byte of `reserved` a label says whose it is, so that two workers never take the same place. Relaxed: these words only
// share out the places among workers. Who reads the labels has them from the worker's report, whose release leatd's
// loop acquires, and from the completion that leatd pushes with a release of its own (docs/internals/transport.md).
void label(leat_detection& d, const leat_label& given) noexcept {
  static_assert(LEAT_MAX_LABELS == sizeof d.reserved);
  const std::atomic_ref owners(d.reserved), count(d.label_count);
  const std::uint32_t mine = given.head + 1;
  std::uint32_t seen = owners.load(std::memory_order_relaxed), place = 0;
  while (place < LEAT_MAX_LABELS) {
    const std::uint32_t owner = seen >> 8 * place & 0xff;
    if (owner == mine ||
        (owner == 0 && owners.compare_exchange_weak(seen, seen | mine << 8 * place, std::memory_order_relaxed)))
      break;
    if (owner != 0) ++place;  // else somebody was faster: look there again
  }
  if (place == LEAT_MAX_LABELS) return;
  d.labels[place] = given;
  std::uint32_t had = count.load(std::memory_order_relaxed);
  while (had <= place && !count.compare_exchange_weak(had, place + 1, std::memory_order_relaxed)) {
  }
}

// Whether value `a` stands before value `b`: larger, or as large and earlier.
template <class Value>
bool before(const Value& value, std::size_t a, std::size_t b) noexcept {
  const float x = value(a), y = value(b);
  return x != y ? x > y : a < b;
}

// By repeated search: there are at most 16, and it needs no memory. Of usable values.
template <class Value>
std::uint32_t best_of(std::size_t count, Activation act, std::span<leat_class> to, const Value& value) noexcept {
  const auto wanted = static_cast<std::uint32_t>(std::min(to.size(), count));
  if (wanted == 0) return 0;
  std::size_t last = count;
  for (std::uint32_t k = 0; k < wanted; ++k) {
    std::size_t next = count;
    for (std::size_t i = 0; i < count; ++i)
      if ((last == count || before(value, last, i)) && i != last && (next == count || before(value, i, next))) next = i;
    to[k].class_id = static_cast<std::int32_t>(next);
    last = next;
  }
  const Softmax softmax(act == Activation::softmax ? count : 1, value);
  for (leat_class& c : to.first(wanted)) {
    const float v = value(static_cast<std::size_t>(c.class_id));
    c.score = act == Activation::softmax ? softmax(v) : score_of(act, v, count, value);
    if (!std::isfinite(c.score)) c.score = 0;  // act=none of -inf
  }
  return wanted;
}

// use(count, value) with value(i) of every value: float32, the usual, is read without asking for its type each time.
template <class Use>
auto with_values(const ItemTensor& head, Use&& use) noexcept {
  if (head.dtype != LEAT_F32) return use(head.count(), [&](std::size_t i) { return head.at(i); });
  const auto* const values = static_cast<const float*>(head.data);
  return use(head.count(), [values](std::size_t i) { return values[i]; });
}

// Whether chances can be made of the values: none is infinite or no number, but for -inf beside finite ones.
template <class Value>
bool usable(std::size_t count, const Value& value) noexcept {
  return count != 0 && std::isfinite(Softmax(count, value).sum);
}

}  // namespace

std::uint32_t best_classes(const ItemTensor& head, Activation act, std::span<leat_class> to) noexcept {
  return with_values(head, [&](std::size_t count, const auto& value) {
    return usable(count, value) ? best_of(count, act, to, value) : 0;
  });
}

void parse_classes(SpecLine& words, ClassesSpec* spec) {
  words.whole("top", 1, LEAT_MAX_CLASSES, &spec->top);
  words.choice("act", {"none", "sigmoid", "softmax"}, [&](std::size_t i) { spec->act = static_cast<Activation>(i); });
}

ClassesSpec ClassesPost::parse(SpecLine& words) {
  ClassesSpec s;
  parse_classes(words, &s);
  return s;
}

Result<std::unique_ptr<ClassesPost>> ClassesPost::open(const ClassesSpec& spec, const PostSetting& setting) {
  if (setting.outputs.size() > LEAT_MAX_LABELS)
    return Error{"postprocess: classes can label with at most " + std::to_string(LEAT_MAX_LABELS) +
                 " outputs, and the model has more"};
  std::vector<std::size_t> classes;
  for (const ItemTensor& t : setting.outputs) {
    const bool flat = t.rank >= 1 && t.count() == static_cast<std::size_t>(std::max(t.shape[0], t.last()));
    if (!flat && t.count() != 0)  // 0: known only after a run
      return Error{"postprocess: classes needs outputs [n, classes], and one of the model's is " + t.text()};
    classes.push_back(t.count());
  }
  if (auto status = fit(setting.labels, classes); !status) return Error{status.error()};
  auto out = std::make_unique<ClassesPost>();
  out->spec_ = spec, out->first_head_ = setting.first_head;
  return out;
}

Answered ClassesPost::run(std::span<const ItemTensor> outputs, const PostTarget& target) noexcept {
  leat_result& result = *target.result;
  if (target.detection < 0) {
    begin_answer(result, LEAT_RESULT_CLASSES);
    result.class_count = best_classes(outputs[0], spec_.act, {result.classes, spec_.top});
    return {.numbers = numbers_of(result.class_count != 0, false)};
  }
  std::size_t named = 0;
  for (std::uint32_t head = 0; head < outputs.size(); ++head) {
    leat_class best{};
    if (best_classes(outputs[head], spec_.act, {&best, 1}) == 0) continue;
    label(result.detections[target.detection], {first_head_ + head, best.class_id, best.score});
    ++named;
  }
  return {.numbers = numbers_of(named == outputs.size(), named != 0)};
}

}  // namespace leat::exec
