#include "tools/leat/bridge/model_names.h"

#include <algorithm>

namespace leat::tools {
namespace {

std::string_view stem_of(std::string_view file) {
  const std::size_t dot = file.rfind('.');
  return dot == std::string_view::npos || dot == 0 ? file : file.substr(0, dot);
}

}  // namespace

Result<std::string> ModelNames::application_of(std::string_view model) const {
  const auto serves = [&](std::string_view name) { return std::ranges::find(*served, name) != served->end(); };
  const auto checked = [&](const std::string& name) -> Result<std::string> {
    if (served && !serves(name)) return Error{"leatd serves no application '" + name + "'; `leat status` lists them"};
    return name;
  };
  for (const auto& [name, application] : given)
    if (name == model || name == stem_of(model)) return checked(application);
  if (served && !model.empty() && serves(stem_of(model))) return std::string(stem_of(model));
  if (!otherwise.empty()) return checked(otherwise);
  if (!served) return std::string();
  if (served->size() == 1) return served->front();
  return Error{"model '" + std::string(model.substr(0, 64)) +
               "' is no application of leatd; say which it is with --model NAME=APPLICATION"};
}

Result<std::pair<std::string, std::string>> parse_model(const std::string& text) {
  const std::size_t at = text.find('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size())
    return Error{"--model is NAME=APPLICATION, not '" + text + "'"};
  return std::pair(text.substr(0, at), text.substr(at + 1));
}

}  // namespace leat::tools
