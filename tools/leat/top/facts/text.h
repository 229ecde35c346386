// Figures, times and names as `leat top` writes them. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::tools::top {

// Three digits at most: "-" unknown, "0", "<0.01", "0.07", "9.83", "37.3", "121", "1.75k", "17.9k", "2.10M".
[[nodiscard]] std::string three(double value);
// A count below 1000 without a point.
[[nodiscard]] std::string whole(double value);
// "27", "<1", ">99", "0", "100": a share is never rounded to nothing or all.
[[nodiscard]] std::string percent(double value);
// "0", "0.30", "5.1", "27.0": for a column of shares, three digits.
[[nodiscard]] std::string share(double value);
// A figure of a sentence: two digits that count, so that it is read and does not twitch.
[[nodiscard]] std::string two(double value);
// "3.1 s" below ten seconds where `fine`, "41 s", "12 min", "2 h 4 min", "3 d 4 h".
[[nodiscard]] std::string span_of(std::int64_t ns, bool fine = false);
// "14:02:31" of nanoseconds since the epoch, moved by the offset from UTC.
[[nodiscard]] std::string clock_of(std::int64_t wall_ns, std::int64_t utc_offset_s);
// "gate:0-3, 7", "mig0, mig1" or "mig0-2": names that differ in a number at their end are drawn together.
[[nodiscard]] std::string names_together(std::vector<std::string> names, std::size_t longest = 60);
// gate:9 comes before gate:10.
[[nodiscard]] bool natural_less(std::string_view a, std::string_view b) noexcept;
// What a client or a file calls itself, as UTF-8 of printable letters of one or two columns; the rest is '?'.
[[nodiscard]] std::string printable(std::string_view name);
// Columns of a letter: 1 or 2; 0: it has none of its own, or is no letter.
[[nodiscard]] int columns_of(char32_t letter) noexcept;
// The next letter of UTF-8 text from *at on, which moves; U+FFFD where it is none.
[[nodiscard]] char32_t next_letter(std::string_view text, std::size_t* at) noexcept;

}  // namespace leat::tools::top
