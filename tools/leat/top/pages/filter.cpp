#include "tools/leat/top/pages/filter.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace leat::tools::top {
namespace {

constexpr const char* kWords =
    "a filter is words: a part of a name, app= user= client= state= reason=, miss> p99> in< good< flying> with a "
    "number, "
    "p99>80%slo, a|b, !a";

}  // namespace

std::string_view name_of(Mark mark) noexcept {
  static constexpr std::string_view kNames[] = {"well", "near", "silent", "late", "dropping", "failing"};
  return kNames[static_cast<std::size_t>(mark)];
}

Result<Filter::Word> Filter::word_of(const std::string& text) {
  Word word;
  const std::size_t at = text.find_first_of("=<>");
  if (at == std::string::npos) {
    word.text = text;
    for (std::size_t i = 0; i <= static_cast<std::size_t>(Mark::failing); ++i)
      if (text == name_of(static_cast<Mark>(i))) word.what = Word::What::state;
    return word;
  }
  const std::string name = text.substr(0, at), value = text.substr(at + 1);
  word.compare = text[at];
  word.text = value;
  static constexpr std::pair<std::string_view, Word::What> kTexts[] = {
      {"name", Word::What::name},     {"app", Word::What::application}, {"user", Word::What::user},
      {"client", Word::What::client}, {"state", Word::What::state},     {"reason", Word::What::reason}};
  static constexpr std::pair<std::string_view, Word::What> kNumbers[] = {{"miss", Word::What::miss},
                                                                         {"p99", Word::What::p99},
                                                                         {"in", Word::What::in},
                                                                         {"good", Word::What::good},
                                                                         {"flying", Word::What::flying}};
  for (const auto& [known_name, what] : kTexts)
    if (name == known_name && word.compare == '=') {
      word.what = what;
      return word;
    }
  for (const auto& [known_name, what] : kNumbers) {
    if (name != known_name || word.compare == '=') continue;
    char* end = nullptr;
    word.what = what;
    word.number = std::strtod(value.c_str(), &end);
    const std::string unit = end == nullptr ? "" : end;
    word.of_slo = unit == "%slo";
    if (end != value.c_str() && (unit.empty() || unit == "%" || (word.of_slo && what == Word::What::p99))) return word;
  }
  return Error{"'" + text + "' is no filter; " + kWords};
}

Result<Filter> Filter::parse(const std::string& text) {
  Filter filter;
  std::istringstream words(text);
  for (std::string part; words >> part;) {
    Term term;
    if (part.front() == '!') {
      term.negated = true;
      part.erase(0, 1);
    }
    std::istringstream alternatives(part);
    for (std::string one; std::getline(alternatives, one, '|');) {
      if (one.empty()) continue;
      auto word = word_of(one);
      if (!word.ok()) return Error{word.error()};
      term.any.push_back(std::move(*word));
    }
    if (term.any.empty()) return Error{"'!' alone is no filter; " + std::string(kWords)};
    filter.terms_.push_back(std::move(term));
    filter.text_ += (filter.text_.empty() ? "" : " ") + std::string(filter.terms_.back().negated ? "!" : "") + part;
  }
  return filter;
}

bool Filter::holds(const Word& w, const StreamFigures& s) {
  const auto part = [&](const std::string& of) { return of.find(w.text) != std::string::npos; };
  const auto number = [&](double value) {
    return known(value) && (w.compare == '>' ? value > w.number : value < w.number);
  };
  switch (w.what) {
    case Word::What::name:
      return part(s.who->name);
    case Word::What::application:
      return s.who->application == w.text;
    case Word::What::user:
      return s.who->user == w.text;
    case Word::What::client:
      return s.who->client == w.text;
    case Word::What::state:
      return name_of(s.mark) == w.text;
    case Word::What::reason:
      return leat::name_of(s.cause) == w.text;
    case Word::What::miss:
      return number(s.miss);
    case Word::What::p99:
      return number(w.of_slo ? 100 * s.p99 / s.who->slo_ms : s.p99);
    case Word::What::in:
      return number(s.in);
    case Word::What::good:
      return number(s.good);
    case Word::What::flying:
      return number(s.in_flight);
  }
  return false;
}

bool Filter::matches(const StreamFigures& stream) const {
  return std::all_of(terms_.begin(), terms_.end(), [&](const Term& term) {
    const bool any = std::any_of(term.any.begin(), term.any.end(), [&](const Word& w) { return holds(w, stream); });
    return any != term.negated;
  });
}

}  // namespace leat::tools::top
