#include <array>
#include <charconv>
#include <cmath>

#include "tools/json/json.h"
#include "tools/json/utf8.h"

namespace leat {

class JsonWriter {
 public:
  explicit JsonWriter(int indent) : indent_(indent) {}

  void write(const Json& json, int depth) {
    switch (json.type()) {
      case Json::Type::null:
        out_ += "null";
        return;
      case Json::Type::boolean:
        out_ += std::get<bool>(json.value_) ? "true" : "false";
        return;
      case Json::Type::integer:
        if (const auto* const whole = std::get_if<std::int64_t>(&json.value_)) return number(*whole);
        return number(std::get<std::uint64_t>(json.value_));
      case Json::Type::real:
        return real(std::get<double>(json.value_));
      case Json::Type::text:
        return text(std::get<std::string>(json.value_));
      case Json::Type::array: {
        const auto& list = std::get<Json::Elements>(json.value_);
        return within('[', ']', list.size(), depth, [&](std::size_t i) { write(list[i], depth + 1); });
      }
      case Json::Type::object: {
        const auto& members = std::get<Json::Members>(json.value_);
        return within('{', '}', members.size(), depth, [&](std::size_t i) {
          text(members[i].key);
          out_ += indent_ < 0 ? ":" : ": ";
          write(members[i].value, depth + 1);
        });
      }
    }
  }
  std::string take() { return std::move(out_); }

 private:
  template <class Each>
  void within(char open, char close, std::size_t count, int depth, const Each& each) {
    out_ += open;
    for (std::size_t i = 0; i < count; ++i) {
      if (i > 0) out_ += ',';
      line(depth + 1);
      each(i);
    }
    if (count > 0) line(depth);
    out_ += close;
  }
  void line(int depth) {
    if (indent_ < 0) return;
    out_ += '\n';
    out_.append(static_cast<std::size_t>(depth * indent_), ' ');
  }
  template <class T>
  void number(T value) {
    std::array<char, 32> digits;
    out_.append(digits.data(), std::to_chars(digits.begin(), digits.end(), value).ptr);
  }
  // The shortest text that reads as the same number; it stays a real one.
  void real(double value) {
    if (!std::isfinite(value)) {
      out_ += "null";
      return;
    }
    const std::size_t begin = out_.size();
    number(value);
    if (out_.find_first_of(".e", begin) == std::string::npos) out_ += ".0";
  }
  void text(std::string_view value) {
    out_ += '"';
    for (std::size_t at = 0; at < value.size();) {
      const auto c = static_cast<unsigned char>(value[at]);
      if (c >= 0x80) {
        const std::size_t bytes = utf8_length(value.substr(at));
        out_ += bytes == 0 ? std::string_view("\xef\xbf\xbd") : value.substr(at, bytes);
        at += bytes == 0 ? 1 : bytes;
        continue;
      }
      ++at;
      constexpr std::string_view kShort = "\"\"\\\\\bb\ff\nn\rr\tt";
      std::size_t i = 0;
      while (i < kShort.size() && static_cast<unsigned char>(kShort[i]) != c) i += 2;
      if (i < kShort.size()) {
        out_ += '\\';
        out_ += kShort[i + 1];
      } else if (c < 0x20) {
        constexpr std::string_view kDigits = "0123456789abcdef";
        out_ += "\\u00";
        out_ += kDigits[c >> 4];
        out_ += kDigits[c & 15];
      } else {
        out_ += static_cast<char>(c);
      }
    }
    out_ += '"';
  }

  int indent_;
  std::string out_;
};

std::string Json::dump(int indent) const {
  JsonWriter writer(indent);
  writer.write(*this, 0);
  return writer.take();
}

}  // namespace leat
