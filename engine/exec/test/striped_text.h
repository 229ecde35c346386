// Text that needs no fonts, for tests: a letter 'a' is two green columns, 'b' two blue ones, with two red columns
// behind each, eight pixels high; and a model of open width that reads them column by column, but sees nothing in the
// two columns at either end of its picture. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/exec/frame_view.h"

namespace leat::exec {

// Writes FOLDER/stripes.onnx, for `text ctc keys=keys.txt` with pictures in rgb of norm=unit, and FOLDER/keys.txt.
// Returns the model's path.
std::string save_striped_text_model(const std::string& folder);

struct StripedText {
  static constexpr std::uint32_t kHeight = 8;
  std::uint32_t width;
  std::vector<std::uint8_t> rgb;
  explicit StripedText(std::string_view letters);  // four columns a letter, four red ones before and behind all
  [[nodiscard]] FrameView view() const;
};

// Of 'a' and 'b', drawn from a seed.
std::string striped_letters(std::uint32_t seed, std::size_t count);

}  // namespace leat::exec
