// SHA-256 by libcrypto, so that a profile says which file it is about in the words of sha256sum. Any thread. An error
// where the host's configuration of libcrypto forbids it.
#pragma once

#include <string>
#include <string_view>

#include "leat/result.hpp"

namespace leat::tools {

Result<std::string> sha256_hex(std::string_view bytes);

}  // namespace leat::tools
