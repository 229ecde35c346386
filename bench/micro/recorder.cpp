// What recording costs the scheduler thread: the same simulated run with and without a record, by the thread's own CPU
// clock, the difference for each entry; beside it a memcpy of as many bytes in pieces of an entry's mean size. And what
// a state of the core costs it, now and then.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "bench/micro/counted_allocations.h"  // that scheduler_drive.cpp reads
#include "bench/micro/scheduler_cases.h"
#include "engine/core/scheduler.h"
#include "engine/papers/presets.h"
#include "engine/record/entries.h"
#include "tools/base/cli/command.h"
#include "tools/base/cli/json_output.h"

namespace {

using namespace leat;

constexpr double kBarNs = 50;  // an entry
constexpr std::size_t kRingBytes = std::size_t{64} << 20;

constexpr cli::Option kOptions[] = {
    cli::integer_option("requests", "100000", 1000, 200'000, "of one run"),
    cli::integer_option("repeats", "9", 1, 1000, "the least time of so many runs of either kind, in turn"),
    cli::json_option(),
};
constexpr cli::Command kCommand = {
    .name = "recorder",
    .summary = "what recording costs the scheduler thread, against a memcpy of the same bytes",
    .options = kOptions};

sim::Scenario scenario(std::size_t requests) {
  sim::Scenario s;
  s.topology = bench::chain(2, 8);
  s.streams.assign(8, {.depth = 1024});
  s.arrivals = sim::to_stream(bench::arrivals(bench::rate_of(s.topology), requests));
  for (std::size_t i = 0; i < s.arrivals.size(); ++i)
    s.arrivals[i].stream = static_cast<std::uint32_t>(i % s.streams.size());
  return s;
}

struct State {
  std::size_t bytes = 0;      // the largest
  double us = 0, us_max = 0;  // median and longest of those that were taken
};

// Of a core with so many partitions and streams, loaded to 90 %, and with leatd's limits.
State state_of(std::uint32_t partitions, std::uint32_t streams, std::size_t requests, std::vector<std::byte>& room) {
  core::Policy policy;
  if (!papers::preset("leat", policy)) return {};
  const core::Topology t = bench::chain(2, partitions);
  std::vector<sim::Arrival> load = sim::to_stream(bench::arrivals(bench::rate_of(t), requests));
  for (std::size_t i = 0; i < load.size(); ++i) load[i].stream = static_cast<std::uint32_t>(i % streams);
  State out;
  std::vector<double> us;
  (void)bench::drive(t, policy, std::vector<core::StreamConfig>(streams, {.depth = 1024}), load,
                     [&](core::Scheduler& core, core::TimeNs) {
                       if (!core.settled()) return;
                       const double before = bench::cpu_ns();
                       out.bytes = std::max(out.bytes, core.save(room));
                       us.push_back((bench::cpu_ns() - before) * 1e-3);
                     });
  if (us.empty()) return out;
  std::ranges::sort(us);
  out.us = us[us.size() / 2];
  out.us_max = us.back();
  return out;
}

double copy_ns(const std::vector<std::byte>& from, std::vector<std::byte>& to, std::uint64_t bytes,
               std::uint64_t entries) {
  const std::size_t each = std::max<std::size_t>(1, bytes / entries);
  const double before = bench::cpu_ns();
  for (std::size_t at = 0; at + each <= bytes; at += each) {
    std::memcpy(to.data() + at, from.data() + at, each);
    asm volatile("" ::: "memory");  // each by itself
  }
  return bench::cpu_ns() - before;
}

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  sim::Scenario s = scenario(static_cast<std::size_t>(args.integer("requests")));
  if (!papers::preset("leat", s.policy)) return 1;
  std::vector<std::byte> bytes(kRingBytes), other(kRingBytes);
  std::uint64_t entries = 0, written = 0;
  double with = 1e18, without = 1e18, copying = 1e18;
  for (std::int64_t i = 0; i < args.integer("repeats"); ++i) {
    s.record = nullptr;
    without = std::min(without, sim::run(s).cpu_seconds * 1e9);
    record::Ring ring(bytes, record::kSegmentBytes, 0, "bench");
    s.record = &ring;
    with = std::min(with, sim::run(s).cpu_seconds * 1e9);
    if (entries == 0) {
      auto record = record::Record::read(bytes);
      if (!record.ok()) return cli::fail(kCommand.name, record.error());
      written = record->bytes();
      for (record::Entry e; record->next(e);) ++entries;
    }
    copying = std::min(copying, copy_ns(bytes, other, written, entries));
  }
  const auto count = static_cast<double>(entries);
  const double ns = (with - without) / count, copy = copying / count;
  const auto requests = static_cast<std::size_t>(args.integer("requests"));
  const State small = state_of(8, 8, requests, other), large = state_of(250, 1000, requests, other);
  const cli::JsonOutput json(args);
  if (!json.alone()) {
    std::printf(
        "%llu entries, %.1f bytes each: %.1f ns an entry (bar: %.0f), a memcpy of its bytes %.1f ns: %.1f times\n"
        "the run with a record takes %.3f times as long as without\n",
        static_cast<unsigned long long>(entries), static_cast<double>(written) / count, ns, kBarNs, copy, ns / copy,
        with / without);
    for (const auto& [of, each] :
         {std::pair("8 partitions and 8 streams", small), std::pair("250 partitions and 1000 streams", large)})
      std::printf("a state of a core with %s: at most %.0f KiB, %.0f us in the median, %.0f at most\n", of,
                  static_cast<double>(each.bytes) / 1024, each.us, each.us_max);
  }
  const auto json_of = [](const State& each) {
    return Json{{"bytes", each.bytes}, {"us", each.us}, {"us_max", each.us_max}};
  };
  const Json out = {{"entries", entries},
                    {"bytes_per_entry", static_cast<double>(written) / count},
                    {"ns_per_entry", ns},
                    {"memcpy_ns_per_entry", copy},
                    {"over_memcpy", ns / copy},
                    {"run_over_run_without", with / without},
                    {"state", {{"small", json_of(small)}, {"large", json_of(large)}}}};
  return json.write(out.dump(1));
}
