// Applications as TOML or JSON files (docs/plans.md): [[application]] tables with [[application.module]] inside. Any
// thread. Errors are one line: file, line or key, what to do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "leat/result.hpp"
#include "planner/application.h"

namespace leat::planner {

class JsonCursor;

// `.toml` names TOML, everything else JSON. Modules may stand in any order and name their predecessors; they come back
// in topological order, file order among equals. Other top-level keys are left to their readers.
Result<std::vector<Application>> parse_applications(std::string_view text, const std::string& name);
Result<std::vector<Application>> read_applications(const std::string& path);

// The same from an open document's list of applications (plan files); errors stay in the document.
std::vector<Application> applications_from(const JsonCursor& list);

// Empty: names unique, at least one module, a positive SLO, rates and weights in range, after[] only names smaller
// indexes. Otherwise one line.
std::string problem_of(const Application& application);

}  // namespace leat::planner
