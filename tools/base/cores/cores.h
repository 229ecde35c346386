// Cores of this host and its memory's nodes, by hwloc, and pinning to them. Control plane; any thread. Errors: one
// line.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "leat/result.hpp"

namespace leat {

// Operating-system numbers of the processing units this process may use, one per physical core first, then the rest.
Result<std::vector<std::uint32_t>> usable_cores();

// "0-2,5" -> {0,1,2,5}. An error names the text that is wrong.
Result<std::vector<std::uint32_t>> parse_cores(const std::string& text);
std::string cores_text(std::span<const std::uint32_t> cores);  // the inverse

// Pins the whole process, or the calling thread.
Status pin_process(std::span<const std::uint32_t> cores);
Status pin_thread(std::span<const std::uint32_t> cores);

// The NUMA nodes of these cores; empty where the host has one node only.
Result<std::vector<std::uint32_t>> memory_nodes(std::span<const std::uint32_t> cores);
// Memory that this thread, and those that it starts afterwards, touch first comes from these cores' nodes as long as
// they have any. Where there is one node, nothing is done.
Status bind_memory(std::span<const std::uint32_t> cores);

}  // namespace leat
