// What recording costs the scheduler thread: the same simulated run with and without a record, by the thread's own CPU
// clock, the difference for each entry; beside it a memcpy of as many bytes in pieces of an entry's mean size.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <vector>

#include "bench/micro/counted_allocations.h"  // that scheduler_drive.cpp reads
#include "bench/micro/scheduler_cases.h"
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
  const cli::JsonOutput json(args);
  if (!json.alone())
    std::printf(
        "%llu entries, %.1f bytes each: %.1f ns an entry (bar: %.0f), a memcpy of its bytes %.1f ns: %.1f times\n"
        "the run with a record takes %.3f times as long as without\n",
        static_cast<unsigned long long>(entries), static_cast<double>(written) / count, ns, kBarNs, copy, ns / copy,
        with / without);
  const Json out = {{"entries", entries},       {"bytes_per_entry", static_cast<double>(written) / count},
                    {"ns_per_entry", ns},       {"memcpy_ns_per_entry", copy},
                    {"over_memcpy", ns / copy}, {"run_over_run_without", with / without}};
  return json.write(out.dump(1));
}
