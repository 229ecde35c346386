// Reading JSON with one-line errors that name the file and the key. A document remembers its first error; after it
// every read returns a harmless default, so that a reader is written straight through and asks once at the end. One
// thread a document; a cursor lives no longer than its document.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leat/result.hpp"
#include "tools/base/json/json.h"

namespace leat::planner {

inline constexpr double kHuge = 1e15;  // no quantity in a file is larger

class JsonDocument;

class JsonCursor {
 public:
  JsonCursor at(std::string_view key) const;  // error when the key is missing
  bool has(std::string_view key) const;
  std::vector<JsonCursor> items() const;           // error when it is no array
  double number(double least, double most) const;  // error when it is no finite number in [least, most]
  std::int64_t integer(std::int64_t least, std::int64_t most) const;
  std::string text() const;  // error when it is no string
  bool boolean() const;
  bool is_text() const;
  bool is_number() const;
  double number_or(std::string_view key, double otherwise, double least, double most) const;
  std::int64_t integer_or(std::string_view key, std::int64_t otherwise, std::int64_t least, std::int64_t most) const;
  std::string text_or(std::string_view key, std::string_view otherwise) const;
  // Error for a key that is not listed: a misspelt key must not be a silent default.
  void only(std::initializer_list<std::string_view> keys) const { only(std::span(keys.begin(), keys.size())); }
  void only(std::span<const std::string_view> keys, std::string_view also = {}) const;
  // Records "FILE: KEY: what" unless an earlier error stands; from TOML "FILE: line 3: KEY: what".
  void fail(const std::string& what) const;
  // "FILE: line 3: KEY", for messages of those who use what was read.
  std::string place() const;
  const std::string& path() const { return path_; }

 private:
  friend class JsonDocument;
  JsonCursor(JsonDocument* document, const Json* node, std::string path)
      : document_(document), node_(node), path_(std::move(path)) {}
  JsonDocument* document_;
  const Json* node_;  // null after an error
  std::string path_;
};

class JsonDocument {
 public:
  // `name` (a file's path) opens every error. Syntax errors name line and column.
  JsonDocument(std::string name, std::string_view text);
  // The same document from TOML; syntax errors name line and column, others line and key.
  static std::unique_ptr<JsonDocument> from_toml(std::string name, std::string_view text);
  ~JsonDocument();
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  JsonCursor root();
  bool failed() const { return !error_.empty(); }
  Error error() const { return Error{error_}; }

 private:
  friend class JsonCursor;
  std::string name_;
  std::string error_;
  Json root_;
  std::map<std::string, std::uint32_t> lines_;  // by path; empty where it was JSON
};

}  // namespace leat::planner
