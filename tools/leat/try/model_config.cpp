#include "tools/leat/try/model_config.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <tuple>

#include "engine/exec/recognise/recognise.h"

namespace leat::tools {
namespace {

// A basic string of TOML.
std::string toml_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string number(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

// `preprocess = "..."` as the option that says the same.
std::string as_options(std::string text) {
  for (const std::string key : {"preprocess", "postprocess"})
    for (std::size_t at = 0; (at = text.find(key + " = \"", at)) != std::string::npos; at += key.size() + 3)
      text.replace(at, key.size() + 3, "--" + key + " ");
  if (const std::size_t at = text.find("write preprocess too"); at != std::string::npos)
    text.replace(at, 20, "give --preprocess too");
  return text;
}

}  // namespace

Result<std::string> ask_model(ModelWords& words) {
  auto found = exec::judge(words.model, {.preprocess = words.preprocess,
                                         .postprocess = words.postprocess,
                                         .labels = !words.labels_file.empty(),
                                         .as = words.as});
  if (!found.ok()) return Error{found.error()};
  words.picture = words.preprocess.empty() ? found->words.preprocess.words : words.preprocess;
  const bool written = !words.as.empty() || !found->question.empty();  // else leatd concludes the same
  for (const auto& [key, to, part] : {std::tuple{"preprocess", &words.preprocess, &found->words.preprocess},
                                      {"postprocess", &words.postprocess, &found->words.postprocess}}) {
    if (!to->empty() || part->words.empty()) continue;
    if (written)
      *to = part->words;
    else
      words.concluded.push_back(std::string(key) + " = " + toml_text(part->words) + " (from " + part->from + ")");
  }
  if (written) words.labels = found->words.labels.words;
  return as_options(found->question) + (found->name.empty() ? "" : ", or choose by --as " + found->name);
}

ModelWords model_words(const cli::Arguments& args, std::string model) {
  return {.model = std::move(model),
          .preprocess = args.text("preprocess"),
          .postprocess = args.text("postprocess"),
          .picture = {},
          .as = args.text("as"),
          .labels = {},
          .concluded = {},
          .labels_file = args.text("labels"),
          .cores = {}};
}

std::string name_of_model(const std::string& path) {
  std::string name;
  for (const char c : std::filesystem::path(path).stem().string()) {
    const auto byte = static_cast<unsigned char>(c);
    name += std::isalnum(byte) != 0 ? static_cast<char>(std::tolower(byte)) : c == '.' || c == '_' ? '_' : '-';
  }
  return name.empty() ? "model" : name.substr(0, 63);
}

std::string config_of_model(const ModelWords& words) {
  std::string text = "# Made from " + std::filesystem::path(words.model).filename().string() +
                     "; docs/guide/configuration.md says what each key means.\n";
  if (words.cores.empty()) {
    text += "cpu = \"auto\"\n";
  } else {
    text += "[[partition]]\nname = \"cpu\"\nkind = \"cpu\"\ncores = " + toml_text(words.cores) + "\n";
  }
  return text + application_of_model(words, name_of_model(words.model));
}

std::string application_of_model(const ModelWords& words, const std::string& name) {
  std::string text = "\n[[application]]\nname = " + toml_text(name) +
                     "\nslo_ms = " + (words.slo_ms > 0 ? number(words.slo_ms) : toml_text("auto")) + "\n";
  text += "\n  [[application.module]]\n  name = " + toml_text(name) + "\n";
  text += "  model = " + toml_text(std::filesystem::absolute(words.model).lexically_normal().string()) + "\n";
  if (!words.preprocess.empty()) text += "  preprocess = " + toml_text(words.preprocess) + "\n";
  if (!words.postprocess.empty()) text += "  postprocess = " + toml_text(words.postprocess) + "\n";
  for (const std::string& line : words.concluded) text += "  # " + line + "\n";
  if (!words.labels.empty()) {
    std::string list;
    for (std::size_t at = 0; at <= words.labels.size();) {
      const std::size_t tab = std::min(words.labels.find('\t', at), words.labels.size());
      list += (list.empty() ? "" : ", ") + toml_text(std::string_view(words.labels).substr(at, tab - at));
      at = tab + 1;
    }
    text += "  labels = [" + list + "]\n";
  }
  if (!words.labels_file.empty())
    text +=
        "  labels_file = " + toml_text(std::filesystem::absolute(words.labels_file).lexically_normal().string()) + "\n";
  return text;
}

}  // namespace leat::tools
