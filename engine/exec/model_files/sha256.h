// SHA-256 by libcrypto, so that a file is named in the words of sha256sum. Any thread. An error where the host's
// configuration of libcrypto forbids it, or the file cannot be read.
#pragma once

#include <string>
#include <string_view>

#include "leat/result.hpp"

namespace leat::exec {

// 64 hex digits, in lower case.
Result<std::string> sha256_hex(std::string_view bytes);
// Of all that `fd` names, from its beginning; where it stands is left as it is. Error: without the file's name.
Result<std::string> sha256_of_file(int fd);

}  // namespace leat::exec
