// What TOML text may not hold, and toml++ 3.3 does not survive looking for: its table of white space has no answer for
// many letters (Latin with accents, Greek, Cyrillic, kana) and runs into code it declares unreachable. TOML 1.0 allows
// such letters in strings and remarks only; behind a backslash that joins lines it would, and is refused here. Any
// thread.
#pragma once

#include <cstddef>
#include <string_view>

namespace leat::planner {

// The line, from 1, of the first character beyond ASCII that stands outside of strings and remarks, or behind a
// backslash; 0: there is none.
[[nodiscard]] std::size_t stray_letter_line(std::string_view toml) noexcept;

inline constexpr const char* kStrayLetter =
    "is not valid TOML: a letter that is not ASCII stands outside of quotes and remarks, or behind a backslash; put "
    "quotes "
    "around it, or take the backslash away";

}  // namespace leat::planner
