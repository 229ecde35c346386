// A place in a TOML document that knows its file, line and key, so that every complaint can name them. The first
// complaint of a document is kept; reads after it give defaults. Only config.cpp's files include this: toml++ stays out
// of headers others see.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/io/toml.h"

namespace leat::daemon {

struct TomlDocument {
  std::string file;
  bool made_from_model = false;  // by a command line: places are its options, "MODEL: --preprocess: "
  std::string error;             // empty: none so far
};

class TomlCursor {
 public:
  TomlCursor(TomlDocument& document, const toml::node* node, std::string path)
      : document_(&document), node_(node), path_(std::move(path)) {}

  explicit operator bool() const { return node_ != nullptr; }
  const std::string& path() const { return path_; }
  void fail(const std::string& text) const;       // "FILE:LINE: KEY: text"
  std::string place() const;                      // "FILE:LINE: KEY: ", for what is found out later
  std::string place(std::string_view key) const;  // of a key of this table; the table's line when it is absent

  // ---- tables ----
  bool is_table() const { return table() != nullptr; }
  bool has(std::string_view key) const;
  TomlCursor at(std::string_view key) const;  // an empty cursor when absent
  // Complains about the first other key, and names the nearest.
  void only(std::span<const std::string_view> keys) const;
  void only(std::initializer_list<std::string_view> keys) const { only(std::span(keys.begin(), keys.size())); }
  std::vector<std::string> keys() const;

  // ---- values of this table's keys; the fallback when absent ----
  std::string text(std::string_view key, std::string fallback) const;
  std::string needed_text(std::string_view key) const;  // must be there and not empty
  bool boolean(std::string_view key, bool fallback) const;
  std::int64_t integer(std::string_view key, std::int64_t fallback, std::int64_t least, std::int64_t most) const;
  double number(std::string_view key, double fallback, double least, double most) const;
  std::vector<double> numbers(std::string_view key, double least, double most) const;
  std::vector<std::int64_t> integers(std::string_view key, std::int64_t least, std::int64_t most) const;
  std::vector<std::string> texts(std::string_view key) const;
  // [["a", "b"], ["c"]], or ["a", "b"] as one list.
  std::vector<std::vector<std::string>> lists() const;
  std::string choice(std::string_view key, std::string fallback, std::initializer_list<std::string_view> choices) const;

  // Tables of an array of tables ([[key]]); empty when absent.
  std::vector<TomlCursor> tables(std::string_view key) const;
  // This value as text, whatever scalar it is.
  std::optional<std::string> scalar() const;

 private:
  const toml::table* table() const;
  TomlDocument* document_;
  const toml::node* node_;
  std::string path_;
};

}  // namespace leat::daemon
