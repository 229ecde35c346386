#include "tools/leat/model_text.h"

namespace leat::tools {

std::string model_text(const Json& module) {
  std::string out;
  const auto text = [](const Json& object, const char* key) {
    const Json* const at = object.find(key);
    return at == nullptr ? std::string() : at->is_string() ? at->get<std::string>() : at->dump();
  };
  for (const char* const key : {"preprocess", "postprocess", "labels"}) {
    const Json* const at = module.find(key);
    if (at == nullptr || !at->is_object()) continue;
    out += "      " + std::string(key) + ": " +
           (at->contains("count") ? text(*at, "count") + " names, the first '" + text(*at, "first") + "'"
                                  : text(*at, "words")) +
           " (from " + text(*at, "from") + ")\n";
  }
  return out;
}

}  // namespace leat::tools
