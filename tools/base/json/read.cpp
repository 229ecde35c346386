// Reading: nlohmann's parser finds the values, this file puts them together.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/base/json/json.h"

namespace leat {
namespace {

constexpr std::size_t kDeepest = 100;

// Sorted, so that a hostile object does not cost its length squared.
bool has_twice(const Json::Members& members) {
  std::vector<std::string_view> keys;
  keys.reserve(members.size());
  for (const auto& m : members) keys.push_back(m.key);
  std::sort(keys.begin(), keys.end());
  return std::adjacent_find(keys.begin(), keys.end()) != keys.end();
}

}  // namespace

// What nlohmann::json_sax asks for. A false ends the reading.
class JsonBuilder {
 public:
  using number_integer_t = std::int64_t;
  using number_unsigned_t = std::uint64_t;
  using number_float_t = double;
  using string_t = std::string;
  using binary_t = nlohmann::json::binary_t;

  bool null() { return put({}); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(std::int64_t value) { return put(value); }
  bool number_unsigned(std::uint64_t value) { return put(value); }
  bool number_float(double value, const std::string&) { return put(value); }
  bool string(std::string& value) { return put(std::move(value)); }
  bool binary(binary_t&) { return false; }  // no JSON text has one
  bool start_array(std::size_t) { return open(Json::array()); }
  bool start_object(std::size_t) { return open(Json::object()); }
  bool key(std::string& name) {
    open_.back().key = std::move(name);
    return true;
  }
  bool end_array() { return close(); }
  bool end_object() {
    if (has_twice(open_.back().value.items())) return refuse("a key stands twice in an object");
    return close();
  }
  bool parse_error(std::size_t read, const std::string&, const nlohmann::json::exception& e) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: its own words"
    std::string_view text = e.what();
    for (const std::string_view before : {"] ", ": "})
      if (const auto at = text.find(before); at != text.npos) text.remove_prefix(at + before.size());
    byte_ = read > 0 ? read - 1 : 0;
    return refuse(std::string(text));
  }

  [[nodiscard]] Json take() { return std::move(root_); }
  [[nodiscard]] JsonError error() const {
    const std::string place = byte_ ? "parse error at byte " + std::to_string(*byte_) : std::string("parse error");
    return JsonError(place + ": " + wrong_, byte_.value_or(0));
  }

 private:
  struct Open {
    Json value;
    std::string key;  // of the member that is read
  };

  bool refuse(std::string why) {
    wrong_ = std::move(why);
    return false;
  }
  bool open(Json empty) {
    if (open_.size() > kDeepest) return refuse("nested too deep");
    open_.push_back({std::move(empty), {}});
    return true;
  }
  bool close() {
    Json done = std::move(open_.back().value);
    open_.pop_back();
    return put(std::move(done));
  }
  bool put(Json value) {
    if (open_.empty())
      root_ = std::move(value);
    else if (open_.back().value.is_array())
      open_.back().value.push_back(std::move(value));
    else
      open_.back().value.add(std::move(open_.back().key), std::move(value));
    return true;
  }

  Json root_;
  std::vector<Open> open_;
  std::string wrong_;
  std::optional<std::size_t> byte_;
};

std::optional<Json> Json::try_parse(std::string_view text, JsonError* why) {
  JsonBuilder builder;
  if (nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) return builder.take();
  if (why != nullptr) *why = builder.error();
  return std::nullopt;
}

Json Json::parse(std::string_view text) {
  JsonError why("");
  if (auto json = try_parse(text, &why)) return *std::move(json);
  throw why;
}

}  // namespace leat
