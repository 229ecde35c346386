// Times and sizes as people write them. Thread rule: functions of their arguments.
#pragma once

#include <cstdint>
#include <string>

namespace leat::text {

// Three places: "0.05 ms", "2.5 ms", "316 ms", "12.5 s".
[[nodiscard]] std::string time_text(std::int64_t ns);
// Every place down to a thousandth of a millisecond: "49.999 ms".
[[nodiscard]] std::string exact_time_text(std::int64_t ns);
// "512 bytes", "3.5 KiB", "12 MiB", "1.5 GiB".
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);

}  // namespace leat::text
