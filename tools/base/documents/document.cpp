#include "tools/base/documents/document.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "tools/base/documents/toml.h"
#include "tools/base/text/nearest.h"

namespace leat {
namespace {

std::string plain(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.15g", value);
  return text;
}

// ", 1 to 64"; nothing where there are no bounds.
template <class Number>
std::string between(Number min, Number max, std::string (*text)(Number)) {
  const bool below = static_cast<double>(min) > -kHuge, above = static_cast<double>(max) < kHuge;
  if (below && above) return ", " + text(min) + " to " + text(max);
  return below ? ", " + text(min) + " or more" : above ? ", " + text(max) + " or less" : "";
}

// ":3:7" of a byte offset.
std::string line_and_column(std::string_view text, std::size_t offset) {
  offset = std::min(offset, text.size());
  const std::string_view before = text.substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t column = offset - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
  return ":" + std::to_string(line) + ":" + std::to_string(column);
}

// The line of each key and each entry of a list.
void note_lines(const toml::node& node, const std::string& path, std::map<std::string, std::uint32_t>& lines) {
  lines[path] = node.source().begin.line;
  if (const auto* table = node.as_table())
    for (const auto& [key, value] : *table)
      note_lines(value, path.empty() ? std::string(key.str()) : path + "." + std::string(key.str()), lines);
  if (const auto* list = node.as_array())
    for (std::size_t i = 0; i < list->size(); ++i) note_lines((*list)[i], path + "[" + std::to_string(i) + "]", lines);
}

// Without the numbers of entries, which the line stands for.
std::string without_indexes(const std::string& path) {
  std::string out;
  bool inside = false;
  for (const char c : path) {
    inside = inside || c == '[';
    if (!inside) out += c;
    inside = inside && c != ']';
  }
  return out;
}

}  // namespace

JsonDocument::JsonDocument(std::string name, std::string_view json) : name_(std::move(name)) {
  JsonError why("");
  if (auto parsed = Json::try_parse(json, &why)) {
    root_ = *std::move(parsed);
  } else {
    error_ = name_ + line_and_column(json, why.byte) + ": is not valid JSON; correct the syntax there";
  }
}

std::unique_ptr<JsonDocument> JsonDocument::from_toml(std::string name, std::string_view text) {
  const ParsedToml parsed = parse_toml(text);
  if (parsed.error.empty()) {
    std::ostringstream json;
    json << toml::json_formatter{parsed.root};
    auto document = std::make_unique<JsonDocument>(std::move(name), json.str());
    note_lines(parsed.root, "", document->lines_);
    return document;
  }
  auto document = std::make_unique<JsonDocument>(name, "null");
  document->error_ = name + ":" + std::to_string(parsed.line) + ":" + std::to_string(parsed.column) +
                     ": is not valid TOML: " + parsed.error;
  return document;
}

std::unique_ptr<JsonDocument> JsonDocument::of(const std::string& name, std::string_view text) {
  return name.ends_with(".toml") ? from_toml(name, text) : std::make_unique<JsonDocument>(name, text);
}

JsonCursor JsonDocument::root() { return {this, failed() ? nullptr : &root_, ""}; }

void JsonCursor::fail(const std::string& what) const {
  if (document_->error_.empty()) document_->error_ = place() + what;
}

std::uint32_t JsonCursor::line() const {
  for (std::string path = path_; !path.empty();) {  // of a key that is missing: its table's
    if (const auto line = document_->lines_.find(path); line != document_->lines_.end()) return line->second;
    const std::size_t end = path.find_last_of(".[");
    path.resize(end == std::string::npos ? 0 : end);
  }
  return 0;
}

std::string JsonCursor::place() const {
  if (document_->word_)
    return document_->name_ + ": " + document_->word_(without_indexes(path_.substr(path_.rfind('.') + 1)));
  const std::uint32_t at = line();
  const std::string key = at != 0 ? without_indexes(path_) : path_;
  return document_->name_ + (at != 0 ? ":" + std::to_string(at) : "") + ": " + (key.empty() ? "" : key + ": ");
}

std::string JsonCursor::place(std::string_view key) const { return find(key).place(); }

const Json* JsonCursor::member(std::string_view key) const {
  if (!is_table()) return nullptr;
  return node_->find(key);
}

JsonCursor JsonCursor::below(const Json* node, std::string_view key) const {
  return {document_, node, path_.empty() ? std::string(key) : path_ + "." + std::string(key)};
}

JsonCursor JsonCursor::find(std::string_view key) const {
  if (const Json* const found = member(key)) return below(found, key);
  for (const RenamedKey& renamed : document_->renamed_)
    if (renamed.name == key)
      if (const Json* const found = member(renamed.old_name)) return below(found, renamed.old_name);
  return below(nullptr, key);
}

JsonCursor JsonCursor::at(std::string_view key) const {
  JsonCursor found = find(key);
  if (node_ == nullptr || found) return found;
  if (node_->is_object())
    found.fail("missing; add it");
  else
    fail("must be a table of keys");
  return found;
}

std::vector<std::string> JsonCursor::keys() const {
  std::vector<std::string> out;
  if (is_table())
    for (const auto& [name, value] : node_->items()) out.push_back(name);
  return out;
}

void JsonCursor::only(std::span<const std::string_view> keys, std::string_view also) const {
  if (node_ == nullptr) return;
  if (!node_->is_object()) return fail("must be a table of keys");
  const auto known = [&](std::string_view name) {
    return name == also || std::find(keys.begin(), keys.end(), name) != keys.end();
  };
  std::optional<JsonCursor> unknown;  // the first of the file
  for (const std::string& name : this->keys()) {
    if (known(name)) continue;
    const JsonCursor here = find(name);
    const auto renamed = std::find_if(document_->renamed_.begin(), document_->renamed_.end(),
                                      [&](const RenamedKey& r) { return r.old_name == name && known(r.name); });
    if (renamed == document_->renamed_.end()) {
      if (!unknown || here.line() < unknown->line()) unknown = here;
      continue;
    }
    const std::string now(renamed->name);
    if (member(now) != nullptr) here.fail("is called " + now + " now, which stands here too; leave this one out");
    document_->warnings_.push_back(here.place() + "is called " + now +
                                   " now; write that, the old name goes with the next version");
  }
  if (!unknown) return;
  const std::vector<std::string> names(keys.begin(), keys.end());
  const std::string near = text::nearest(unknown->path_.substr(path_.empty() ? 0 : path_.size() + 1), names);
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  unknown->fail("unknown key; " + (near.empty() ? "the keys here are " + list : "did you mean '" + near + "'?"));
}

std::vector<JsonCursor> JsonCursor::items() const {
  std::vector<JsonCursor> out;
  if (node_ == nullptr) return out;
  if (!node_->is_array()) {
    fail("must be a list");
    return out;
  }
  out.reserve(node_->size());
  for (std::size_t i = 0; i < node_->size(); ++i)
    out.push_back({document_, &(*node_)[i], path_ + "[" + std::to_string(i) + "]"});
  return out;
}

double JsonCursor::number(double min, double max) const {
  if (node_ == nullptr) return min;
  const double value = node_->is_number() ? node_->get<double>() : std::nan("");
  if (value >= min && value <= max) return value;
  fail((node_->is_number() ? "is " + plain(value) + "; " : "") + "must be a number" + between(min, max, plain));
  return min;
}

std::int64_t JsonCursor::integer(std::int64_t min, std::int64_t max) const {
  if (node_ == nullptr) return min;
  if (node_->is_integer()) {
    const auto value = node_->get<std::int64_t>();
    if (value >= min && value <= max) return value;
  }
  fail((node_->is_number() ? "is " + *scalar() + "; " : "") + "must be a whole number" +
       between<std::int64_t>(min, max, std::to_string));
  return min;
}

std::string JsonCursor::text() const {
  if (node_ == nullptr) return {};
  if (node_->is_string()) return node_->get<std::string>();
  fail("must be a text in quotes");
  return {};
}

bool JsonCursor::boolean() const {
  if (node_ == nullptr) return false;
  if (node_->is_boolean()) return node_->get<bool>();
  fail("must be true or false");
  return false;
}

std::optional<std::string> JsonCursor::scalar() const {
  if (node_ == nullptr) return std::nullopt;
  if (node_->is_string()) return node_->get<std::string>();
  if (node_->is_boolean()) return node_->get<bool>() ? "true" : "false";
  if (node_->is_integer()) return std::to_string(node_->get<std::int64_t>());
  if (node_->is_number()) return plain(node_->get<double>());
  return std::nullopt;
}

double JsonCursor::number_or(std::string_view key, double otherwise, double min, double max) const {
  const JsonCursor c = find(key);
  return c ? c.number(min, max) : otherwise;
}

std::int64_t JsonCursor::integer_or(std::string_view key, std::int64_t otherwise, std::int64_t min,
                                    std::int64_t max) const {
  const JsonCursor c = find(key);
  return c ? c.integer(min, max) : otherwise;
}

std::string JsonCursor::text_or(std::string_view key, std::string_view otherwise) const {
  const JsonCursor c = find(key);
  return c ? c.text() : std::string(otherwise);
}

std::string JsonCursor::needed_text(std::string_view key) const {
  const JsonCursor c = at(key);
  std::string out = c.text();
  if (c && out.empty()) c.fail("must not be empty");
  return out;
}

std::string JsonCursor::choice_or(std::string_view key, std::string_view otherwise,
                                  std::initializer_list<std::string_view> choices) const {
  std::string out = text_or(key, otherwise);
  if (std::find(choices.begin(), choices.end(), out) != choices.end()) return out;
  std::string list;
  for (const auto choice : choices) list += (list.empty() ? "" : ", ") + std::string(choice);
  find(key).fail("'" + out + "' is not known; use one of " + list);
  return std::string(otherwise);
}

std::vector<double> JsonCursor::numbers(std::string_view key, double min, double max) const {
  const JsonCursor c = find(key);
  if (c.is_number()) return {c.number(min, max)};
  std::vector<double> out;
  for (const JsonCursor& item : c.items()) out.push_back(item.number(min, max));
  if (c && out.empty()) c.fail("must be a list of numbers" + between(min, max, plain));
  return out;
}

std::vector<std::int64_t> JsonCursor::integers(std::string_view key, std::int64_t min, std::int64_t max) const {
  std::vector<std::int64_t> out;
  for (const JsonCursor& item : find(key).items()) out.push_back(item.integer(min, max));
  return out;
}

std::vector<std::string> JsonCursor::texts(std::string_view key) const {
  std::vector<std::string> out;
  for (const JsonCursor& item : find(key).items()) out.push_back(item.text());
  return out;
}

std::vector<JsonCursor> JsonCursor::tables(std::string_view key) const {
  const JsonCursor c = find(key);
  if (!c) return {};
  std::vector<JsonCursor> out = c.is_list() ? c.items() : std::vector<JsonCursor>{};
  if (c.is_list() && std::all_of(out.begin(), out.end(), [](const JsonCursor& item) { return item.is_table(); }))
    return out;
  c.fail("must be tables: write [[" + without_indexes(c.path_) + "]]");
  return {};
}

}  // namespace leat
