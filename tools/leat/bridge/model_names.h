// Which application of leatd answers for the model that a detector names. Detectors name a file ("yolov9.onnx"); an
// application has a name. Thread rule: none but the callers' own lock.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/result.hpp"

namespace leat::tools {

struct ModelNames {
  std::vector<std::pair<std::string, std::string>> given;  // --model NAME=APPLICATION
  std::string otherwise;                                   // --application; empty: none
  std::optional<std::vector<std::string>> served;          // by leatd, when it was last asked; nullopt: never asked

  // The application: the one given for the name; one of the file's own name; the one for all others; the only one that
  // there is. `model` empty: not known. An empty answer: it depends on what leatd serves, which is not known yet.
  // Errors: one line; nothing serves it.
  [[nodiscard]] Result<std::string> application_of(std::string_view model) const;
};

// "NAME=APPLICATION", for --model.
Result<std::pair<std::string, std::string>> parse_model(const std::string& text);

}  // namespace leat::tools
