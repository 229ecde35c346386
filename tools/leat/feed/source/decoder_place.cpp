#include "tools/leat/feed/source/decoder_place.h"

#include <algorithm>

#include "tools/base/cores/cores.h"
#include "tools/base/json/json.h"

namespace leat::tools {

std::optional<std::vector<std::uint32_t>> partition_cores(const std::string& status) {
  const auto json = Json::try_parse(status);
  const Json* const partitions = json ? json->find("partitions") : nullptr;
  if (partitions == nullptr || !partitions->is_array()) return std::nullopt;
  std::vector<std::uint32_t> taken;
  for (const Json& partition : *partitions) {
    const Json* const text = partition.find("cores");
    if (text == nullptr || !text->is_string() || text->get<std::string>().empty()) continue;
    const auto cores = parse_cores(text->get<std::string>());
    if (!cores.ok()) return std::nullopt;
    taken.insert(taken.end(), cores->begin(), cores->end());
  }
  return taken;
}

DecodersRun place_decoders(DecoderPlace place, std::span<const std::uint32_t> usable,
                           const std::optional<std::vector<std::uint32_t>>& taken) {
  DecodersRun run{.at_once = std::max<std::size_t>(usable.size(), 1)};
  if (place == DecoderPlace::anywhere) return run;
  run.yields = true;
  if (place == DecoderPlace::yield || !taken) return run;
  for (const std::uint32_t core : usable) {
    if (std::find(taken->begin(), taken->end(), core) == taken->end()) run.cores.push_back(core);
  }
  run.yields = run.cores.empty();
  if (run.cores.size() == usable.size()) run.cores.clear();  // no partition is pinned to a core of ours
  if (!run.cores.empty()) run.at_once = run.cores.size();
  return run;
}

}  // namespace leat::tools
