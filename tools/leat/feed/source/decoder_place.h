// Where feeders decode: beside the partitions, which need their cores for the frames that have been submitted already.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace leat::tools {

// automatic: apart where a usable core is left, else giving way. apart: on the cores that no partition has. yield: on
// any core, at a lower priority. anywhere: as the kernel likes.
enum class DecoderPlace : std::uint8_t { automatic, apart, yield, anywhere };

struct DecodersRun {
  std::vector<std::uint32_t> cores;  // empty: anywhere
  bool yields = false;
  std::size_t at_once = 1;  // pictures decoded at a time: as many as there are cores for it
};

// The cores that leatd's partitions are pinned to, from its status (JSON). Nothing: it cannot be told.
[[nodiscard]] std::optional<std::vector<std::uint32_t>> partition_cores(const std::string& status);

// usable: cores this process may use. taken: the partitions'. apart without a core that is left gives way too.
[[nodiscard]] DecodersRun place_decoders(DecoderPlace place, std::span<const std::uint32_t> usable,
                                         const std::optional<std::vector<std::uint32_t>>& taken);

}  // namespace leat::tools
