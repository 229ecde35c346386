// Colours of classes: always the same one for a class, told apart by people of any colour vision.
//   M. Okabe and K. Ito, "Color Universal Design", 2008: their seven colours besides black, and behind those lighter
//   and darker ones of the same hues, 21 in all; then they come again.
// Pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "tools/leat/draw/canvas/picture.h"

namespace leat::tools::draw {

inline constexpr Colour kWhite{255, 255, 255}, kInk{20, 22, 26}, kWarning{255, 170, 70}, kQuiet{190, 196, 206};

// `name`: the class's, empty where it has none. A class that is called by a colour gets that one, so that box and label
// say the same.
[[nodiscard]] Colour colour_of_class(std::int32_t id, std::string_view name = {}) noexcept;
// Whether a name is that of such a colour.
[[nodiscard]] bool is_colour(std::string_view name) noexcept;
// Black or white: what can be read on this ground.
[[nodiscard]] Colour ink_on(Colour ground) noexcept;
// Relative luminance, 0..1, and contrast, 1..21, as WCAG 2.1 defines them.
[[nodiscard]] double luminance(Colour c) noexcept;
[[nodiscard]] double contrast(Colour a, Colour b) noexcept;

}  // namespace leat::tools::draw
