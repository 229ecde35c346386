// printf into a string, for words of a table or a picture. Any thread.
#pragma once

#include <string>

namespace leat {

// As printf; at most 255 characters are kept.
[[gnu::format(printf, 1, 2)]] std::string formatted(const char* format, ...);

}  // namespace leat
