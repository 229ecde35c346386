// What the processes of a contender have used so far, by group of threads, as the kernel counts it. Any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/alternatives/contenders/contender.h"

namespace leat::bench::alternatives {

struct Usage {
  std::int64_t cpu_ns = 0;
  std::int64_t switches = 0;  // of context, asked for or not
};
using UsageByGroup = std::map<std::string, Usage>;

// Of all cores of the host, by everybody and by what holds a virtual machine back.
std::int64_t host_busy_ns();
UsageByGroup usage_of(std::span<const Member> members);
// Of memory: each page divided by how many have it (PSS), bytes by group. Nothing: the kernel does not say.
std::optional<std::map<std::string, std::uint64_t>> memory_of(std::span<const Member> members);

}  // namespace leat::bench::alternatives
