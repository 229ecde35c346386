// leat-gpu-check: a device seen through the worker's own code. Each check lives in its own file check_WORD.cpp, prints
// one JSON object and ends with 0 (all good), 1 (something was not) or 2 (it could not be asked).
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>

#include "tests/gpu/check/check.h"

namespace leat::check {

void Answers::verdict(const std::string& name, bool good, const std::string& why) {
  json_["verdicts"][name] = good;
  if (!good) json_["failures"].push_back(name + (why.empty() ? "" : ": " + why));
  good_ = good_ && good;
}

void Answers::figure(const std::string& name, std::vector<double> values, const std::string& unit) {
  if (values.empty()) return verdict(name, false, "nothing was measured");
  std::sort(values.begin(), values.end());
  json_["figures"][name] = {{"median", values[values.size() / 2]},
                            {"least", values.front()},
                            {"most", values.back()},
                            {"n", values.size()},
                            {"unit", unit}};
}

int Answers::print() {
  json_["good"] = good_;
  std::printf("%s\n", json_.dump(2).c_str());
  return good_ ? 0 : 1;
}

Result<std::unique_ptr<exec::Device>> open_device(const cli::Arguments& arguments) {
  return exec::Device::open("cuda", arguments.text("gpu"));
}

std::vector<double> time_us(std::int64_t runs, const std::function<bool()>& act) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> out;
  for (std::int64_t i = -2; i < runs; ++i) {
    const auto start = Clock::now();
    if (!act()) return {};
    if (i >= 0) out.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  return out;
}

extern const cli::Subcommand kCheckMemory;
extern const cli::Subcommand kCheckPictures;
extern const cli::Subcommand kCheckModel;
extern const cli::Subcommand kCheckProvider;
extern const cli::Subcommand kCheckFault;
extern const cli::Subcommand kCheckServe;
extern const cli::Subcommand kCheckStructure;

namespace {

const cli::Subcommand* const kSubcommands[] = {&kCheckMemory, &kCheckPictures, &kCheckModel,    &kCheckProvider,
                                               &kCheckServe,  &kCheckFault,    &kCheckStructure};
const cli::Program kProgram = {.name = "leat-gpu-check",
                               .summary = "a device seen through the worker's own code",
                               .description = "For tests/gpu/run. Changes nothing on the device.",
                               .subcommands = kSubcommands};

}  // namespace
}  // namespace leat::check

int main(int argc, char** argv) {
  try {
    return leat::cli::run_program(leat::check::kProgram, argc, argv);
  } catch (const std::exception& e) {
    return leat::cli::fail("leat-gpu-check", std::string("ran into an error of its own: ") + e.what());
  }
}
