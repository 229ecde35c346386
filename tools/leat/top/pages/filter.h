// Which rows are shown: words that must all hold. "yard", "app=plates", "!well", "miss>5", "p99>80%slo", "a|b". It
// never filters the sentence. Pure.
#pragma once

#include <string>
#include <vector>

#include "leat/result.hpp"
#include "tools/leat/top/facts/figures.h"

namespace leat::tools::top {

class Filter {
 public:
  // Errors: one line with the words that there are; the former filter is kept by whoever asked.
  static Result<Filter> parse(const std::string& text);
  [[nodiscard]] bool empty() const noexcept { return terms_.empty(); }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  [[nodiscard]] bool matches(const StreamFigures& stream) const;

 private:
  struct Word {
    enum class What : std::uint8_t {
      name,
      application,
      user,
      client,
      state,
      reason,
      miss,
      p99,
      in,
      good,
      flying
    } what = What::name;
    std::string text;
    char compare = '=';  // < or > with a number
    double number = 0;
    bool of_slo = false;
  };
  struct Term {
    bool negated = false;
    std::vector<Word> any;
  };
  static Result<Word> word_of(const std::string& text);
  [[nodiscard]] static bool holds(const Word& word, const StreamFigures& stream);

  std::string text_;
  std::vector<Term> terms_;
};

[[nodiscard]] std::string_view name_of(Mark mark) noexcept;

}  // namespace leat::tools::top
