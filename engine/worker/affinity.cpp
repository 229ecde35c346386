#include "engine/worker/affinity.h"

#include <hwloc.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

namespace leat::worker {
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

Status pin(std::span<const std::uint32_t> cores, int flags) {
  auto t = topology();
  if (!t) return Error{t.error()};
  BitmapPtr set(hwloc_bitmap_alloc());
  for (const auto core : cores) hwloc_bitmap_set(set.get(), core);
  if (hwloc_set_cpubind(t->get(), set.get(), flags) != 0)
    return Error{"cannot be pinned to cores " + cores_text(cores) + ": " + std::strerror(errno) +
                 "; name cores that exist and that this process may use"};
  return Done{};
}

}  // namespace

Status pin_process(std::span<const std::uint32_t> cores) { return pin(cores, HWLOC_CPUBIND_PROCESS); }
Status pin_thread(std::span<const std::uint32_t> cores) { return pin(cores, HWLOC_CPUBIND_THREAD); }

Result<std::vector<std::uint32_t>> parse_cores(const std::string& text) {
  const auto bad = [&] { return Error{"'" + text + "' is no list of cores; write it like \"0-2,5\""}; };
  std::vector<std::uint32_t> out;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    std::uint32_t low = 0;
    auto got = std::from_chars(at, end, low);
    if (got.ec != std::errc{}) return bad();
    std::uint32_t high = low;
    if (got.ptr != end && *got.ptr == '-') got = std::from_chars(got.ptr + 1, end, high);
    if (got.ec != std::errc{} || high < low || high > kMaxCore) return bad();
    for (std::uint32_t c = low; c <= high; ++c) out.push_back(c);
    if (got.ptr == end) break;
    if (*got.ptr != ',') return bad();
    at = got.ptr + 1;
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::string cores_text(std::span<const std::uint32_t> cores) {
  std::string out;
  for (std::size_t i = 0; i < cores.size();) {
    std::size_t j = i;
    while (j + 1 < cores.size() && cores[j + 1] == cores[j] + 1) ++j;
    out += (out.empty() ? "" : ",") + std::to_string(cores[i]) + (j > i ? "-" + std::to_string(cores[j]) : "");
    i = j + 1;
  }
  return out;
}

}  // namespace leat::worker
