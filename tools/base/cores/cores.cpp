#include "tools/base/cores/cores.h"

#include <hwloc.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

namespace leat {
namespace {

constexpr std::uint32_t kMaxCore = 4095;

struct TopologyDeleter {
  void operator()(hwloc_topology* t) const { hwloc_topology_destroy(t); }
};
struct BitmapDeleter {
  void operator()(hwloc_bitmap_s* b) const { hwloc_bitmap_free(b); }
};
using TopologyPtr = std::unique_ptr<hwloc_topology, TopologyDeleter>;
using BitmapPtr = std::unique_ptr<hwloc_bitmap_s, BitmapDeleter>;

Result<TopologyPtr> topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return Error{"hwloc cannot start: out of memory"};
  TopologyPtr out(raw);
  if (hwloc_topology_load(raw) != 0)
    return Error{std::string("hwloc cannot read this host's cores: ") + std::strerror(errno) + "; is /sys mounted?"};
  return out;
}

BitmapPtr bitmap_of(std::span<const std::uint32_t> numbers) {
  BitmapPtr set(hwloc_bitmap_alloc());
  for (const std::uint32_t number : numbers) hwloc_bitmap_set(set.get(), number);
  return set;
}

std::vector<std::uint32_t> numbers_of(const hwloc_bitmap_s* set) {
  std::vector<std::uint32_t> out;
  unsigned number;
  hwloc_bitmap_foreach_begin(number, set) out.push_back(number);
  hwloc_bitmap_foreach_end();
  return out;
}

Status pin(std::span<const std::uint32_t> cores, int flags) {
  auto t = topology();
  if (!t) return Error{t.error()};
  if (hwloc_set_cpubind(t->get(), bitmap_of(cores).get(), flags) != 0)
    return Error{"cannot be pinned to cores " + cores_text(cores) + ": " + std::strerror(errno) +
                 "; name cores that exist and that this process may use"};
  return Done{};
}

// hwloc reads more than we mean by a list: blanks, empty places, open ranges, and numbers that it makes room for.
bool sound_list(std::string_view text) {
  std::uint32_t number = 0, low = 0;
  std::size_t digits = 0;
  bool range = false;
  for (const char c : std::string(text) + ",") {
    if (c >= '0' && c <= '9') {
      number = number * 10 + static_cast<std::uint32_t>(c - '0');
      if (++digits > 4) return false;
      continue;
    }
    if (digits == 0 || (c != ',' && (c != '-' || range)) || (range && number < low) || number > kMaxCore) return false;
    range = c == '-';
    low = std::exchange(number, 0);
    digits = 0;
  }
  return true;
}

// Null where the host has one node only.
Result<BitmapPtr> node_set(hwloc_topology* topology, std::span<const std::uint32_t> cores) {
  if (hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE) < 2) return BitmapPtr();
  BitmapPtr nodes(hwloc_bitmap_alloc());
  if (hwloc_cpuset_to_nodeset(topology, bitmap_of(cores).get(), nodes.get()) != 0)
    return Error{"hwloc cannot tell which memory is near to cores " + cores_text(cores)};
  return nodes;
}

}  // namespace

Result<std::vector<std::uint32_t>> usable_cores() {
  auto t = topology();
  if (!t) return Error{t.error()};
  const BitmapPtr allowed(hwloc_bitmap_alloc());
  if (hwloc_get_cpubind(t->get(), allowed.get(), HWLOC_CPUBIND_PROCESS) != 0)
    return Error{std::string("hwloc cannot tell which cores this process may use: ") + std::strerror(errno)};
  std::vector<std::uint32_t> first, rest;
  hwloc_obj_t core = nullptr;
  while ((core = hwloc_get_next_obj_by_type(t->get(), HWLOC_OBJ_CORE, core)) != nullptr) {
    bool taken = false;
    for (const std::uint32_t pu : numbers_of(core->cpuset))
      if (hwloc_bitmap_isset(allowed.get(), pu)) (std::exchange(taken, true) ? rest : first).push_back(pu);
  }
  first.insert(first.end(), rest.begin(), rest.end());
  if (first.empty()) return Error{"this process may use no core; check its cpuset"};
  return first;
}

Result<std::vector<std::uint32_t>> parse_cores(const std::string& text) {
  const BitmapPtr set(hwloc_bitmap_alloc());
  if (!sound_list(text) || hwloc_bitmap_list_sscanf(set.get(), text.c_str()) != 0)
    return Error{"'" + text + "' is no list of cores; write it like \"0-2,5\""};
  return numbers_of(set.get());
}

std::string cores_text(std::span<const std::uint32_t> cores) {
  char* text = nullptr;
  if (hwloc_bitmap_list_asprintf(&text, bitmap_of(cores).get()) < 0) return {};
  const std::unique_ptr<char, decltype(&std::free)> owned(text, &std::free);
  return text;
}

Status pin_process(std::span<const std::uint32_t> cores) { return pin(cores, HWLOC_CPUBIND_PROCESS); }
Status pin_thread(std::span<const std::uint32_t> cores) { return pin(cores, HWLOC_CPUBIND_THREAD); }

Result<std::vector<std::uint32_t>> memory_nodes(std::span<const std::uint32_t> cores) {
  auto t = topology();
  if (!t) return Error{t.error()};
  const auto nodes = node_set(t->get(), cores);
  if (!nodes) return Error{nodes.error()};
  return *nodes != nullptr ? numbers_of(nodes->get()) : std::vector<std::uint32_t>{};
}

Status bind_memory(std::span<const std::uint32_t> cores) {
  auto t = topology();
  if (!t) return Error{t.error()};
  const auto nodes = node_set(t->get(), cores);
  if (!nodes) return Error{nodes.error()};
  // Not strict: a node that is full must not end the process.
  if (*nodes != nullptr && hwloc_set_membind(t->get(), nodes->get(), HWLOC_MEMBIND_BIND,
                                             HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET) != 0)
    return Error{"memory cannot be bound to the node of cores " + cores_text(cores) + ": " + std::strerror(errno)};
  return Done{};
}

}  // namespace leat
