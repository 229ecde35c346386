#include "tools/leat/try/batch_times.h"

#include <algorithm>
#include <array>

namespace leat::tools {

Result<BatchTimes> BatchTimes::connect(const std::string& socket) {
  leat_error error = LEAT_ERROR_ok;
  auto observer = shm::Observer::connect(socket, &error);
  if (!observer.ok()) return Error{observer.error()};
  auto counters = observer->counters(&error);
  if (!counters.ok()) return Error{counters.error()};
  auto reader = shm::CountersReader::map(std::move(counters->fd), counters->bytes);
  if (!reader.ok()) return Error{reader.error()};
  return BatchTimes(std::move(*observer), std::move(*reader));
}

std::vector<std::pair<std::string, double>> BatchTimes::since_last() {
  std::vector<std::pair<std::string, double>> out;
  std::array<shm::Event, 256> events;
  while (const std::uint32_t count = reader_.events(next_, events, &next_)) {
    for (std::uint32_t i = 0; i < count; ++i) {
      const shm::Event& e = events[i];
      if (e.kind == shm::EventKind::dispatched) running_[e.a] = {e.c, e.at_ns};
      if (e.kind != shm::EventKind::stage_finished) continue;
      const auto batch = running_.extract(e.a);
      if (batch.empty()) continue;
      const auto record = reader_.snapshot(shm::RecordKind::module, static_cast<std::uint32_t>(batch.mapped().module));
      const std::string name = record ? record->label : std::to_string(batch.mapped().module);
      const double ms = static_cast<double>(e.at_ns - batch.mapped().begun_ns) / 1e6;
      const auto known = std::find_if(out.begin(), out.end(), [&](const auto& entry) { return entry.first == name; });
      if (known == out.end()) {
        out.emplace_back(name, ms);
      } else {
        known->second += ms;
      }
    }
  }
  return out;
}

std::vector<std::pair<std::string, std::uint64_t>> BatchTimes::squeezed_since_last() {
  std::vector<std::pair<std::string, std::uint64_t>> out;
  for (const shm::RecordSnapshot& module : reader_.live(shm::RecordKind::module)) {
    std::uint64_t& before = squeezed_[module.label];
    const std::uint64_t now = module.value(shm::ModuleCounter::squeezed).value_or(0);
    if (now > before) out.emplace_back(module.label, now - before);
    before = now;
  }
  return out;
}

}  // namespace leat::tools
