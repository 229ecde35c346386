#include "tools/leat/draw/kinds/kinds.h"

namespace leat::tools::draw {
namespace {

constexpr std::uint32_t kMaxListed = 5;  // of one list

void list_one(Work& work, std::uint32_t head, const leat_class& c) {
  work.marks.rows.push_back(
      {.text = work.name_or_number(head, c.class_id), .value = percent(c.score), .bar = static_cast<double>(c.score)});
}

}  // namespace

void list_classes(Work& work, const std::vector<leat_part_view>& parts) {
  const leat_result& result = *work.answer.result;
  if (result.kind == LEAT_RESULT_CLASSES)
    for (std::uint32_t i = 0; i < std::min({result.class_count, std::uint32_t{LEAT_MAX_CLASSES}, kMaxListed}); ++i)
      list_one(work, 0, result.classes[i]);
  for (const leat_part_view& part : parts) {
    if (part.kind != LEAT_PART_classes) continue;
    const std::uint32_t top = std::max(part.rank > 1 ? part.dims[1] : 1, 1U);
    for (std::uint64_t i = 0; i < part.count; ++i) {
      const auto c = element<leat_class>(part, i);
      if (c.score > 0 && i % top < kMaxListed) list_one(work, static_cast<std::uint32_t>(i / top), c);
    }
  }
}

}  // namespace leat::tools::draw
