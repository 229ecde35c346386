// JSON and TOML files, read with one-line errors that name the file, the line and the key: "FILE:3: KEY: what is wrong;
// what to do". Lines are known of TOML; of JSON the error has the file and the key. A document remembers its first
// error; after it every read returns a harmless default, so that a reader is written straight through and asks once at
// the end. One thread a document; a cursor lives no longer than its document.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leat/result.hpp"
#include "tools/base/json/json.h"

namespace leat {

inline constexpr double kHuge = 1e15;  // no quantity in a file is larger

class JsonDocument;

class JsonCursor {
 public:
  explicit operator bool() const { return node_ != nullptr; }  // false: there is nothing here
  // Records an error here, unless an earlier one stands.
  void fail(const std::string& what) const;
  // "FILE:3: KEY: ", for messages of those who use what was read; `key`: of this table, its own place when absent.
  std::string place() const;
  std::string place(std::string_view key) const;

  // ---- tables ----
  JsonCursor at(std::string_view key) const;    // error when the key is missing
  JsonCursor find(std::string_view key) const;  // an empty cursor when it is missing
  bool has(std::string_view key) const { return static_cast<bool>(find(key)); }
  std::vector<std::string> keys() const;
  bool is_table() const { return node_ != nullptr && node_->is_object(); }
  // Error for a key that is not listed: a misspelt key must not be a silent default. `also` is one more. A warning for
  // each that is written in its old words.
  void only(std::initializer_list<std::string_view> keys) const { only(std::span(keys.begin(), keys.size())); }
  void only(std::span<const std::string_view> keys, std::string_view also = {}) const;

  // ---- this value ----
  std::vector<JsonCursor> items() const;        // error when it is no array
  double number(double min, double max) const;  // error when it is no finite number in [min, max]
  std::int64_t integer(std::int64_t min, std::int64_t max) const;
  std::string text() const;  // error when it is no string
  bool boolean() const;
  bool is_text() const { return node_ != nullptr && node_->is_string(); }
  bool is_number() const { return node_ != nullptr && node_->is_number(); }
  bool is_list() const { return node_ != nullptr && node_->is_array(); }
  std::optional<std::string> scalar() const;  // as text, whatever scalar it is

  // ---- values of this table's keys; `otherwise`, or an empty list, when absent ----
  double number_or(std::string_view key, double otherwise, double min, double max) const;
  std::int64_t integer_or(std::string_view key, std::int64_t otherwise, std::int64_t min, std::int64_t max) const;
  std::string text_or(std::string_view key, std::string_view otherwise) const;
  std::string needed_text(std::string_view key) const;  // must be there and not empty
  std::string choice_or(std::string_view key, std::string_view otherwise,
                        std::initializer_list<std::string_view> choices) const;
  std::vector<double> numbers(std::string_view key, double min, double max) const;  // one number is a list too
  std::vector<std::int64_t> integers(std::string_view key, std::int64_t min, std::int64_t max) const;
  std::vector<std::string> texts(std::string_view key) const;
  std::vector<JsonCursor> tables(std::string_view key) const;  // [[key]]

 private:
  friend class JsonDocument;
  JsonCursor(JsonDocument* document, const Json* node, std::string path)
      : document_(document), node_(node), path_(std::move(path)) {}
  JsonCursor below(const Json* node, std::string_view key) const;
  const Json* member(std::string_view key) const;
  std::uint32_t line() const;
  JsonDocument* document_;
  const Json* node_;  // null: missing, or after an error
  std::string path_;  // "application[0].slo_ms"
};

// A key that was renamed: the old word is read as the new one in this version, with a warning.
struct RenamedKey {
  std::string_view old_name, name;
};

class JsonDocument {
 public:
  // `name` (a file's path) opens every error.
  JsonDocument(std::string name, std::string_view json);
  static std::unique_ptr<JsonDocument> from_toml(std::string name, std::string_view text);
  // TOML where the name ends so, else JSON.
  static std::unique_ptr<JsonDocument> of(const std::string& name, std::string_view text);
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  // Before anything is read. `renamed` must outlive the document.
  void accept(std::span<const RenamedKey> renamed) { renamed_ = renamed; }
  // What stands for a key in the place of its line and path, where a command line made the text: "--slo-ms: ".
  void call_keys(std::string name, std::function<std::string(std::string_view key)> word) {
    name_ = std::move(name), word_ = std::move(word);
  }

  JsonCursor root();
  bool failed() const { return !error_.empty(); }
  Error error() const { return Error{error_}; }
  const std::vector<std::string>& warnings() const { return warnings_; }  // a line each

 private:
  friend class JsonCursor;
  std::string name_;
  std::string error_;
  std::vector<std::string> warnings_;
  std::span<const RenamedKey> renamed_;
  std::function<std::string(std::string_view)> word_;
  Json root_;
  std::map<std::string, std::uint32_t> lines_;  // by path; empty where it was JSON
};

}  // namespace leat
