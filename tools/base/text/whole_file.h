// Text into a file, whole or not at all: whoever reads it sees what was there before or all of the new text, also when
// the writer is killed or the disk is full.
// Thread rule: functions of their arguments. Both return what is wrong, one line that begins with the path; empty:
// nothing.
#pragma once

#include <string>
#include <string_view>

namespace leat::text {

// "-" is standard output. What is there and is no regular file (a device, a pipe) is written to as it is; a symbolic
// link stays one.
[[nodiscard]] std::string write_whole_file(const std::string& path, std::string_view text);

// Whether that would work now, so that a long piece of work need not end with the news that it would not.
[[nodiscard]] std::string unwritable(const std::string& path);

}  // namespace leat::text
