// Names of classes, as configurations, model files and the files beside them give them: by preset, one a line, as a
// Python literal, in YAML or in JSON. A name has no tabs and no line ends; a class without one is empty.
//
// Control plane; any thread; allocates.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leat/result.hpp"

namespace leat::exec {

using ClassNames = std::vector<std::string>;  // [class]

inline constexpr std::size_t kMaxClassNames = 65536;

// "coco-80" (class 0 is person), or "coco-91" (by COCO's own numbers, from 0 to 90, with their gaps). Empty: no such.
ClassNames preset_names(std::string_view preset);
inline constexpr std::string_view kNamePresets = "coco-80 or coco-91";

// "{0: 'person', 1: 'bus'}", "['person', 'bus']", also without quotes (YAML). Empty: it is neither.
ClassNames names_in_literal(std::string_view text);

// One a line (any file), the list `names` or `character_dict` of YAML (.yaml, .yml), `id2label` or a list of JSON
// (.json).
Result<ClassNames> names_in_file(const std::string& path);

// With tabs between them, as labels are passed on.
std::string joined(const ClassNames& names);
// Whether such a text has one name for each class; else one line.
Status fits(std::string_view names, std::size_t classes);
// Whether there is no such text, or one for each output, which fits the classes of that output.
Status fit(std::span<const std::string> names, std::span<const std::size_t> classes);

}  // namespace leat::exec
