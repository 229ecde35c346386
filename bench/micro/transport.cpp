// What the transport costs, as ratios to floors and peers measured in the same run.
#include <cstdio>

#include "bench/micro/host_kind.h"
#include "bench/micro/transport_relay.h"
#include "bench/micro/transport_rings.h"
#include "bench/serving/leatd_child.h"
#include "tools/base/cli/command.h"
#include "tools/base/cli/json_output.h"
#include "tools/base/json/json.h"

namespace {

using namespace leat;

constexpr cli::Option kOptions[] = {
    cli::real_option("seconds", "12", 0.3, 240, "time to measure, all parts together", "S"),
    bench::kLeatdOption,
    cli::json_option(),
};
constexpr cli::Command kCommand = {
    .name = "transport",
    .summary = "measures rings, relay and the path through leatd",
    .description =
        "Every figure is a ratio to a floor or peer measured in the same run: the submission ring's round trip to two "
        "cache lines, one each way, between two pinned processes, its throughput to Boost's queue in its default use, "
        "and a frame's way through leatd to a bare relay of three processes. What they come to is the processor's "
        "matter too: the first lines say which it is. A figure that no undisturbed round gave is null.",
    .options = kOptions};

// No undisturbed round: unknown, not zero.
Json to_json(const bench::Figure& f) {
  if (f.rounds == 0) return nullptr;
  return {{"median", f.median}, {"p10", f.low}, {"p90", f.high}, {"rounds", f.rounds}};
}
Json median(const bench::Figure& f) { return f.rounds == 0 ? Json() : Json(f.median); }

void print_line(const char* what, const bench::Figure& f, double scale, const char* unit, const char* bar) {
  if (f.rounds == 0)
    std::printf("%-44s unknown: no undisturbed round\n", what);
  else
    std::printf("%-44s %8.2f %s  (p10 %.2f, p90 %.2f, %zu rounds)%s\n", what, f.median * scale, unit, f.low * scale,
                f.high * scale, f.rounds, bar);
}

void print_table(const bench::HostKind& host, const bench::RingFigures& r, const Result<bench::PathFigures>& p) {
  std::printf("host: %s, %u cores, %s\n", host.processor.c_str(), host.cores, host.caches.c_str());
  std::printf("one line that both ends write, round trip     %8.0f ns\n", r.one_line_rtt_ns);
  std::printf("floor: a line each way, round trip            %8.0f ns before, %.0f ns after\n", r.floor_rtt_ns[0],
              r.floor_rtt_ns[1]);
  print_line("ring round trip over the floor", r.rtt_over_floor, 1, "x", "  bar: <= 1.1");
  print_line("ring, in batches", r.throughput, 1e-6, "M/s", "");
  print_line("ring, one by one", r.throughput_single, 1e-6, "M/s", "");
  print_line("boost::lockfree::spsc_queue, one by one", r.throughput_boost, 1e-6, "M/s", "");
  print_line("ring in batches over boost", r.throughput_over_boost, 1, "x", "  bar: >= 1.5");
  print_line("ring one by one over boost", r.single_over_boost, 1, "x", "");
  if (!p) {
    std::printf("path through leatd: unknown: %s\n", p.error().c_str());
    return;
  }
  print_line("bare relay of three processes, round trip", p->relay_rtt_ns, 1e-3, "us", "");
  print_line("path through leatd, round trip", p->path_rtt_ns, 1e-3, "us", "");
  print_line("path over relay", p->path_over_relay, 1, "x", "  bar: <= 1.3");
}

Json to_json(const bench::HostKind& host, const bench::RingFigures& r, const Result<bench::PathFigures>& p) {
  const bool floor = r.rtt_over_floor.rounds != 0;
  Json j;
  j["host"] = {{"processor", host.processor}, {"cores", host.cores}, {"caches", host.caches}};
  j["messages_checked"] = r.messages;
  j["one_line_rtt_ns"] = floor ? Json(r.one_line_rtt_ns) : nullptr;
  j["floor_rtt_ns"] = {floor ? Json(r.floor_rtt_ns[0]) : nullptr, floor ? Json(r.floor_rtt_ns[1]) : nullptr};
  j["ring_rtt_over_floor"] = median(r.rtt_over_floor);
  j["ring_throughput_over_boost"] = median(r.throughput_over_boost);
  j["path_rtt_over_relay"] = p ? median(p->path_over_relay) : Json();
  Json spread;  // of its own: a key that j gets later may move what stands in it
  spread["ring_rtt_over_floor"] = to_json(r.rtt_over_floor);
  spread["ring_throughput_over_boost"] = to_json(r.throughput_over_boost);
  spread["ring_one_by_one_over_boost"] = to_json(r.single_over_boost);
  spread["ring_messages_per_s"] = to_json(r.throughput);
  spread["ring_messages_per_s_one_by_one"] = to_json(r.throughput_single);
  spread["boost_messages_per_s"] = to_json(r.throughput_boost);
  j["rounds_dropped"] = r.dropped + (p ? p->dropped : 0);
  if (p) {
    spread["relay_rtt_ns"] = to_json(p->relay_rtt_ns);
    spread["path_rtt_ns"] = to_json(p->path_rtt_ns);
    spread["path_rtt_over_relay"] = to_json(p->path_over_relay);
  } else {
    j["path_unknown_because"] = p.error();
  }
  j["spread"] = std::move(spread);
  return j;
}

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  const bench::Cores cores = bench::choose_cores();
  if (cores.near == cores.far) {
    std::fprintf(stderr,
                 "transport: only one core may be used here, and it measures what passes between two; give it two "
                 "(taskset, cgroup)\n");
    return cli::kBadInput;
  }
  bench::prefer();
  const double third = args.real("seconds") / 3;
  const bench::RingFigures r = bench::measure_rings(cores, 2 * third);
  const auto p = bench::measure_path(cores, third, bench::leatd_of(args));
  const cli::JsonOutput json(args);
  const bench::HostKind host = bench::host_kind();
  if (!json.alone()) print_table(host, r, p);
  return json.write(to_json(host, r, p).dump(2));
}
