// Configurations that leatd must refuse, each with what its one line must say. `leat check` says the same line.
#pragma once

#include <string>
#include <vector>

namespace leat::test {

// An emulated application that is sound; and one with a model on core 0, `models`: the folder of tools/models/shapes.
[[nodiscard]] std::string sound_config();
[[nodiscard]] std::string sound_model_config(const std::string& models);

// `text` with the first `from` replaced; fails the test where there is none.
[[nodiscard]] std::string replaced(std::string text, const std::string& from, const std::string& to);

struct BadCase {
  std::string name, config;
  std::vector<std::string> says;                             // all of it in the one line
  std::vector<std::pair<std::string, std::string>> files{};  // name, text: beside the configuration
};
// `failing_executor`: tests/executors/failing.cpp as a library.
[[nodiscard]] std::vector<BadCase> bad_cases(const std::string& models, const std::string& failing_executor);

}  // namespace leat::test
