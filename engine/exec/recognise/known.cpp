#include "engine/exec/recognise/known.h"

#include <fnmatch.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>

#include "engine/exec/decode/classes/class_names.h"
#include "engine/exec/model_files/sha256.h"
#include "engine/exec/recognise/known_models_text.h"
#include "engine/exec/recognise/norm.h"
#include "leat/tensor_types.h"
#include "tools/base/json/json.h"

namespace leat::exec {
namespace {

namespace fs = std::filesystem;

std::string trimmed(std::string_view text) {
  const std::size_t from = text.find_first_not_of(' '), to = text.find_last_not_of(' ');
  return from == std::string_view::npos ? std::string() : std::string(text.substr(from, to - from + 1));
}
std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> out;
  while (true) {
    const std::size_t end = std::min(text.find(at), text.size());
    out.push_back(trimmed(text.substr(0, end)));
    if (end == text.size()) return out;
    text.remove_prefix(end + 1);
  }
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

bool dim_matches(const std::string& pattern, std::int64_t dim, std::map<std::string, std::int64_t>& letters) {
  if (pattern == "?") return true;
  if (pattern == "open") return dim < 0;
  const std::vector<std::string> choices = split(pattern, '|');
  if (choices.size() == 1 && !is_number(pattern)) return letters.emplace(pattern, dim).first->second == dim;
  return std::any_of(choices.begin(), choices.end(), [&](const std::string& c) {
    return c == "open" ? dim < 0 : dim >= 0 && is_number(c) && std::to_string(dim) == c;
  });
}

bool ports_match(const std::vector<std::string>& patterns, const std::vector<ModelPort>& ports,
                 std::map<std::string, std::int64_t>& letters) {
  if (patterns.empty()) return true;
  const bool more = patterns.back() == "...";
  const std::size_t described = patterns.size() - (more ? 1 : 0);
  if (more ? ports.size() < described : ports.size() != described) return false;
  for (std::size_t i = 0; i < described; ++i)
    if (!port_matches(patterns[i], ports[i], letters)) return false;
  return true;
}

bool is(const KnownModel& k, const ModelFacts& f) {
  std::map<std::string, std::int64_t> letters;
  if (!ports_match(k.inputs, f.inputs, letters) || !ports_match(k.outputs, f.outputs, letters)) return false;
  for (std::size_t i = 0; i < k.tails.size(); ++i)
    if (!k.tails[i].empty() && f.last(i) != k.tails[i]) return false;
  const auto uses = [&](const std::string& o) { return f.operations.contains(o); };
  if (!std::all_of(k.uses.begin(), k.uses.end(), uses) || std::any_of(k.lacks.begin(), k.lacks.end(), uses))
    return false;
  for (const auto& [operation, range] : k.counts) {
    const auto at = f.operations.find(operation);
    const std::uint32_t n = at == f.operations.end() ? 0 : at->second;
    if (n < range.first || n > range.second) return false;
  }
  if (k.stem != 0 && k.stem != f.stem) return false;
  for (const std::string& name : k.mentions)
    if (f.names.find(name) == std::string::npos) return false;
  if (!k.graph_norm.empty()) {
    const std::string range = range_wanted(f.norm);
    if (k.graph_norm != (range.empty() ? "none" : range)) return false;
  }
  return k.producer.empty() || f.producer.find(k.producer) != std::string::npos;
}

// The file's SHA-256, taken when it is first asked for. Empty: it cannot be had, and no entry is about it.
class FileSum {
 public:
  explicit FileSum(const std::string& path) : path_(path) {}

  bool among(const std::vector<std::string>& sums) {
    if (!sum_) {
      std::ifstream file(path_, std::ios::binary);
      auto sum = sha256_hex(std::string(std::istreambuf_iterator<char>(file), {}));
      sum_ = file && sum ? *std::move(sum) : std::string();
    }
    return !sum_->empty() && std::find(sums.begin(), sums.end(), *sum_) != sums.end();
  }

 private:
  const std::string& path_;
  std::optional<std::string> sum_;
};

// Reads one list; what it cannot mean is one line.
class Reader {
 public:
  Reader(std::string file, std::vector<KnownModel>& to) : file_(std::move(file)), to_(to) {}

  Status read(const std::string& text) {
    JsonError why("");
    const auto json = Json::try_parse(text, &why);
    if (!json) return fault(why.what());
    const Json* const models = json->is_object() ? json->find("models") : nullptr;
    if (models == nullptr || !models->is_array()) return fault("it needs \"models\": a list");
    for (std::size_t i = 0; i < models->size(); ++i)
      if (auto status = model(models->at(i)); !status) return status;
    return Done{};
  }

 private:
  Status fault(const std::string& what) const {
    return Error{(file_.empty() ? std::string("known models") : file_) + ": " + what};
  }
  Status model(const Json& j) {
    static const std::set<std::string> kKnown = {"name",        "what",    "preprocess", "preprocess_open",
                                                 "postprocess", "labels",  "source",     "sure",
                                                 "inputs",      "outputs", "tails",      "uses",
                                                 "lacks",       "counts",  "mentions",   "graph_norm",
                                                 "producer",    "stem",    "sha256"};
    KnownModel k;
    k.from = file_;
    if (!j.is_object()) return fault("a model is an object with \"name\", \"preprocess\" and \"postprocess\"");
    for (const auto& [key, value] : j.items())
      if (!kKnown.contains(std::string(key))) return fault("\"" + std::string(key) + "\" is no key of a model");
    for (const auto& [key, to] : {std::pair{"name", &k.name},
                                  {"what", &k.what},
                                  {"preprocess", &k.preprocess},
                                  {"preprocess_open", &k.preprocess_open},
                                  {"postprocess", &k.postprocess},
                                  {"source", &k.source},
                                  {"graph_norm", &k.graph_norm},
                                  {"producer", &k.producer}})
      if (const Json* const at = j.find(key); at != nullptr) {
        if (!at->is_string()) return fault("\"" + std::string(key) + "\" is a text");
        *to = at->get<std::string>();
      }
    if (k.name.empty() || k.preprocess.empty() || k.postprocess.empty())
      return fault("a model needs \"name\", \"preprocess\" and \"postprocess\"");
    ClassNames names;
    for (const auto& [key, to] : {std::pair{"inputs", &k.inputs},
                                  {"outputs", &k.outputs},
                                  {"tails", &k.tails},
                                  {"uses", &k.uses},
                                  {"lacks", &k.lacks},
                                  {"mentions", &k.mentions},
                                  {"sha256", &k.sha256},
                                  {"labels", &names}})
      if (const Json* const at = j.find(key); at != nullptr) {
        if (!at->is_array()) return fault("\"" + std::string(key) + "\" of " + k.name + " is a list of texts");
        for (std::size_t i = 0; i < at->size(); ++i) {
          if (!at->at(i).is_string()) return fault("\"" + std::string(key) + "\" of " + k.name + " is a list of texts");
          to->push_back(at->at(i).get<std::string>());
        }
      }
    k.labels = joined(names);
    for (const std::string& sum : k.sha256)
      if (sum.size() != 64 || sum.find_first_not_of("0123456789abcdef") != std::string::npos)
        return fault("\"sha256\" of " + k.name + " is a list of what sha256sum prints, 64 digits each");
    // A user's own model is what he says it is.
    k.sure = !file_.empty();
    if (const Json* const at = j.find("sure"); at != nullptr && at->is_boolean()) k.sure = at->get<bool>();
    if (const Json* const at = j.find("stem"); at != nullptr) {
      if (!at->is_number()) return fault("\"stem\" of " + k.name + " is a number");
      k.stem = at->get<std::int64_t>();
    }
    if (auto status = counts(j, k); !status) return status;
    to_.push_back(std::move(k));
    return Done{};
  }
  Status counts(const Json& j, KnownModel& k) const {
    const Json* const at = j.find("counts");
    if (at == nullptr) return Done{};
    const Status wrong = fault("\"counts\" of " + k.name + " is like {\"Conv\": [50, 60]}: at least, at most");
    if (!at->is_object()) return wrong;
    for (const auto& [operation, range] : at->items()) {
      if (!range.is_array() || range.size() != 2 || !range.at(0).is_number() || !range.at(1).is_number()) return wrong;
      k.counts[std::string(operation)] = {range.at(0).get<std::uint32_t>(), range.at(1).get<std::uint32_t>()};
    }
    return Done{};
  }

  std::string file_;
  std::vector<KnownModel>& to_;
};

std::vector<std::string> users_files() {
  std::vector<std::string> out;
  const char* const config = std::getenv("XDG_CONFIG_HOME");
  const char* const home = std::getenv("HOME");
  if (config != nullptr && *config == '/')
    out.push_back(std::string(config) + "/leat/models.json");
  else if (home != nullptr && *home == '/')
    out.push_back(std::string(home) + "/.config/leat/models.json");
  out.emplace_back("/etc/leat/models.json");
  return out;
}

}  // namespace

bool port_matches(std::string_view pattern, const ModelPort& port, std::map<std::string, std::int64_t>& letters) {
  const std::size_t open = pattern.find('['), close = pattern.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return false;
  const std::string name = trimmed(pattern.substr(0, open)), type = trimmed(pattern.substr(close + 1));
  if (!name.empty() && ::fnmatch(name.c_str(), port.name.c_str(), 0) != 0) return false;
  if (!type.empty()) {
    const char* const own = leat_dtype_name(port.dtype);
    if (own == nullptr || type != own) return false;
  }
  const std::vector<std::string> dims = split(pattern.substr(open + 1, close - open - 1), ',');
  if (dims.size() != port.rank()) return false;
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (!dim_matches(dims[d], port.shape[d], letters)) return false;
  return true;
}

Result<std::vector<KnownModel>> known_models() {
  std::vector<KnownModel> out;
  for (const std::string& file : users_files()) {
    std::ifstream in(file, std::ios::binary);
    if (!in) continue;
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    if (auto status = Reader(file, out).read(text); !status) return Error{status.error()};
  }
  if (auto status = Reader("", out).read(kKnownModelsText); !status) return Error{status.error()};
  return out;
}

std::string preprocess_of(const KnownModel& k, const ModelFacts& f) {
  const bool open = f.width() < 0 || f.height() < 0;
  return beside_graph(open && !k.preprocess_open.empty() ? k.preprocess_open : k.preprocess, f.norm);
}

std::vector<KnownModel> matching(const std::vector<KnownModel>& known, const ModelFacts& f) {
  std::vector<KnownModel> out;
  FileSum sum(f.path);
  for (const KnownModel& k : known) {
    if (k.from.empty() && !out.empty() && !out.front().from.empty()) break;  // behind a user's
    // An entry of no structure is there to be chosen by name.
    const bool described = !k.outputs.empty() || !k.inputs.empty() || !k.mentions.empty() || !k.sha256.empty();
    if (described && is(k, f) && (k.sha256.empty() || sum.among(k.sha256))) out.push_back(k);
  }
  const auto named = std::find_if(out.begin(), out.end(), [](const KnownModel& k) { return !k.sha256.empty(); });
  if (named != out.end()) out = std::vector<KnownModel>{*named};
  return out;
}

}  // namespace leat::exec
