#include "tools/leat/try/known_list.h"

#include "engine/exec/recognise/known.h"
#include "tools/base/text/formatted.h"

namespace leat::tools {

Result<Json> known_list() {
  auto known = exec::known_models();
  if (!known.ok()) return Error{known.error()};
  Json out = Json::array();
  for (const exec::KnownModel& k : *known) {
    out.push_back({{"name", k.name},
                   {"what", k.what},
                   {"preprocess", k.preprocess},
                   {"postprocess", k.postprocess},
                   {"sure", k.sure},
                   {"source", k.source}});
    if (!k.preprocess_open.empty()) out.back()["preprocess_open"] = k.preprocess_open;
    if (!k.from.empty()) out.back()["from"] = k.from;
  }
  return out;
}

std::string known_table(const Json& list) {
  std::string out;
  for (const Json& k : list) {
    const std::string name = k["name"].get<std::string>(), what = k["what"].get<std::string>();
    out += formatted("%-22s %s%s\n", name.c_str(), what.c_str(), k.contains("from") ? " (yours)" : "");
  }
  return out;
}

}  // namespace leat::tools
