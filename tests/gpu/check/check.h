// What the checks share: figures and verdicts that become one JSON object, and the options all of them have.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/exec/device_plugin.h"
#include "tools/base/cli/command.h"
#include "tools/base/json/json.h"

namespace leat::check {

class Answers {
 public:
  explicit Answers(std::string check) { json_["check"] = std::move(check); }
  // A verdict; what is not good fails the check.
  void verdict(const std::string& name, bool good, const std::string& why = {});
  // Median, worst and count of what was measured, in `unit`.
  void figure(const std::string& name, std::vector<double> values, const std::string& unit);
  void value(const std::string& name, const Json& value) { json_["values"][name] = value; }
  // Prints it; the exit status: 0 all good, 1 something was not.
  int print();

 private:
  Json json_;
  bool good_ = true;
};

inline constexpr cli::Option kGpuOption = {
    .name = "gpu", .type = cli::Type::text, .value = "UUID", .help = "the device (default: the first that is visible)"};
inline constexpr cli::Option kRunsOption = cli::integer_option("runs", "20", 3, 10000, "measurements of each figure");

Result<std::unique_ptr<exec::Device>> open_device(const cli::Arguments& arguments);
// Microseconds of each of `runs` calls, after two that are not counted.
std::vector<double> time_us(std::int64_t runs, const std::function<bool()>& act);

}  // namespace leat::check
