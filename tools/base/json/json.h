// JSON: a value, read from text and written as text. Objects keep the order in which their keys came.
//
// nlohmann's library reads and writes. It is compiled once, behind this small header: half the programs of the house
// print JSON, and what a header brings is compiled in every one of them.
//
// Errors: what reads a value that is of another type, or is not there, throws JsonError; so does parse() on what is no
// JSON. Thread rule: a value is one thread's, as a container is; many may read one that nobody changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace leat {

struct JsonError : std::runtime_error {
  explicit JsonError(const std::string& what, std::size_t at = 0) : std::runtime_error(what), byte(at) {}
  std::size_t byte;  // of parse(): where in the text, from 0
};

class Json;
template <class T>
concept JsonScalar = std::is_arithmetic_v<T> || std::is_enum_v<T>;
template <class T>
concept JsonText = std::is_convertible_v<const T&, std::string_view>;
// Containers become arrays; those with keys become objects.
template <class T>
concept JsonContainer = !JsonText<T> && !std::is_same_v<T, Json> && requires(const T& t) {
  typename T::value_type;
  t.begin();
  t.end();
};

class Json {
 public:
  enum class Type : std::uint8_t { null, boolean, integer, real, text, array, object };
  struct Member;
  using Elements = std::vector<Json>;
  using Members = std::vector<Member>;

  // ---- from a value ----
  Json();  // null
  Json(std::nullptr_t);
  Json(const char* text);
  Json(std::string text);
  Json(std::string_view text);
  // [["a", 1], ["b", 2]], a list of pairs that begin with a text, is an object; any other list is an array.
  Json(std::initializer_list<Json> list);
  template <JsonScalar T>
  Json(T value);
  template <JsonContainer T>
  Json(const T& container);
  template <class T, std::size_t N>
  requires(!std::is_same_v<T, char>) Json(const T (&values)[N]);
  static Json array();
  static Json object();

  Json(const Json&);
  Json(Json&&) noexcept;
  Json& operator=(const Json&);
  Json& operator=(Json&&) noexcept;
  ~Json();

  // ---- text ----
  // RFC 8259, nested at most 100 deep; also a key that stands twice in one object, bytes that are not UTF-8, and a
  // number that no double holds are errors.
  static Json parse(std::string_view text);
  static std::optional<Json> try_parse(std::string_view text, JsonError* why = nullptr);
  // indent < 0: one line. Bytes that are not UTF-8 become U+FFFD; NaN and infinities become null.
  [[nodiscard]] std::string dump(int indent = -1) const;

  // ---- what it is ----
  [[nodiscard]] Type type() const noexcept;
  [[nodiscard]] const char* type_name() const noexcept;
  [[nodiscard]] bool is_null() const noexcept { return type() == Type::null; }
  [[nodiscard]] bool is_boolean() const noexcept { return type() == Type::boolean; }
  [[nodiscard]] bool is_integer() const noexcept { return std::holds_alternative<std::int64_t>(value_); }
  [[nodiscard]] bool is_number() const noexcept { return type() == Type::integer || type() == Type::real; }
  [[nodiscard]] bool is_string() const noexcept { return type() == Type::text; }
  [[nodiscard]] bool is_array() const noexcept { return type() == Type::array; }
  [[nodiscard]] bool is_object() const noexcept { return type() == Type::object; }
  // Of an array or object; 0 of anything else.
  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }

  // ---- reading ----
  [[nodiscard]] const Json& at(std::size_t index) const;
  [[nodiscard]] const Json& at(std::string_view key) const;
  [[nodiscard]] const Json& operator[](std::size_t index) const { return at(index); }
  [[nodiscard]] const Json& operator[](std::string_view key) const { return at(key); }
  [[nodiscard]] const Json* find(std::string_view key) const noexcept;  // null: no object, or no such key
  [[nodiscard]] bool contains(std::string_view key) const noexcept { return find(key) != nullptr; }
  [[nodiscard]] const Json& back() const;
  [[nodiscard]] const Json* begin() const;  // of an array's elements; null has none
  [[nodiscard]] const Json* end() const;
  [[nodiscard]] const Members& items() const;  // of an object: pairs of key and value, in order
  // As T: bool, numbers (an error where T does not hold the value), enumerations, std::string, std::vector, std::array
  // and std::map of such.
  template <class T>
  [[nodiscard]] T get() const;
  template <class T>
  void get_to(T& out) const {
    out = get<T>();
  }
  // The key's value, or `otherwise` where there is none.
  template <class T>
  [[nodiscard]] T value(std::string_view key, T otherwise) const {
    const Json* const found = find(key);
    return found == nullptr ? std::move(otherwise) : found->get<T>();
  }
  [[nodiscard]] std::string value(std::string_view key, const char* otherwise) const {
    return value(key, std::string(otherwise));
  }

  // ---- writing: null becomes the object or array that is written to ----
  Json& operator[](std::size_t index);     // of an element that is there
  Json& operator[](std::string_view key);  // made, null, where there is none
  void push_back(Json element);
  void update(const Json& object);  // takes over each of its keys
  [[nodiscard]] Json& back();
  [[nodiscard]] Json* begin();
  [[nodiscard]] Json* end();

  // Numbers are compared by value, objects without regard to order.
  friend bool operator==(const Json& a, const Json& b) noexcept { return a.same(b); }
  friend std::ostream& operator<<(std::ostream& out, const Json& json);

 private:
  explicit Json(Elements elements);
  explicit Json(Members members);
  [[nodiscard]] bool same(const Json& other) const noexcept;
  [[nodiscard]] bool as_boolean() const;
  [[nodiscard]] std::int64_t as_integer(std::int64_t min, std::int64_t max) const;
  [[nodiscard]] std::uint64_t as_unsigned(std::uint64_t max) const;
  [[nodiscard]] double as_number() const;
  [[nodiscard]] const std::string& as_text() const;
  [[nodiscard]] const Elements& elements() const;
  void add(std::string key, Json value);  // to an object that lacks the key

  // The unsigned number only where the signed does not hold the value.
  std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string, Elements, Members> value_;
  friend class JsonBuilder;
  friend class JsonWriter;
};

struct Json::Member {
  std::string key;
  Json value;
  bool operator==(const Member&) const = default;
};

template <JsonScalar T>
Json::Json(T value) {
  if constexpr (std::is_enum_v<T>) {
    *this = Json(static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, double>) {
    value_ = value;
  } else if constexpr (std::is_floating_point_v<T>) {
    value_ = static_cast<double>(value);
  } else if (std::in_range<std::int64_t>(value)) {
    value_ = static_cast<std::int64_t>(value);
  } else {
    value_ = static_cast<std::uint64_t>(value);
  }
}

template <JsonContainer T>
Json::Json(const T& container) : Json() {
  if constexpr (requires { typename T::mapped_type; }) {
    *this = object();
    for (const auto& [key, value] : container) (*this)[key] = Json(value);
  } else {
    *this = array();
    for (const auto& element : container) push_back(Json(static_cast<const typename T::value_type&>(element)));
  }
}

template <class T, std::size_t N>
requires(!std::is_same_v<T, char>) Json::Json(const T (&values)[N]) : Json(array()) {
  for (const T& value : values) push_back(Json(value));
}

template <class T>
T Json::get() const {
  if constexpr (std::is_same_v<T, Json>) {
    return *this;
  } else if constexpr (std::is_same_v<T, bool>) {
    return as_boolean();
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<T>(get<std::underlying_type_t<T>>());
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(as_number());
  } else if constexpr (std::is_unsigned_v<T>) {
    return static_cast<T>(as_unsigned(std::numeric_limits<T>::max()));
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(as_integer(std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  } else if constexpr (std::is_same_v<T, std::string>) {
    return as_text();
  } else if constexpr (requires { typename T::mapped_type; }) {
    T out;
    for (const Member& m : items()) out[m.key] = m.value.get<typename T::mapped_type>();
    return out;
  } else if constexpr (requires(T t, typename T::value_type v) { t.push_back(v); }) {
    T out;
    for (const Json& element : elements()) out.push_back(element.get<typename T::value_type>());
    return out;
  } else {  // of a fixed size
    T out{};
    if (size() != out.size())
      throw JsonError("a list of " + std::to_string(size()) + ", not " + std::to_string(out.size()));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = at(i).get<typename T::value_type>();
    return out;
  }
}

}  // namespace leat
