// One GET of another gateway's, and what stands in its metrics. Blocks for at most the time given. Any thread.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>

#include "leat/result.hpp"
#include "tools/leat/gateway/http/server.h"

namespace leat::gateway {

// A body. token: borne where it is not empty. Errors: one line that names the address.
Result<std::string> get(const Address& from, const std::string& path, const std::string& token,
                        std::chrono::milliseconds limit);
// Everything that a Unix socket says to one line.
Result<std::string> ask_socket(const std::string& path, const std::string& line, std::chrono::milliseconds limit);

// Samples by name and labels as written, "leat_gateway_answers_total{model=\"m\",status=\"200\"}".
using Samples = std::map<std::string, double, std::less<>>;
[[nodiscard]] Samples samples_of(std::string_view text);
// Of all samples of that name, whatever their labels.
[[nodiscard]] double sum_of(const Samples& samples, std::string_view name);

}  // namespace leat::gateway
