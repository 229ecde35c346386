#include "engine/daemon/configuration/toml_cursor.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tools/base/text/nearest.h"

namespace leat::daemon {
namespace {

std::string plain(double v) {
  std::string s = std::to_string(v);
  s.erase(s.find_last_not_of('0') + 1);
  if (!s.empty() && s.back() == '.') s.pop_back();
  return s;
}

// The option of `leat serve` and `leat try` that becomes this key; empty: none does.
std::string option_of(std::string_view path) {
  const std::string_view key = path.substr(path.rfind('.') + 1);
  for (const auto& [of_file, option] : {std::pair{"preprocess", "--preprocess: "},
                                        {"postprocess", "--postprocess: "},
                                        {"labels_file", "--labels: "},
                                        {"labels", "--labels: "},
                                        {"slo_ms", "--slo-ms: "},
                                        {"cores", "--cores: "}})
    if (key == of_file) return option;
  return {};
}

}  // namespace

void TomlCursor::fail(const std::string& text) const {
  if (document_->error.empty()) document_->error = place() + text;
}

std::string TomlCursor::place() const {
  if (document_->made_from_model) return document_->file + ": " + option_of(path_);
  const auto line = node_ != nullptr ? node_->source().begin.line : 0;
  return document_->file + ":" + (line != 0 ? std::to_string(line) + ":" : "") + " " +
         (path_.empty() ? "" : path_ + ": ");
}

std::string TomlCursor::place(std::string_view key) const {
  const TomlCursor value = at(key);
  return value ? value.place() : TomlCursor(*document_, node_, value.path_).place();
}

const toml::table* TomlCursor::table() const { return node_ != nullptr ? node_->as_table() : nullptr; }

bool TomlCursor::has(std::string_view key) const { return table() != nullptr && table()->contains(key); }

TomlCursor TomlCursor::at(std::string_view key) const {
  const toml::node* node = table() != nullptr ? table()->get(key) : nullptr;
  return {*document_, node, path_.empty() ? std::string(key) : path_ + "." + std::string(key)};
}

std::vector<std::string> TomlCursor::keys() const {
  std::vector<std::string> out;
  if (table() != nullptr)
    for (const auto& [key, value] : *table()) out.emplace_back(key.str());
  return out;
}

void TomlCursor::only(std::span<const std::string_view> known) const {
  if (node_ != nullptr && table() == nullptr) return fail("must be a table");
  // In the order of the file, so that the first complaint is about the first line.
  std::vector<TomlCursor> unknown;
  for (const auto& key : keys())
    if (std::find(known.begin(), known.end(), key) == known.end()) unknown.push_back(at(key));
  if (unknown.empty()) return;
  const auto first = std::min_element(unknown.begin(), unknown.end(), [](const TomlCursor& a, const TomlCursor& b) {
    return a.node_->source().begin.line < b.node_->source().begin.line;
  });
  const std::string word = first->path_.substr(path_.empty() ? 0 : path_.size() + 1);
  const std::vector<std::string> names(known.begin(), known.end());
  const std::string near = text::nearest(word, names);
  std::string list;
  for (const auto& n : names) list += (list.empty() ? "" : ", ") + n;
  first->fail("unknown key; " + (near.empty() ? "the keys here are " + list : "did you mean '" + near + "'?"));
}

std::string TomlCursor::text(std::string_view key, std::string fallback) const {
  const TomlCursor c = at(key);
  if (!c) return fallback;
  const auto v = c.node_->value_exact<std::string>();
  if (!v) c.fail("must be text in quotes");
  return v.value_or(fallback);
}

std::string TomlCursor::needed_text(std::string_view key) const {
  if (!has(key)) {
    fail("the key '" + std::string(key) + "' is missing; add it");
    return {};
  }
  std::string v = text(key, "");
  if (v.empty()) at(key).fail("must not be empty");
  return v;
}

bool TomlCursor::boolean(std::string_view key, bool fallback) const {
  const TomlCursor c = at(key);
  if (!c) return fallback;
  const auto v = c.node_->value_exact<bool>();
  if (!v) c.fail("must be true or false");
  return v.value_or(fallback);
}

std::int64_t TomlCursor::integer(std::string_view key, std::int64_t fallback, std::int64_t least,
                                 std::int64_t most) const {
  const TomlCursor c = at(key);
  if (!c) return fallback;
  const auto v = c.node_->value_exact<std::int64_t>();
  if (!v || *v < least || *v > most) {
    c.fail("must be a whole number, " + std::to_string(least) + " to " + std::to_string(most));
    return fallback;
  }
  return *v;
}

double TomlCursor::number(std::string_view key, double fallback, double least, double most) const {
  const TomlCursor c = at(key);
  if (!c) return fallback;
  const auto v = c.node_->value<double>();
  if (!v || !(*v >= least && *v <= most)) {
    c.fail("must be a number, " + plain(least) + " to " + plain(most));
    return fallback;
  }
  return *v;
}

std::vector<double> TomlCursor::numbers(std::string_view key, double least, double most) const {
  const TomlCursor c = at(key);
  std::vector<double> out;
  if (!c) return out;
  if (const auto single = c.node_->value<double>()) out.push_back(*single);
  if (const auto* list = c.node_->as_array())
    for (const auto& item : *list) out.push_back(item.value<double>().value_or(std::nan("")));
  const bool bad =
      out.empty() || std::any_of(out.begin(), out.end(), [&](double v) { return !(v >= least && v <= most); });
  if (bad) c.fail("must be a list of numbers, each " + plain(least) + " to " + plain(most));
  return bad ? std::vector<double>{} : out;
}

std::vector<std::int64_t> TomlCursor::integers(std::string_view key, std::int64_t least, std::int64_t most) const {
  const TomlCursor c = at(key);
  std::vector<std::int64_t> out;
  if (!c) return out;
  const auto* list = c.node_->as_array();
  bool bad = list == nullptr;
  for (std::size_t i = 0; !bad && i < list->size(); ++i) {
    const auto v = list->get(i)->value_exact<std::int64_t>();
    bad = !v || *v < least || *v > most;
    if (!bad) out.push_back(*v);
  }
  if (bad) c.fail("must be a list of whole numbers, each " + std::to_string(least) + " to " + std::to_string(most));
  return out;
}

std::vector<std::string> TomlCursor::texts(std::string_view key) const {
  const TomlCursor c = at(key);
  std::vector<std::string> out;
  if (!c) return out;
  const auto* list = c.node_->as_array();
  bool bad = list == nullptr;
  for (std::size_t i = 0; !bad && i < list->size(); ++i) {
    const auto v = list->get(i)->value_exact<std::string>();
    bad = !v;
    if (!bad) out.push_back(*v);
  }
  if (bad) c.fail("must be a list of texts in quotes");
  return out;
}

std::vector<std::vector<std::string>> TomlCursor::lists() const {
  std::vector<std::vector<std::string>> out;
  const auto* list = node_ != nullptr ? node_->as_array() : nullptr;
  bool bad = list == nullptr || list->empty();
  const auto take = [&](const toml::node& item, std::vector<std::string>& into) {
    const auto v = item.value_exact<std::string>();
    bad = bad || !v || v->find_first_of("\t\n") != std::string::npos;
    into.push_back(v.value_or(""));
  };
  for (std::size_t i = 0; !bad && i < list->size(); ++i) {
    const auto* inner = list->get(i)->as_array();
    if (inner != nullptr || out.empty()) out.emplace_back();
    if (inner == nullptr) take(*list->get(i), out.back());
    for (std::size_t j = 0; inner != nullptr && j < inner->size(); ++j) take(*inner->get(j), out.back());
  }
  if (bad) fail("must be a list of texts in quotes, or a list of such lists");
  return out;
}

std::string TomlCursor::choice(std::string_view key, std::string fallback,
                               std::initializer_list<std::string_view> choices) const {
  std::string v = text(key, fallback);
  if (std::find(choices.begin(), choices.end(), v) != choices.end()) return v;
  std::string list;
  for (const auto c : choices) list += (list.empty() ? "" : ", ") + std::string(c);
  at(key).fail("'" + v + "' is not known; use one of " + list);
  return fallback;
}

std::vector<TomlCursor> TomlCursor::tables(std::string_view key) const {
  const TomlCursor c = at(key);
  std::vector<TomlCursor> out;
  if (!c) return out;
  const auto* list = c.node_->as_array();
  if (list == nullptr || !list->is_array_of_tables()) {
    c.fail("must be tables: write [[" + c.path_ + "]]");
    return out;
  }
  for (const auto& item : *list) out.emplace_back(*document_, &item, c.path_);
  return out;
}

std::optional<std::string> TomlCursor::scalar() const {
  if (node_ == nullptr) return std::nullopt;
  if (const auto v = node_->value_exact<std::string>()) return *v;
  if (const auto v = node_->value_exact<bool>()) return *v ? "true" : "false";
  if (const auto v = node_->value_exact<std::int64_t>()) return std::to_string(*v);
  if (const auto v = node_->value_exact<double>()) return plain(*v);
  return std::nullopt;
}

}  // namespace leat::daemon
