// The kinds of partitions, one row each: a new kind is a row here, a device plug-in (engine/exec/device.h) where it has
// a device of its own, and a line in docs/guide/configuration.md. Plain data; any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

namespace leat::planner {

enum class KindPlace : std::uint8_t {
  none,    // nothing of the host: its times are emulated
  cores,   // the configuration's `cores`
  nvidia,  // the configuration's `gpu`, a UUID; leat-gpu finds it, and its process sees nothing else by CUDA
  device,  // the configuration's `gpu`, any name; only the plug-in knows what it means
};

// The class of a partition that names none, which is what profiles are looked up by.
enum class KindClass : std::uint8_t { kind, own_name, with_cores, with_percent };

// In the order of their numbers in the counters segment: append only.
#define LEAT_PARTITION_KINDS(X)                                                                                   \
  X(cpu, .place = KindPlace::cores, .standard_class = KindClass::with_cores)                                      \
  X(mig, .place = KindPlace::nvidia, .uuid = "MIG-", .plugin = "cuda")                                            \
  X(mps, .place = KindPlace::nvidia, .share = "MPS", .standard_class = KindClass::with_percent, .plugin = "cuda") \
  X(gpu, .place = KindPlace::nvidia, .uuid = "GPU-", .plugin = "cuda", .cut_into = PartitionKind::mps)            \
  X(emulated, .place = KindPlace::none, .standard_class = KindClass::own_name)

enum class PartitionKind : std::uint8_t {
#define X(word, ...) word,
  LEAT_PARTITION_KINDS(X)
#undef X
};

struct PartitionKindRow {
  const char* name = "";
  KindPlace place = KindPlace::none;
  std::string_view uuid{};      // of place nvidia: what its UUID begins with; empty: a GPU's or a MIG device's
  const char* share = nullptr;  // what a share of its device is called, which `percent` gives; null: it is whole
  KindClass standard_class = KindClass::kind;
  const char* plugin = "";                  // the configuration's `plugin`, where it names none
  std::optional<PartitionKind> cut_into{};  // what the planner makes of it by cutting it; none: the same

  bool on_device() const { return place == KindPlace::nvidia || place == KindPlace::device; }
  bool multiplies() const { return share != nullptr || place == KindPlace::none; }  // `count` of one
};

inline constexpr PartitionKindRow kPartitionKinds[] = {
#define X(word, ...) {.name = #word, __VA_ARGS__},
    LEAT_PARTITION_KINDS(X)
#undef X
};

// A number that is no kind: the last row, and "unknown".
inline const PartitionKindRow& row_of(PartitionKind kind) noexcept {
  return kPartitionKinds[std::min(static_cast<std::size_t>(kind), std::size(kPartitionKinds) - 1)];
}
inline const char* name_of(PartitionKind kind) noexcept {
  return static_cast<std::size_t>(kind) < std::size(kPartitionKinds) ? row_of(kind).name : "unknown";
}
std::optional<PartitionKind> kind_named(std::string_view name) noexcept;
// "cpu, mig or mps" of those that `wanted` (takes a row) accepts.
template <class Wanted>
std::string kind_names(Wanted wanted) {
  std::string out, last;
  for (const PartitionKindRow& row : kPartitionKinds) {
    if (!wanted(row)) continue;
    out += (out.empty() || last.empty() ? "" : ", ") + last;
    last = row.name;
  }
  return out + (out.empty() ? "" : " or ") + last;
}
// What the configuration means where it says no kind.
PartitionKind standard_kind(bool cores, std::string_view gpu, bool percent) noexcept;
std::string standard_class(PartitionKind kind, const std::string& name, std::size_t cores, std::uint32_t percent);

}  // namespace leat::planner
