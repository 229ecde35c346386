// A color range and matrix in words, with the reason why they were taken: for `leat status`, `leat top` and `leat try`.
#pragma once

#include <string>

#include "shm/src/protocol/color.h"

namespace leat::shm {

// "limited range, BT.709 (default for 720 lines and more)", "full range (as stated), BT.601 (default below 720 lines)";
// empty where pixels of the format have neither. `color`: never unspecified.
inline std::string color_text(Color color, bool range_stated, bool matrix_stated, std::uint32_t format,
                              std::uint32_t height) {
  if (!has_range(format)) return {};
  const auto why = [&](bool stated) {
    if (stated) return std::string(" (as stated)");
    if (!has_matrix(format)) return std::string(" (default)");
    const std::string lines = std::to_string(kDefaultBt709Lines) + " lines";
    return height >= kDefaultBt709Lines ? " (default for " + lines + " and more)" : " (default below " + lines + ")";
  };
  std::string text = std::string(range_name(color.range)) + " range";
  if (!has_matrix(format)) return text + why(range_stated);
  if (range_stated != matrix_stated) text += why(range_stated);
  const std::string_view name = matrix_name(color.matrix);  // "bt709"
  return text + ", BT." + std::string(name.substr(2)) + why(matrix_stated);
}

}  // namespace leat::shm
