#include "engine/daemon/workers/models/model_metadata.h"

#include <algorithm>
#include <utility>

#include "engine/daemon/deployment/deployment.h"
#include "engine/daemon/log.h"
#include "tools/base/text/units.h"

namespace leat::daemon {
namespace {

constexpr std::size_t kMaxNameBytes = 96 * 1024;  // they travel in one message

}  // namespace

void merge(const exec::Recognised& from, exec::Recognised& to) {
  for (const auto part : {&exec::Recognised::preprocess, &exec::Recognised::postprocess, &exec::Recognised::labels})
    if ((to.*part).words.empty()) to.*part = from.*part;
}

std::string class_names(const ApplicationConfig& application, const std::vector<exec::Recognised>& known) {
  std::vector<std::string> lines;
  for (std::size_t m = 0; m < application.modules.size(); ++m) {
    std::vector<std::string> heads = application.modules[m].labels;
    if (heads.empty() && !known[m].labels.words.empty()) heads = {known[m].labels.words};
    const std::size_t at = m == 0 ? 0 : 1 + first_head(application, m);
    if (!heads.empty()) lines.resize(std::max(lines.size(), at + heads.size()));
    for (std::size_t i = 0; i < heads.size(); ++i) lines[at + i] = heads[i];
  }
  std::string out;
  for (std::size_t i = 0; i < lines.size(); ++i) out += (i == 0 ? "" : "\n") + lines[i];
  if (out.size() <= kMaxNameBytes) return out;
  log_warning("application '" + application.application.name + "': its class names need " +
              text::bytes_text(out.size()) + ", and " + text::bytes_text(kMaxNameBytes) +
              " are passed on at most: clients see numbers");
  return {};
}

Json words_of(const exec::Recognised& known, const ModuleConfig& module) {
  const auto from = [](const exec::Concluded& c) { return c.from.empty() ? "the configuration" : c.from; };
  Json out = Json::object();
  for (const auto& [key, c] : {std::pair{"preprocess", &known.preprocess}, {"postprocess", &known.postprocess}})
    if (!c->words.empty()) out[key] = {{"words", c->words}, {"from", from(*c)}};
  const std::string& names =
      known.labels.words.empty() && !module.labels.empty() ? module.labels[0] : known.labels.words;
  if (!names.empty())
    out["labels"] = {{"count", std::count(names.begin(), names.end(), '\t') + 1},
                     {"first", names.substr(0, names.find('\t'))},
                     {"from", from(known.labels)}};
  return out;
}

}  // namespace leat::daemon
