// JSON as it comes: any text is a value that says the same when written and read again, in one line and in many, or an
// error that names a place inside the text.
#include "tools/base/json/json.h"

#include "tests/fuzz/harness.h"

namespace leat::fuzz {

std::vector<std::string> seeds() {
  return {R"({"a": [1, -2.5e-3, true, null], "b": {"c": "\u00e9\ud83d\ude00\n/"}})",
          R"([[], {}, "", 18446744073709551615, -9223372036854775808, 1e300])"};
}

}  // namespace leat::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace leat;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  JsonError why("");
  const auto json = Json::try_parse(text, &why);
  if (!json) {
    fuzz::insist(why.byte <= size, "an error behind the text's end");
    return 0;
  }
  const std::string line = json->dump();
  for (const std::string& written : {line, json->dump(1)}) {
    const auto again = Json::try_parse(written);
    fuzz::insist(again.has_value(), "a value that cannot be read again");
    fuzz::insist(*again == *json && again->dump() == line, "a value that reads otherwise than it was written");
  }
  return 0;
}
