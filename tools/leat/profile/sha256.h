// SHA-256 (FIPS 180-4), so that a profile says which file it is about in the words of sha256sum. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace leat::tools {

std::string sha256_hex(std::string_view bytes);

}  // namespace leat::tools
