#include "tools/leat/try/readings.h"

#include <algorithm>

#include "tools/base/text/formatted.h"

namespace leat::tools {

std::vector<std::string> readings_in(const std::string& question) {
  constexpr std::size_t kMax = 3;
  static constexpr const char* kAnswers[] = {"boxes", "points",   "classes", "heads",    "map",
                                             "lines", "segments", "text",    "embedding"};
  std::vector<std::string> out;
  for (std::size_t at = question.find('"'); at != std::string::npos && out.size() < kMax;) {
    const std::size_t end = question.find('"', at + 1);
    if (end == std::string::npos) break;
    const std::string words = question.substr(at + 1, end - at - 1), first = words.substr(0, words.find(' '));
    const bool answer =
        std::any_of(std::begin(kAnswers), std::end(kAnswers), [&](const char* a) { return first == a; });
    if (answer && words.find("FILE") == std::string::npos && std::find(out.begin(), out.end(), words) == out.end())
      out.push_back(words);
    at = question.find('"', end + 1);
  }
  return out;
}

namespace {

// For a shell.
std::string quoted(const std::string& text) {
  const bool plain = text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,") ==
                     std::string::npos;
  if (plain && !text.empty()) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

std::string try_line(const std::string& model, const std::string& source, const std::string& preprocess,
                     const std::string& postprocess) {
  return "leat try " + quoted(model) + " " + quoted(source) + " --preprocess \"" + preprocess + "\" --postprocess \"" +
         postprocess + "\"";
}

std::string serve_line(const ModelWords& words, const std::string& question) {
  const std::vector<std::string> readings = readings_in(question);
  const std::string likely = readings.empty() ? "tensors" : readings[0];
  std::string out = "leat serve " + quoted(words.model) + " --preprocess \"" + words.preprocess +
                    "\" --postprocess \"" + (words.postprocess.empty() ? likely : words.postprocess) + "\"";
  if (!words.labels_file.empty()) out += " --labels " + quoted(words.labels_file);
  if (words.slo_ms > 0) out += " --slo-ms " + formatted("%.10g", words.slo_ms);
  if (!words.cores.empty()) out += " --cores " + quoted(words.cores);
  return out;
}

}  // namespace leat::tools
