// Applications as TOML or JSON files (docs/guide/plans.md): [[application]] tables with [[application.module]] inside.
// Any thread. Errors are one line: file, line or key, what to do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "leat/result.hpp"
#include "planner/application.h"

namespace leat {
class JsonCursor;
}

namespace leat::planner {

// Every key of an application and of a module, leatd's too: a configuration of leatd and a file of applications are
// read alike by both, each passing over what only the other needs.
inline constexpr std::string_view kApplicationKeys[] = {"name",  "slo_ms", "rate_rps", "weight",
                                                        "share", "module", "stream"};
inline constexpr std::string_view kModuleKeys[] = {
    "name",        "model", "after",   "items_per_request", "fan_out_cap", "executor",    "as",      "preprocess",
    "postprocess", "batch", "profile", "latency_ms",        "labels",      "labels_file", "options", "memory_mib"};

// `.toml` names TOML, everything else JSON. A module's model is a profile's name, or an ONNX file, whose profile has
// its name without the ending. Modules may stand in any order and name their predecessors; they come back in
// topological order, file order among equals. Other top-level keys are left to their readers.
Result<std::vector<Application>> parse_applications(std::string_view text, const std::string& name);
Result<std::vector<Application>> read_applications(const std::string& path);

// The same from an open document's list of applications (plan files); errors stay in the document.
std::vector<Application> applications_from(const JsonCursor& list);

// Empty: names unique, at least one module, a positive SLO, rates and weights in range, after[] only names smaller
// indexes. Otherwise one line.
std::string problem_of(const Application& application);

}  // namespace leat::planner
