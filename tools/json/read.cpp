#include <algorithm>
#include <charconv>

#include "tools/json/json.h"
#include "tools/json/utf8.h"

namespace leat {
namespace {

constexpr int kDeepest = 100;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Sorted, so that a hostile object does not cost its length squared.
template <class Members>
bool has_twice(const Members& members) {
  std::vector<std::string_view> keys;
  keys.reserve(members.size());
  for (const auto& m : members) keys.push_back(m.key);
  std::sort(keys.begin(), keys.end());
  return std::adjacent_find(keys.begin(), keys.end()) != keys.end();
}

}  // namespace

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {
    if (text.substr(0, 3) == "\xef\xbb\xbf") at_ = 3;  // a byte order mark
  }

  // Null where the text is wrong.
  Json document() {
    Json out = value(0);
    space();
    if (at_ != text_.size()) return fail("something stands behind the value");
    return out;
  }
  // What is wrong; null: nothing. And where.
  [[nodiscard]] const char* wrong() const { return wrong_; }
  [[nodiscard]] std::size_t where() const { return where_; }

 private:
  // The first is kept. Nothing is left to read after it, so that every loop ends.
  Json fail(const char* what) {
    if (wrong_ == nullptr) {
      wrong_ = what;
      where_ = at_;
    }
    at_ = text_.size();
    return {};
  }
  [[nodiscard]] char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
      ++at_;
  }
  bool took(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
  }
  Json word(std::string_view word, Json meant) {
    if (text_.substr(at_, word.size()) != word) return fail("a value is expected");
    at_ += word.size();
    return meant;
  }

  Json value(int depth) {
    if (depth > kDeepest) return fail("nested too deep");
    space();
    switch (next()) {
      case '{':
        return object(depth);
      case '[':
        return array(depth);
      case '"':
        return Json(string());
      case 't':
        return word("true", Json(true));
      case 'f':
        return word("false", Json(false));
      case 'n':
        return word("null", Json());
      default:
        return number();
    }
  }

  Json array(int depth) {
    ++at_;
    Json::Elements out;
    space();
    if (took(']')) return Json(std::move(out));
    for (;;) {
      out.push_back(value(depth + 1));
      space();
      if (took(']')) return Json(std::move(out));
      if (!took(',')) return fail("',' or ']' is expected");
    }
  }

  Json object(int depth) {
    ++at_;
    Json::Members out;
    space();
    if (took('}')) return Json(std::move(out));
    for (;;) {
      space();
      if (next() != '"') return fail("a key in quotes is expected");
      std::string key = string();
      space();
      if (!took(':')) return fail("':' is expected");
      out.push_back({std::move(key), value(depth + 1)});
      space();
      if (took('}')) break;
      if (!took(',')) return fail("',' or '}' is expected");
    }
    if (has_twice(out)) return fail("a key stands twice in this object");
    return Json(std::move(out));
  }

  std::string string() {
    ++at_;
    std::string out;
    while (at_ < text_.size()) {
      const auto c = static_cast<unsigned char>(text_[at_]);
      if (c == '"') {
        ++at_;
        return out;
      }
      if (c == '\\') {
        escape(out);
      } else if (c < 0x20) {
        fail("a control character stands in a text; write it as an escape");
      } else if (const std::size_t bytes = utf8_length(text_.substr(at_)); bytes != 0) {
        out.append(text_, at_, bytes);
        at_ += bytes;
      } else {
        fail("not UTF-8");
      }
    }
    fail("a text does not end");
    return out;
  }

  void escape(std::string& out) {
    ++at_;
    constexpr std::string_view kNames = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
    if (const auto i = kNames.find(next()); i != std::string_view::npos) {
      out += kMeant[i];
      ++at_;
    } else if (!took('u')) {
      fail("an unknown escape");
    } else if (const auto code = character()) {
      append_utf8(out, *code);
    } else {
      fail("\\u needs four digits, and a pair of them beyond U+FFFF");
    }
  }
  // What follows "\u".
  std::optional<unsigned> character() {
    const auto high = unit();
    if (!high || *high < 0xd800 || *high > 0xdfff) return high;
    if (*high > 0xdbff || !took('\\') || !took('u')) return std::nullopt;
    const auto low = unit();
    if (!low || *low < 0xdc00 || *low > 0xdfff) return std::nullopt;
    return 0x10000 + ((*high - 0xd800) << 10 | (*low - 0xdc00));
  }
  std::optional<unsigned> unit() {
    unsigned code = 0;
    const std::string_view digits = text_.substr(at_, 4);
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (digits.size() != 4 || read.ptr != digits.data() + 4) return std::nullopt;
    at_ += 4;
    return code;
  }

  Json number() {
    const std::size_t begin = at_;
    const bool negative = took('-');
    if (!is_digit(next())) return fail(negative ? "a digit is expected" : "a value is expected");
    if (!took('0')) digits();
    bool whole = true;
    if (took('.')) {
      whole = false;
      digits();
    }
    if (took('e') || took('E')) {
      whole = false;
      if (!took('+')) took('-');
      digits();
    }
    if (wrong_ != nullptr) return {};
    const char *const from = text_.data() + begin, *const to = text_.data() + at_;
    if (whole) {
      if (std::int64_t value = 0; std::from_chars(from, to, value).ec == std::errc{}) return Json(value);
      if (std::uint64_t value = 0; std::from_chars(from, to, value).ec == std::errc{}) return Json(value);
    }
    double value = 0;
    if (std::from_chars(from, to, value).ec != std::errc{}) return fail("a number that is out of range");
    return Json(value);
  }
  void digits() {
    if (!is_digit(next())) fail("a digit is expected");
    while (is_digit(next())) ++at_;
  }

  std::string_view text_;
  std::size_t at_ = 0, where_ = 0;
  const char* wrong_ = nullptr;
};

std::optional<Json> Json::try_parse(std::string_view text, JsonError* why) {
  JsonReader reader(text);
  Json out = reader.document();
  if (reader.wrong() == nullptr) return out;
  if (why != nullptr)
    *why = JsonError("parse error at byte " + std::to_string(reader.where()) + ": " + reader.wrong(), reader.where());
  return std::nullopt;
}

Json Json::parse(std::string_view text) {
  JsonError why("");
  if (auto json = try_parse(text, &why)) return *std::move(json);
  throw why;
}

}  // namespace leat
