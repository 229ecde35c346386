// What the transport costs, as ratios to floors and peers measured in the same run.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/transport_rings.h"
#include "tools/cli/command.h"

namespace {

using namespace leat;

constexpr cli::Option kOptions[] = {
    {.name = "seconds", .type = cli::Type::real, .value = "S", .fallback = "8", .min = 0.1, .max = 240, .help = "time to measure, all parts together"},
    {.name = "json", .help = "print one JSON object instead of a table"},
};
constexpr cli::Command kCommand = {.name = "transport", .summary = "measures rings, relay and the path through leatd", .options = kOptions};

// No undisturbed round: unknown, not zero.
nlohmann::json to_json(const bench::Figure& f) {
  if (f.rounds == 0) return nullptr;
  return {{"median", f.median}, {"p10", f.low}, {"p90", f.high}, {"rounds", f.rounds}};
}
nlohmann::json median(const bench::Figure& f) { return f.rounds == 0 ? nlohmann::json() : nlohmann::json(f.median); }

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  const bench::Cores cores = bench::choose_cores();
  if (cores.near == cores.far) {
    std::fprintf(stderr, "transport: one core only; two processes on two cores are what it measures\n");
    return cli::kBadInput;
  }
  bench::prefer();
  const bench::RingFigures r = bench::measure_rings(cores, args.real("seconds") / 2);
  nlohmann::json j;
  j["floor_rtt_ns"] = {r.floor_rtt_ns[0], r.floor_rtt_ns[1]};
  j["ring_rtt_over_floor"] = median(r.rtt_over_floor);
  j["ring_throughput_over_boost"] = median(r.throughput_over_boost);
  j["spread"]["ring_rtt_over_floor"] = to_json(r.rtt_over_floor);
  j["spread"]["ring_throughput_over_boost"] = to_json(r.throughput_over_boost);
  j["spread"]["ring_messages_per_s"] = to_json(r.throughput);
  j["spread"]["ring_messages_per_s_one_by_one"] = to_json(r.throughput_single);
  j["spread"]["boost_messages_per_s"] = to_json(r.throughput_boost);
  j["rounds_dropped"] = r.dropped;
  std::printf("%s\n", j.dump(2).c_str());
  return 0;
}
