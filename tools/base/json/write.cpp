// Writing: as nlohmann writes.
#include <nlohmann/json.hpp>

#include "tools/base/json/json.h"

namespace leat {

class JsonWriter {
 public:
  static nlohmann::ordered_json converted(const Json& json) {
    return std::visit([](const auto& value) { return of(value); }, json.value_);
  }

 private:
  template <class T>
  static nlohmann::ordered_json of(const T& value) {
    return value;
  }
  static nlohmann::ordered_json of(const Json::Elements& list) {
    auto out = nlohmann::ordered_json::array();
    for (const Json& element : list) out.push_back(converted(element));
    return out;
  }
  static nlohmann::ordered_json of(const Json::Members& members) {
    auto out = nlohmann::ordered_json::object_t();
    // Appended as they are: an ordered_map looks through all its keys for each that is added.
    for (const Json::Member& m : members) static_cast<Vector&>(out).emplace_back(m.key, converted(m.value));
    return out;
  }
  using Vector = nlohmann::ordered_json::object_t::Container;
};

std::string Json::dump(int indent) const {
  return JsonWriter::converted(*this).dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace leat
