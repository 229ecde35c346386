#include "planner/io/json_reader.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "planner/io/toml.h"
#include "tools/base/json/json.h"

namespace leat::planner {
namespace {

std::string plain(double value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

// "line 3, column 7" of a byte offset.
std::string place(std::string_view text, std::size_t offset) {
  offset = std::min(offset, text.size());
  const std::string_view before = text.substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t column = offset - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
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

}  // namespace

JsonDocument::JsonDocument(std::string name, std::string_view text) : name_(std::move(name)) {
  JsonError why("");
  if (auto json = Json::try_parse(text, &why)) {
    root_ = *std::move(json);
  } else {
    error_ = name_ + ": " + place(text, why.byte) + ": not valid JSON; correct the syntax there";
  }
}

JsonDocument::~JsonDocument() = default;

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
  document->error_ = name + ": line " + std::to_string(parsed.line) + ", column " + std::to_string(parsed.column) +
                     ": not valid TOML: " + parsed.error;
  return document;
}

JsonCursor JsonDocument::root() { return {this, failed() ? nullptr : &root_, ""}; }

void JsonCursor::fail(const std::string& what) const {
  if (document_->error_.empty()) document_->error_ = place() + ": " + what;
}

std::string JsonCursor::place() const {
  std::string out = document_->name_;
  auto line = document_->lines_.find(path_);
  if (line == document_->lines_.end() && path_.rfind('.') != std::string::npos)  // a key that is missing
    line = document_->lines_.find(path_.substr(0, path_.rfind('.')));
  if (line != document_->lines_.end() && !path_.empty()) out += ": line " + std::to_string(line->second);
  return path_.empty() ? out : out + ": " + path_;
}

bool JsonCursor::has(std::string_view key) const {
  return node_ != nullptr && node_->is_object() && node_->contains(key);
}

JsonCursor JsonCursor::at(std::string_view key) const {
  const std::string path = path_.empty() ? std::string(key) : path_ + "." + std::string(key);
  if (node_ == nullptr) return {document_, nullptr, path};
  if (!node_->is_object()) {
    fail("must be a table of keys");
    return {document_, nullptr, path};
  }
  if (const Json* const found = node_->find(key)) return {document_, found, path};
  JsonCursor missing(document_, nullptr, path);
  missing.fail("missing; add it");
  return missing;
}

std::vector<JsonCursor> JsonCursor::items() const {
  std::vector<JsonCursor> out;
  if (node_ == nullptr) return out;
  if (!node_->is_array()) {
    fail("must be a list");
    return out;
  }
  out.reserve(node_->size());
  for (std::size_t i = 0; i < node_->size(); ++i) {
    out.push_back({document_, &(*node_)[i], path_ + "[" + std::to_string(i) + "]"});
  }
  return out;
}

double JsonCursor::number(double least, double most) const {
  if (node_ == nullptr) return least;
  if (!node_->is_number()) {
    fail("must be a number");
    return least;
  }
  const double value = node_->get<double>();
  if (!std::isfinite(value) || value < least || value > most) {
    fail("is " + plain(value) + "; must be between " + plain(least) + " and " + plain(most));
    return least;
  }
  return value;
}

std::int64_t JsonCursor::integer(std::int64_t least, std::int64_t most) const {
  if (node_ == nullptr) return least;
  if (!node_->is_integer()) {
    fail("must be a whole number");
    return least;
  }
  const auto value = node_->get<std::int64_t>();
  if (value < least || value > most) {
    fail("is " + std::to_string(value) + "; must be between " + std::to_string(least) + " and " + std::to_string(most));
    return least;
  }
  return value;
}

std::string JsonCursor::text() const {
  if (node_ == nullptr) return {};
  if (!node_->is_string()) {
    fail("must be a text");
    return {};
  }
  return node_->get<std::string>();
}

bool JsonCursor::boolean() const {
  if (node_ == nullptr) return false;
  if (!node_->is_boolean()) {
    fail("must be true or false");
    return false;
  }
  return node_->get<bool>();
}

bool JsonCursor::is_text() const { return node_ != nullptr && node_->is_string(); }
bool JsonCursor::is_number() const { return node_ != nullptr && node_->is_number(); }

double JsonCursor::number_or(std::string_view key, double otherwise, double least, double most) const {
  return has(key) ? at(key).number(least, most) : otherwise;
}
std::int64_t JsonCursor::integer_or(std::string_view key, std::int64_t otherwise, std::int64_t least,
                                    std::int64_t most) const {
  return has(key) ? at(key).integer(least, most) : otherwise;
}
std::string JsonCursor::text_or(std::string_view key, std::string_view otherwise) const {
  return has(key) ? at(key).text() : std::string(otherwise);
}

void JsonCursor::only(std::span<const std::string_view> keys, std::string_view also) const {
  if (node_ == nullptr) return;
  if (!node_->is_object()) return fail("must be a table of keys");
  for (const auto& [name, value] : node_->items()) {
    if (name == also || std::find(keys.begin(), keys.end(), name) != keys.end()) continue;
    std::string known;
    for (const auto key : keys) known += (known.empty() ? "" : ", ") + std::string(key);
    return fail("unknown key '" + name + "'; known here: " + known);
  }
}

}  // namespace leat::planner
