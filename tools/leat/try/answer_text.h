// An answer as a person reads it. Pure.
#pragma once

#include <string>

#include "tools/base/json/json.h"

namespace leat::tools {

// What answer_json() says (tools/leat/answers), as lines, each beginning with two spaces; what was found in columns.
[[nodiscard]] std::string answer_table(const Json& answer);

}  // namespace leat::tools
