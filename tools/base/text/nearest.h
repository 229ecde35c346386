// Which known word was meant by one that is not known: for messages that say what to write instead.
// Thread rule: a function of its arguments.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace leat::text {

// The name nearest to `word` by edit distance, if near enough to be what was meant; else empty.
[[nodiscard]] std::string nearest(std::string_view word, std::span<const std::string> names);

}  // namespace leat::text
