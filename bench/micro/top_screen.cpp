// What leat top costs whoever looks: the processor time of a sample's figures and of a screen, by size, after a minute
// of counters that walk at random.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "tools/base/cli/command.h"
#include "tools/base/cli/json_output.h"
#include "tools/base/json/json.h"
#include "tools/leat/top/session.h"
#include "tools/leat/top/test/world.h"

namespace {

using namespace leat;

constexpr cli::Option kOptions[] = {
    cli::integer_option("streams", "200", 1, 256, "open"),
    cli::integer_option("partitions", "8", 1, 128, "up or not"),
    cli::integer_option("seconds", "120", 10, 3600, "of counters; the second half is timed"),
    cli::json_option(),
};
constexpr cli::Command kCommand = {
    .name = "top_screen", .summary = "processor time of leat top's samples and screens", .options = kOptions};

double cpu_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

Json spread_of(std::vector<double> ms) {
  std::sort(ms.begin(), ms.end());
  return {{"count", ms.size()}, {"median", ms[ms.size() / 2]}, {"p90", ms[ms.size() * 9 / 10]}, {"max", ms.back()}};
}

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  struct Size {
    int columns, rows;
    std::vector<double> ms{};
  } sizes[] = {{80, 24}, {120, 40}, {200, 60}};
  tools::top::test::World world(static_cast<std::uint32_t>(args.integer("streams")),
                                static_cast<std::uint32_t>(args.integer("partitions")));
  tools::top::Session session;
  std::vector<double> sample_ms;
  const auto seconds = args.integer("seconds");
  for (std::int64_t t = 0; t < seconds; ++t) {
    world.walk();
    auto seen = world.look();
    const double before = cpu_ms();
    session.take(std::move(seen));
    if (t >= seconds / 2) sample_ms.push_back(cpu_ms() - before);
    for (Size& size : sizes) {
      const double from = cpu_ms();
      const auto screen = session.screen(size.rows, size.columns);
      if (t >= seconds / 2) size.ms.push_back(cpu_ms() - from);
      if (screen.canvas.rows() != size.rows) return 1;
    }
  }
  Json out = {{"streams", args.integer("streams")}, {"sample_ms", spread_of(sample_ms)}};
  for (const Size& size : sizes)
    out["screens"][std::to_string(size.columns) + "x" + std::to_string(size.rows)] = spread_of(size.ms);
  const cli::JsonOutput json(args);
  if (!json.alone()) {
    const auto line = [](const std::string& what, const Json& ms) {
      std::printf("%-16s median %6.3f ms   p90 %6.3f   max %6.3f of CPU\n", what.c_str(), ms.value("median", 0.0),
                  ms.value("p90", 0.0), ms.value("max", 0.0));
    };
    line("a sample", out.at("sample_ms"));
    for (const Json::Member& screen : out.at("screens").items()) line("screen " + screen.key, screen.value);
  }
  return json.write(out.dump(2) + "\n");
}
