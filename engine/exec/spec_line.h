// The one-line descriptions of pre- and post-processing: words and key=value pairs separated by blanks.
// Control plane; any thread. A reader takes the words it knows; finish() reports the first fault in one line.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/result.hpp"

namespace leat::exec {

class SpecLine {
 public:
  // what: "preprocess", for messages.
  SpecLine(std::string_view what, std::string_view line);

  // A key of an earlier version, which is understood for one more: it is taken as `now`, and outdated() says so.
  void renamed(std::string_view old, std::string_view now);
  const std::string& outdated() const { return outdated_; }  // one line; empty: no such key was written

  bool has(std::string_view key) const;                                 // key=..., not taken
  bool word(std::string_view name);                                     // a bare word
  std::optional<std::string> text(std::string_view key);                // key=text
  std::vector<std::string> list(std::string_view key);                  // key=A,B,...; empty: not given
  void number(std::string_view key, float min, float max, float* out);  // key=number
  void whole(std::string_view key, std::uint32_t min, std::uint32_t max, std::uint32_t* out);
  void numbers(std::string_view key, float min, float max, std::span<float> out);  // one for all, or one each
  // key=WORD, one of `known`; set() takes its place among them.
  void choice(std::string_view key, std::initializer_list<std::string_view> known,
              const std::function<void(std::size_t)>& set);
  void size(std::string_view key, std::uint32_t* width, std::uint32_t* height);        // key=WxH or key=N, 1..16384
  std::vector<std::pair<std::string, std::string>> starting(std::string_view prefix);  // every PREFIXname=text
  void fail(std::string text);
  // Whatever was not taken is an error. known: what could have been written.
  Status finish(std::string_view known);

 private:
  std::string what_;
  std::vector<std::string> words_;
  std::string error_, outdated_;
};

}  // namespace leat::exec
