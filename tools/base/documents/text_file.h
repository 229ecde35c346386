// Whole text files in and out, with one-line errors. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "leat/result.hpp"

namespace leat {

// Reads at most 256 MiB. Error: "PATH: cannot be read: <why>".
Result<std::string> read_text_file(const std::string& path);

// What to say of a path at which there is no regular file: "there is no file PATH", "PATH is a directory, not a file".
[[nodiscard]] std::string no_file_at(const std::string& path);

// Whole or not at all, as tools/base/text/whole_file.h says. "-" is standard output.
Status write_text_file(const std::string& path, std::string_view text);

}  // namespace leat
