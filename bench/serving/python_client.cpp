// The Python package beside the C++ client: frames a second completed, at one offered rate, on one core, in turn.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "bench/serving/leatd_child.h"
#include "bench/serving/peers.h"
#include "leat/client.hpp"
#include "tools/base/cli/command.h"
#include "tools/base/cli/json_output.h"
#include "tools/base/json/json.h"

namespace {

using namespace leat;

constexpr std::uint32_t kWidth = 640, kHeight = 360;

constexpr cli::Option kOptions[] = {
    cli::integer_option("rate", "1000", 1, 100000, "frames a second that each client offers"),
    cli::real_option("seconds", "3", 0.2, 60, "length of one round", "S"),
    cli::integer_option("rounds", "3", 1, 50, "rounds of each client, in turn"),
    cli::json_option(),
};
constexpr cli::Command kCommand = {
    .name = "python_client",
    .summary = "measures the Python package against the C++ client",
    .description =
        "Both offer 640x360 pictures to an emulated module, copy each into its slot and take every answer, "
        "pinned to the same core. The figure is the median over rounds of Python's frames a second divided "
        "by C++'s of the round before.",
    .options = kOptions};

struct Round {
  double fps = 0, cpu_us = 0;  // completed frames a second; processor time of a frame
};

double cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// The same loop as python_client.py.
bool pump(const std::string& socket, std::int64_t rate, double seconds, Round& out) {
  auto client = Client::connect(socket, "c++");
  if (!client) return std::fprintf(stderr, "python_client: %s\n", client.error().c_str()), false;
  StreamOptions options;
  options.application = "echo";
  options.format = LEAT_FORMAT_rgb24;
  options.width = kWidth;
  options.height = kHeight;
  options.depth = 16;
  options.slots = 24;
  options.overload = LEAT_OVERLOAD_fifo;
  auto stream = client->open_stream(options);
  if (!stream) return std::fprintf(stderr, "python_client: %s\n", stream.error().c_str()), false;
  const std::vector<std::uint8_t> picture(kWidth * kHeight * 3);
  const std::int64_t period = 1'000'000'000 / rate;
  std::int64_t due = shm::monotonic_ns(), in_flight = 0, completed = 0;
  const std::int64_t end = due + static_cast<std::int64_t>(seconds * 1e9);
  const double cpu = cpu_seconds();
  while (due < end || in_flight > 0) {
    for (const std::int64_t now = shm::monotonic_ns(); due <= now && due < end; due += period) {
      auto frame = stream->acquire();
      if (!frame) continue;
      for (std::uint32_t y = 0; y < kHeight; ++y)
        std::memcpy(frame->plane(0) + std::size_t{y} * frame->raw().strides[0],
                    picture.data() + std::size_t{y} * kWidth * 3, kWidth * 3);
      if (frame->submit() == LEAT_ERROR_ok) ++in_flight;
    }
    std::int64_t wait = due < end ? std::max<std::int64_t>(0, due - shm::monotonic_ns()) : 5'000'000'000;
    while (auto answer = client->next_answer(std::chrono::nanoseconds(wait))) {
      --in_flight;
      completed += answer->outcome() == Outcome::completed && answer->result()->checksum != 0;
      wait = 0;
    }
    if (!client->connected()) return std::fprintf(stderr, "python_client: %s\n", leat_last_error()), false;
  }
  out = {static_cast<double>(completed) / seconds,
         1e6 * (cpu_seconds() - cpu) / static_cast<double>(std::max<std::int64_t>(1, completed))};
  return true;
}

bool pump_python(const std::string& socket, std::int64_t rate, double seconds, Round& out) {
  const std::string line = "LEAT_LIBRARY='" LEAT_LIBRARY "' PYTHONPATH='" LEAT_PYTHON "' " PYTHON " '" LEAT_SCRIPT
                           "' '" +
                           socket + "' " + std::to_string(rate) + " " + std::to_string(seconds);
  FILE* pipe = popen(line.c_str(), "r");
  std::string text;
  char block[512];
  while (pipe && std::fgets(block, sizeof block, pipe)) text += block;
  if (!pipe || pclose(pipe) != 0) return std::fprintf(stderr, "python_client: the Python client failed\n"), false;
  const auto j = Json::parse(text);
  out = {j["completed_fps"].get<double>(), j["cpu_us_per_frame"].get<double>()};
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  auto leatd =
      bench::LeatdChild::start(bench::leatd_beside(),
                               "[[partition]]\nname = \"p\"\nkind = \"emulated\"\n"
                               "[[application]]\nname = \"echo\"\nslo_ms = 1000\n"
                               "[[application.module]]\nname = \"sum\"\nexecutor = \"emulated\"\nlatency_ms = [0]\n");
  if (!leatd) return std::fprintf(stderr, "python_client: %s\n", leatd.error().c_str()), 2;
  const std::string socket = (*leatd)->socket();
  while ((*leatd)->alive() && !Client::connect(socket)) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  bench::pin(bench::choose_cores().near);
  std::vector<double> ratios, c_fps, python_fps, c_cpu, python_cpu;
  for (std::int64_t i = 0; i < args.integer("rounds"); ++i) {
    Round c, python;
    if (!pump(socket, args.integer("rate"), args.real("seconds"), c) ||
        !pump_python(socket, args.integer("rate"), args.real("seconds"), python))
      return 1;
    ratios.push_back(python.fps / c.fps);
    c_fps.push_back(c.fps), python_fps.push_back(python.fps);
    c_cpu.push_back(c.cpu_us), python_cpu.push_back(python.cpu_us);
  }
  const bench::Figure ratio = bench::figure(ratios);
  const double c = bench::figure(c_fps).median, python = bench::figure(python_fps).median;
  const double c_us = bench::figure(c_cpu).median, python_us = bench::figure(python_cpu).median;
  const cli::JsonOutput json(args);
  if (!json.alone()) {
    std::printf("C++ %.0f frames/s, %.0f us of processor a frame\nPython %.0f frames/s, %.0f us\n", c, c_us, python,
                python_us);
    std::printf("Python over C++ %.3f (%.3f - %.3f), bar 0.8\n", ratio.median, ratio.low, ratio.high);
  }
  const Json out = {
      {"python_over_c", ratio.median}, {"python_over_c_low", ratio.low}, {"c_fps", c},
      {"python_fps", python},          {"c_cpu_us_per_frame", c_us},     {"python_cpu_us_per_frame", python_us}};
  return json.write(out.dump(2));
}
