#include "bench/serving/shapes_application.h"

#include <fstream>

namespace leat::bench {

Result<std::string> shapes_application(const ShapesOptions& options) {
  std::ifstream file(LEAT_MODELS "/shapes.toml");
  std::string text, line;
  while (std::getline(file, line)) {
    if (line.starts_with("cpu ")) continue;
    if (options.slo_ms > 0 && line.starts_with("slo_ms")) line = "slo_ms = " + std::to_string(options.slo_ms);
    const std::size_t at = line.find("model = \"");
    const std::size_t name = at + 9, end = line.find(".onnx");
    if (at != std::string::npos) {
      const std::string model = line.substr(name, end - name);
      line.insert(name, LEAT_MODELS "/");
      if (!options.profiles.empty()) line += "\n  profile = \"" + options.profiles + "/" + model + ".json\"";
    }
    text += line + "\n";
  }
  if (text.empty()) return Error{LEAT_MODELS "/shapes.toml cannot be read"};
  return text;
}

}  // namespace leat::bench
