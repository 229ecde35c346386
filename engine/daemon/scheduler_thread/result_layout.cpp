#include "engine/daemon/scheduler_thread/result_layout.h"

#include "shm/src/segments/segment_layout.h"

namespace leat::daemon {

Result<ResultLayout> result_layout(const planner::Application& application,
                                   std::span<const std::vector<exec::PartSpec>> needs) {
  ResultLayout out;
  std::uint64_t at = LEAT_PAYLOAD_OFFSET;
  for (std::size_t m = 0; m < needs.size(); ++m) {
    const planner::Module& module = application.modules[m];
    const bool each = !module.after.empty();
    for (const exec::PartSpec& need : needs[m]) {
      const std::uint32_t rows = each ? module.fan_out_cap : 1;
      leat_part part = exec::entry_of(need, static_cast<std::uint32_t>(m), each, rows);
      part.offset = at;
      at += exec::round_part((need.bytes + need.tail) * rows);
      if (at > shm::kMaxResultBytes)
        return Error{"application '" + application.name + "', module '" + module.name +
                     "': its results would need more than " + std::to_string(shm::kMaxResultBytes >> 20) +
                     " MiB a frame; ask for fewer outputs (names=), or lower fan_out_cap"};
      out.parts.push_back(part);
    }
  }
  if (out.parts.size() > LEAT_MAX_PARTS)
    return Error{"application '" + application.name + "': its modules answer with " + std::to_string(out.parts.size()) +
                 " parts, a result has room for 16; ask for fewer outputs (names=)"};
  if (!out.parts.empty()) out.result_bytes = static_cast<std::uint32_t>(at);
  return out;
}

}  // namespace leat::daemon
