// What a decision costs: the scheduler core under a driver that does nothing but move a clock, at 90 % load, for every
// preset. ns per request: submission, drop decision, placement, batching, dispatch, end of stage and answer, driver
// included; with five modules that is five decisions a request. Allocations inside the core after set-up are counted by
// replacing operator new. Look-ahead, which weighs moves where periodic streams share a partition, is timed decision by
// decision for 3, 8 and 24 streams, and 1000 cameras on 250 partitions beside. Reservations need links and starts in
// the future, so `ppipe`, `reactive` and pipelined plans run inside the simulator, whose cost is in the figure. At the
// end another plan taken over under load.
#include <algorithm>
#include <cstdio>

#include "bench/micro/counted_allocations.h"
#include "bench/micro/scheduler_cases.h"
#include "engine/papers/presets.h"
#include "tools/base/cli/command.h"
#include "tools/base/cli/json_output.h"
#include "tools/base/json/json.h"

namespace {

using namespace leat;
using namespace leat::bench;
using core::TimeNs;

constexpr cli::Option kOptions[] = {
    cli::integer_option("requests", "100000", 100, 100000000, "per measurement"),
    {.name = "presets",
     .type = cli::Type::text,
     .value = "LIST",
     .fallback = "leat,pard,elsa,ppipe,harpagon,reactive,nexus,clipper++,naive,fifs",
     .help = "names separated by commas"},
    cli::integer_option("repeats", "3", 1, 100, "the least time of so many counts"),
    cli::json_option(),
};
constexpr cli::Command kCommand = {
    .name = "scheduler", .summary = "cost of a scheduling decision and of the simulator", .options = kOptions};

struct Measuring {
  std::size_t requests;
  std::int64_t repeats;
  bool table;
  Json root{};
  std::uint64_t in_core = 0;  // allocations

  template <class Once>
  double quickest(Once&& once) const {
    double ns = 1e18;
    for (std::int64_t i = 0; i < repeats; ++i) ns = std::min(ns, once());
    return ns;
  }
  double in_simulator(const core::Topology& t, const core::Policy& policy) const {
    const std::vector<TimeNs> times = arrivals(rate_of(t), requests);
    return quickest([&] { return simulate(t, policy, times).cpu_seconds * 1e9 / static_cast<double>(times.size()); });
  }
  double driven(const core::Topology& t, const core::Policy& policy) {
    const std::vector<sim::Arrival> list = sim::to_stream(arrivals(rate_of(t), requests));
    return quickest([&] {
      const Cost c = drive(t, policy, {core::StreamConfig{.depth = 16384}}, list);
      in_core += c.allocations;
      return c.ns_per_request;
    });
  }
  void chains(const std::vector<core::NamedPolicy>& presets);
  void pipelines(const std::vector<core::NamedPolicy>& presets);
  void shared(const core::Policy& leat);
  void streams(const core::Policy& leat);
  void swaps(const core::Policy& leat);
};

void Measuring::chains(const std::vector<core::NamedPolicy>& presets) {
  if (table)
    std::printf("ns per request (1 module, then 5 modules) by partitions\n%-12s %17s %17s %17s %17s\n", "preset", "8",
                "56", "100", "400");
  for (const auto& [name, policy] : presets) {
    if (table) std::printf("%-12s", name.c_str());
    for (const std::uint32_t partitions : {8u, 56u, 100u, 400u}) {
      for (const std::uint32_t modules : {1u, 5u}) {
        const core::Topology t = chain(modules, partitions);
        const bool reserves = name.starts_with("ppipe") || name.starts_with("reactive");
        const double ns = reserves ? in_simulator(t, policy) : driven(t, policy);
        root[modules == 1 ? "ns_per_request" : "ns_per_request_5_modules"][name][std::to_string(partitions)] = ns;
        if (table) std::printf(" %8.0f", ns);
      }
    }
    if (table) std::printf("\n");
  }
}

// Routes of two stages on different hosts.
void Measuring::pipelines(const std::vector<core::NamedPolicy>& presets) {
  if (table) std::printf("routes of two stages, ns per request on 20, 100, 400 partitions\n");
  for (const auto& [name, policy] : presets) {
    if (name != "leat" && name != "ppipe") continue;
    if (table) std::printf("%-12s", name.c_str());
    for (const std::uint32_t partitions : {20u, 100u, 400u}) {
      const double ns = in_simulator(pipeline(2, partitions), policy);
      root["ns_per_request_two_stages"][name][std::to_string(partitions)] = ns;
      if (table) std::printf(" %8.0f", ns);
    }
    if (table) std::printf("\n");
  }
}

void Measuring::shared(const core::Policy& leat) {
  if (table) std::printf("leat, five modules on all of 8, 100, 400 partitions, ns per request\n%-12s", "");
  for (const std::uint32_t partitions : {8u, 100u, 400u}) {
    core::Topology t = chain(5, partitions);
    for (core::RouteSpec& r : t.routes) {
      r.stages[0].pool.clear();
      for (core::PartitionId p = 0; p < partitions; ++p) r.stages[0].pool.push_back(p);
    }
    const std::vector<sim::Arrival> list = sim::to_stream(arrivals(rate_of(t) / 5, requests));
    const double ns = quickest([&] {
      const Cost c = drive(t, leat, {core::StreamConfig{.depth = 16384}}, list);
      in_core += c.allocations;
      return c.ns_per_request;
    });
    root["ns_per_request_shared"][std::to_string(partitions)] = ns;
    if (table) std::printf(" %8.0f", ns);
  }
  if (table) std::printf("\n");
}

void Measuring::streams(const core::Policy& leat) {
  if (table) std::printf("look-ahead, ns per decision: mean, worst; mean of the same events without it\n");
  for (const std::uint32_t streams : {3u, 8u, 24u}) {
    const TimeNs length = std::max<TimeNs>(static_cast<TimeNs>(requests) * 33 * kMs / streams / 10, 500 * kMs);
    const Json row = look_ahead_cost(streams, length, repeats, in_core);
    root["look_ahead"][std::to_string(streams)] = row;
    if (!table) continue;
    std::printf("  %2u streams %10.0f %10.0f %10.0f\n", streams, row["mean_ns"].get<double>(),
                row["worst_ns"].get<double>(), row["mean_ns_without"].get<double>());
  }
  if (table) std::printf("1000 cameras on 250 partitions, ns per request: all on all, in 25 groups, in 250\n%-12s", "");
  for (const std::uint32_t groups : {1u, 25u, 250u}) {
    const double ns = quickest([&] {
      const Cost c = cameras(leat, groups, requests);
      in_core += c.allocations;
      return c.ns_per_request;
    });
    root["ns_per_request_cameras"][std::to_string(groups)] = ns;
    if (table) std::printf(" %8.0f", ns);
  }
  if (table) std::printf("\n");
}

void Measuring::swaps(const core::Policy& leat) {
  Swap best{1e18, 1e18, 1e18};
  for (std::int64_t i = 0; i < repeats; ++i) {
    const Swap once = swap(leat);
    best = {std::min(best.prepare_ms, once.prepare_ms), std::min(best.replace_us, once.replace_us),
            std::min(best.replace_us_max, once.replace_us_max)};
  }
  root["swap"] = {
      {"prepare_ms", best.prepare_ms}, {"replace_us", best.replace_us}, {"replace_us_most", best.replace_us_max}};
  if (table)
    std::printf(
        "another plan, 400 partitions and 1000 streams: made in %.2f ms, taken over in %.0f us (at most %.0f)\n",
        best.prepare_ms, best.replace_us, best.replace_us_max);
}

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  const cli::JsonOutput json(args);
  Measuring m{.requests = static_cast<std::size_t>(args.integer("requests")),
              .repeats = args.integer("repeats"),
              .table = !json.alone()};
  m.root = {{"requests", m.requests}, {"batch", kBatch}};
  const Result<std::vector<core::NamedPolicy>> presets = papers::read_policies(args.text("presets"));
  if (!presets.ok()) return cli::fail(kCommand.name, "--presets: " + presets.error());
  core::Policy leat;
  if (!core::preset("leat", leat)) return 1;
  m.chains(*presets);
  m.pipelines(*presets);
  m.shared(leat);
  m.streams(leat);
  m.swaps(leat);
  const core::Topology t = chain(5, 64);
  const std::vector<TimeNs> times = arrivals(rate_of(t), m.requests * 5);
  const double best =
      1e9 / m.quickest([&] { return simulate(t, leat, times).cpu_seconds * 1e9 / static_cast<double>(times.size()); });
  m.root["simulated_requests_per_second"] = best;
  m.root["allocations_after_setup"] = m.in_core;
  if (m.table) {
    std::printf("simulator, leat, 5 modules on 64 partitions: %.0f requests/s\nallocations after set-up: %llu\n", best,
                static_cast<unsigned long long>(m.in_core));
  }
  return json.write(m.root.dump(1));
}
