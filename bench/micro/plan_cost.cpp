// What a tick of the coordinator costs: streams of 60 frames a second with slopes as generated videos have them, ticks
// in which nobody comes or goes, and allocations after set-up.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <vector>

#include "bench/micro/counted_allocations.h"
#include "bench/study.h"
#include "engine/core/streams/coordinator/coordinator.h"

namespace {

using namespace leat;
using bench::allocations;
using core::TimeNs;

constexpr cli::Option kOptions[] = {
    {.name = "streams",
     .type = cli::Type::text,
     .value = "LIST",
     .fallback = "100,1000",
     .help = "how many, separated by commas; one partition for every 50"},
    cli::integer_option("ticks", "200", 10, 1e6, "timed"),
    cli::json_option(),
};
constexpr cli::Command kCommand = {
    .name = "plan_cost", .summary = "time and allocations of one plan for coordinated streams", .options = kOptions};

Json measure(std::uint32_t streams, std::uint32_t ticks) {
  std::vector<TimeNs> batch_ns;
  for (int b = 1; b <= 32; ++b) batch_ns.push_back(static_cast<TimeNs>(1e6 * (6 + 1.5 * b)));
  core::streams::CoordinatorSettings settings;
  settings.streams = streams;
  const std::uint32_t partitions = (streams + 49) / 50;
  core::streams::Coordinator c({std::vector(partitions, batch_ns)}, settings);
  for (std::uint32_t i = 0; i < streams; ++i) static_cast<void>(c.open(0, {.sla_drop = 0.06}));
  std::vector<double> us;
  us.reserve(ticks);
  std::uint64_t before = 0;
  std::uint32_t timed = 0;
  for (TimeNs now = 0; timed < ticks; now += settings.tick_ns) {
    // Once everybody is in.
    const bool settled = now > 5'000'000'000;
    if (settled && timed == 0) before = allocations;
    const auto begin = std::chrono::steady_clock::now();
    c.tick(now);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    if (settled) {
      us.push_back(took.count());
      ++timed;
    }
    for (std::uint32_t i = 0; i < streams; ++i) {
      // Detections flicker by .035 each, and tracking loses .002 to .006 a frame (estimator.h).
      const std::uint32_t stride = 1 + (i + static_cast<std::uint32_t>(now / settings.tick_ns)) % 12;
      const double lost = (0.002 + 0.001 * (i % 5)) * c.curve().at(stride);
      c.observe(now, i, stride, std::hypot(0.035 + lost, 0.035));
      c.answered(now, i, now - 30'000'000);
    }
  }
  const std::uint64_t allocated = allocations - before;
  std::size_t frames = 0;
  for (const core::streams::PlannedBatch& b : c.batches()) frames += b.count;
  std::sort(us.begin(), us.end());
  return {{"us_median", us[us.size() / 2]},
          {"us_p99", us[us.size() * 99 / 100]},
          {"admitted", c.admitted_streams()},
          {"batches", c.batches().size()},
          {"frames", frames},
          {"allocations", allocated}};
}

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  Json out;
  const std::string list = args.text("streams");
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    const std::string each = list.substr(at, comma - at);
    const int streams = std::atoi(each.c_str());
    if (streams < 1 || streams > 100000) return cli::fail(kCommand.name, "--streams: give numbers from 1 to 100000");
    out["streams"][each] =
        measure(static_cast<std::uint32_t>(streams), static_cast<std::uint32_t>(args.integer("ticks")));
    at = comma + 1;
  }
  const cli::JsonOutput json(args);
  if (const int failed = json.write(out.dump(1)); failed != 0 || json.alone()) return failed;
  for (const auto& [streams, row] : out["streams"].items())
    std::printf("%6s streams (%u admitted): %8.1f us in the median, %8.1f at p99, %llu allocations\n", streams.c_str(),
                row["admitted"].get<unsigned>(), row["us_median"].get<double>(), row["us_p99"].get<double>(),
                row["allocations"].get<unsigned long long>());
  return 0;
}
