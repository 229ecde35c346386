// leat-gpu watch: how hot the GPUs are, second by second, for `leat top`, which loads no driver itself.
#include <poll.h>
#include <unistd.h>

#include <cstdio>

#include "cuda/runtime/nvml.h"
#include "tools/base/cli/command.h"
#include "tools/base/json/json.h"

namespace leat::partitions {
namespace {

constexpr cli::Option kOptions[] = {
    cli::integer_option("times", "0", 0, 1'000'000, "lines to print; 0: until its standard input ends")};
constexpr cli::Command kCommand = {
    .name = "leat-gpu watch",
    .summary = "prints a line of JSON a second: temperature, power, clock and memory of each GPU",
    .description =
        "leat top starts it where leatd has a partition on a GPU, so that a driver that hangs hangs neither of them. "
        "It "
        "ends with its standard input. What a GPU does not tell is null. NVML tells these of whole GPUs, so that MIG "
        "instances share them.",
    .options = kOptions,
    .see_also = "leat-top(1)"};

Json number_or_null(const std::optional<unsigned>& value, double unit) {
  return value ? Json(static_cast<double>(*value) / unit) : Json(nullptr);
}

std::string line_of(const std::vector<gpu::NvmlHeat>& gpus) {
  Json list = Json::array();
  for (const gpu::NvmlHeat& g : gpus)
    list.push_back({{"uuid", g.uuid},
                    {"temperature_c", number_or_null(g.temperature_c, 1)},
                    {"power_w", number_or_null(g.power_mw, 1000)},
                    {"power_cap_w", number_or_null(g.power_cap_mw, 1000)},
                    {"sm_clock_mhz", number_or_null(g.sm_clock_mhz, 1)},
                    {"memory_bytes", g.memory_bytes},
                    {"memory_used_bytes", g.memory_used_bytes},
                    {"held_back", g.held_back}});
  return Json{{"gpus", list}}.dump() + "\n";
}

// A second passes. False: the other end of standard input has gone.
bool wait_a_second() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  char byte;
  return ::poll(&input, 1, 1000) <= 0 || ::read(STDIN_FILENO, &byte, 1) > 0;
}

int run(const cli::Arguments& arguments) {
  const auto watch = gpu::NvmlWatch::open();
  if (!watch.ok()) return cli::fail("leat-gpu watch", watch.error());
  const std::int64_t times = arguments.integer("times");
  for (std::int64_t i = 0; times == 0 || i < times; ++i) {
    if (i > 0 && !wait_a_second()) break;
    const std::string line = line_of(watch->read());
    if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size() || std::fflush(stdout) != 0) break;
  }
  return 0;
}

}  // namespace

extern const cli::Subcommand kGpuWatch;
const cli::Subcommand kGpuWatch = {&kCommand, run};

}  // namespace leat::partitions
