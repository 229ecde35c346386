#include "tools/base/json/json.h"

#include <algorithm>
#include <cmath>
#include <ostream>

namespace leat {
namespace {

[[noreturn]] void wrong(const Json& found, const char* wanted) {
  throw JsonError(std::string(wanted) + " is expected, not: " + found.type_name());
}

constexpr double kTwoTo63 = 9223372036854775808.0;

}  // namespace

Json::Json() : value_(nullptr) {}
Json::Json(std::nullptr_t) : value_(nullptr) {}
Json::Json(const char* text) : value_(std::string(text)) {}
Json::Json(std::string text) : value_(std::move(text)) {}
Json::Json(std::string_view text) : value_(std::string(text)) {}
Json::Json(Elements elements) : value_(std::move(elements)) {}
Json::Json(Members members) : value_(std::move(members)) {}
Json Json::array() { return Json(Elements{}); }
Json Json::object() { return Json(Members{}); }
Json::Json(const Json&) = default;
Json::Json(Json&&) noexcept = default;
Json& Json::operator=(const Json&) = default;
Json& Json::operator=(Json&&) noexcept = default;
Json::~Json() = default;

Json::Json(std::initializer_list<Json> list) {
  const bool pairs = std::all_of(list.begin(), list.end(), [](const Json& element) {
    return element.is_array() && element.size() == 2 && element.begin()->is_string();
  });
  if (!pairs || list.size() == 0) {
    value_ = Elements(list);
    return;
  }
  value_ = Members{};
  for (const Json& pair : list) (*this)[pair.at(0).as_text()] = pair.at(1);
}

Json::Type Json::type() const noexcept {
  constexpr Type kTypes[] = {Type::null, Type::boolean, Type::integer, Type::integer,
                             Type::real, Type::text,    Type::array,   Type::object};
  return kTypes[value_.index()];
}

const char* Json::type_name() const noexcept {
  constexpr const char* kNames[] = {"null", "boolean", "number", "number", "string", "array", "object"};
  return kNames[static_cast<std::size_t>(type())];
}

std::size_t Json::size() const noexcept {
  if (const auto* const list = std::get_if<Elements>(&value_)) return list->size();
  if (const auto* const members = std::get_if<Members>(&value_)) return members->size();
  return 0;
}

const Json* Json::find(std::string_view key) const noexcept {
  const auto* const members = std::get_if<Members>(&value_);
  if (members == nullptr) return nullptr;
  for (const Member& m : *members)
    if (m.key == key) return &m.value;
  return nullptr;
}

const Json& Json::at(std::string_view key) const {
  if (!is_object()) wrong(*this, "an object");
  if (const Json* const found = find(key)) return *found;
  throw JsonError("the key '" + std::string(key) + "' is missing");
}

const Json& Json::at(std::size_t index) const {
  const Elements& list = elements();
  if (index < list.size()) return list[index];
  throw JsonError("a list of " + std::to_string(list.size()) + " has no element " + std::to_string(index));
}

const Json& Json::back() const { return at(size() - 1); }
const Json* Json::begin() const { return is_null() ? nullptr : elements().data(); }
const Json* Json::end() const { return is_null() ? nullptr : elements().data() + elements().size(); }
Json& Json::operator[](std::size_t index) { return const_cast<Json&>(std::as_const(*this).at(index)); }
Json& Json::back() { return const_cast<Json&>(std::as_const(*this).back()); }
Json* Json::begin() { return const_cast<Json*>(std::as_const(*this).begin()); }
Json* Json::end() { return const_cast<Json*>(std::as_const(*this).end()); }

const Json::Members& Json::items() const {
  if (const auto* const members = std::get_if<Members>(&value_)) return *members;
  wrong(*this, "an object");
}

const Json::Elements& Json::elements() const {
  if (const auto* const list = std::get_if<Elements>(&value_)) return *list;
  wrong(*this, "an array");
}

Json& Json::operator[](std::string_view key) {
  if (is_null()) value_ = Members{};
  if (const Json* const found = find(key)) return const_cast<Json&>(*found);
  if (!is_object()) wrong(*this, "an object");
  return std::get<Members>(value_).emplace_back(Member{std::string(key), Json()}).value;
}

void Json::push_back(Json element) {
  if (is_null()) value_ = Elements{};
  if (!is_array()) wrong(*this, "an array");
  std::get<Elements>(value_).push_back(std::move(element));
}

void Json::add(std::string key, Json value) {
  std::get<Members>(value_).emplace_back(Member{std::move(key), std::move(value)});
}

void Json::update(const Json& object) {
  for (const Member& m : object.items()) (*this)[m.key] = m.value;
}

bool Json::as_boolean() const {
  if (const bool* const value = std::get_if<bool>(&value_)) return *value;
  wrong(*this, "a boolean");
}

// A whole number may be written as 2.0.
std::int64_t Json::as_integer(std::int64_t min, std::int64_t max) const {
  std::int64_t value = 0;
  if (const auto* const whole = std::get_if<std::int64_t>(&value_)) {
    value = *whole;
  } else if (const auto* const real = std::get_if<double>(&value_);
             real != nullptr && std::trunc(*real) == *real && *real >= -kTwoTo63 && *real < kTwoTo63) {
    value = static_cast<std::int64_t>(*real);
  } else if (is_number()) {
    throw JsonError(dump() + " is not a whole number that fits");
  } else {
    wrong(*this, "a number");
  }
  if (value < min || value > max) throw JsonError(std::to_string(value) + " does not fit");
  return value;
}

std::uint64_t Json::as_unsigned(std::uint64_t max) const {
  const auto* const large = std::get_if<std::uint64_t>(&value_);
  const std::uint64_t value =
      large != nullptr ? *large : static_cast<std::uint64_t>(as_integer(0, std::numeric_limits<std::int64_t>::max()));
  if (value > max) throw JsonError(std::to_string(value) + " does not fit");
  return value;
}

double Json::as_number() const {
  if (const auto* const real = std::get_if<double>(&value_)) return *real;
  if (const auto* const whole = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*whole);
  if (const auto* const large = std::get_if<std::uint64_t>(&value_)) return static_cast<double>(*large);
  wrong(*this, "a number");
}

const std::string& Json::as_text() const {
  if (const auto* const text = std::get_if<std::string>(&value_)) return *text;
  wrong(*this, "a string");
}

bool Json::same(const Json& other) const noexcept {
  if (is_number() && other.is_number())
    return value_.index() == other.value_.index() ? value_ == other.value_ : as_number() == other.as_number();
  if (type() != other.type()) return false;
  if (!is_object()) return value_ == other.value_;
  const auto& mine = std::get<Members>(value_);
  return size() == other.size() && std::all_of(mine.begin(), mine.end(), [&](const Member& m) {
           const Json* const theirs = other.find(m.key);
           return theirs != nullptr && *theirs == m.value;
         });
}

std::ostream& operator<<(std::ostream& out, const Json& json) { return out << json.dump(); }

}  // namespace leat
