#include "planner/partition_kind.h"

namespace leat::planner {
namespace {

template <class Wanted>
std::optional<PartitionKind> first(Wanted wanted) noexcept {
  const auto* const row = std::find_if(std::begin(kPartitionKinds), std::end(kPartitionKinds), wanted);
  if (row == std::end(kPartitionKinds)) return std::nullopt;
  return static_cast<PartitionKind>(row - std::begin(kPartitionKinds));
}

}  // namespace

std::optional<PartitionKind> kind_named(std::string_view name) noexcept {
  return first([&](const PartitionKindRow& row) { return row.name == name; });
}

PartitionKind standard_kind(bool cores, std::string_view gpu, bool percent) noexcept {
  const KindPlace place = percent || !gpu.empty() ? KindPlace::nvidia : cores ? KindPlace::cores : KindPlace::none;
  const auto fits = [&](const PartitionKindRow& row) {
    return row.place == place && (row.share != nullptr) == percent && gpu.starts_with(row.uuid);
  };
  return first(fits).value_or(PartitionKind::gpu);  // of which it is then said what its UUID must be
}

std::string standard_class(PartitionKind kind, const std::string& name, std::size_t cores, std::uint32_t percent) {
  const std::string word = name_of(kind);
  switch (row_of(kind).standard_class) {
    case KindClass::own_name:
      return name;
    case KindClass::with_cores:
      return word + ":" + std::to_string(cores);
    case KindClass::with_percent:
      return word + ":" + std::to_string(percent);
    case KindClass::kind:
      break;
  }
  return word;
}

}  // namespace leat::planner
