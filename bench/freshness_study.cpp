// Freshness of periodic streams that share partitions: the scenarios M3, Ramp and 4 cameras, preset leat against a queue with
// priorities. Run times are drawn by seed, stream and frame, so that no order of execution changes them.
//
// Per stream of period P and max_age A, over the whole run: uncovered: windows of length P from its first capture without a
// delivery of age at most A, in permille; view: the same sampled at the end of each period, of the newest capture delivered; gap:
// the longest time from the expiry of the last usable result to the next usable delivery; age: the mean age of information.
// Each stream's best of in-flight caps 1 and 8; median and range over the repeats.
#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/sim/random.h"
#include "engine/sim/simulator.h"
#include "tools/cli/command.h"
#include "tools/cli/progress.h"

namespace {

using namespace leat;
using core::Priority;
using core::TimeNs;

constexpr cli::Option kOptions[] = {
    {.name = "seed", .type = cli::Type::integer, .value = "N", .fallback = "1", .min = 0, .max = 1e15, .help = "of phases and run times"},
    {.name = "repeats", .type = cli::Type::integer, .value = "N", .fallback = "3", .min = 1, .max = 100, .help = "seeds, from --seed on"},
    {.name = "seconds", .type = cli::Type::integer, .value = "N", .fallback = "30", .min = 1, .max = 3600, .help = "of each run (4 cameras: 4/3 of it)"},
    {.name = "json", .help = "print JSON instead of tables"},
};
constexpr cli::Command kCommand = {.name = "freshness_study",
                                   .summary = "coverage of periodic streams on shared partitions: preset leat against a queue with priorities",
                                   .options = kOptions};

constexpr TimeNs kUs = 1000, kMs = 1'000'000;
constexpr std::array<std::uint32_t, 2> kCaps = {1, 8};

struct Source {
  std::string name;
  TimeNs period = 0, deadline = 0, max_age = 0;
  Priority priority = Priority::normal;
  std::uint32_t model = 0;
  bool background = false;        // fifo of at most four, whatever the cap
};
struct Model {
  TimeNs p50 = 0, p99 = 0;        // one item
  std::uint32_t batch = 1;
  std::uint32_t item_permille = 1000;  // what each further item of a batch adds
  std::vector<core::PartitionId> pool{0};
};
struct Case {
  std::string name;
  std::vector<Source> sources;
  std::vector<Model> models;
  std::uint32_t partitions = 1;
  std::uint32_t seconds_thirds = 3;
};

// Time on a share of the device: as a whole, plus cost/1000 of what a share in proportion would add.
TimeNs shared(TimeNs whole, double share, double cost) { return static_cast<TimeNs>(static_cast<double>(whole) * (1 + cost * (1 / share - 1))); }

Case m3(std::string name, double share_cost) {
  Case c{.name = std::move(name), .sources = {}, .models = {}};
  c.sources = {{"det", 33 * kMs, 33 * kMs, 66 * kMs, Priority::protected_, 0},
               {"pose", 33 * kMs, 33 * kMs, 66 * kMs, Priority::high, 1},
               {"depth", 66 * kMs, 66 * kMs, 132 * kMs, Priority::high, 2},
               {"vlm", 500 * kMs, 800 * kMs, 1500 * kMs, Priority::background, 3, true}};
  c.models = {{15'600 * kUs, 19'600 * kUs}, {4'100 * kUs, 5'700 * kUs}, {9'300 * kUs, 11'500 * kUs}, {97'900 * kUs, 110'000 * kUs}};
  if (share_cost < 0) return c;
  c.partitions = 2;
  for (Model& m : c.models) {
    const bool large = &m != &c.models[3];
    m.p50 = shared(m.p50, large ? 0.7 : 0.3, share_cost);
    m.p99 = shared(m.p99, large ? 0.7 : 0.3, share_cost);
    m.pool = {large ? 0u : 1u};
  }
  return c;
}

Case ramp(std::uint32_t load) {
  const auto period = static_cast<TimeNs>(22'850 * kUs * 100 / load);  // 14.9 + 4.0 + 7.9 / 2 ms of work a period at 100 %
  Case c{.name = "ramp " + std::to_string(load) + " %", .sources = {}, .models = {}};
  c.sources = {{"det", period, period, 2 * period, Priority::protected_, 0},
               {"pose", period, period, 2 * period, Priority::high, 1},
               {"depth", 2 * period, 2 * period, 4 * period, Priority::high, 2}};
  c.models = {{14'900 * kUs, 18'700 * kUs}, {4'000 * kUs, 5'600 * kUs}, {7'900 * kUs, 9'800 * kUs}};
  return c;
}

Case cameras(std::string name, std::uint32_t item_permille) {
  Case c{.name = std::move(name), .sources = {}, .models = {}, .partitions = 2, .seconds_thirds = 4};
  for (const char* camera : {"front", "left", "right", "rear"}) {
    c.sources.push_back({camera, 33'333 * kUs, 100 * kMs, 100 * kMs, c.sources.empty() ? Priority::protected_ : Priority::normal, 0});
  }
  c.sources.push_back({"vlm", 150 * kMs, 1000 * kMs, 2000 * kMs, Priority::background, 1, true});
  c.models = {{19'000 * kUs, 21'800 * kUs, item_permille < 1000 ? 4u : 1u, item_permille, {0}}, {121'000 * kUs, 170'000 * kUs, 1, 1000, {1}}};
  return c;
}

std::vector<Case> cases() {
  std::vector<Case> out = {m3("m3", -1), m3("m3 70/30, half cost", 0.5), m3("m3 70/30, full cost", 1.0)};
  for (std::uint32_t load : {50u, 75u, 90u, 100u, 110u, 125u, 150u}) out.push_back(ramp(load));
  out.push_back(cameras("4 cameras", 1000));
  out.push_back(cameras("4 cameras, batch", 500));
  return out;
}

TimeNs batch_of(const Model& m, TimeNs one, std::uint32_t items) { return one + one * m.item_permille / 1000 * (items - 1); }

sim::Scenario scenario(const Case& c, const core::Policy& policy, bool ours, std::uint32_t cap, std::uint64_t seed, TimeNs length) {
  sim::Scenario s;
  s.policy = policy;
  s.seed = seed;
  s.streams.clear();
  s.topology.partitions.resize(c.partitions);
  s.topology.hosts.resize(1);
  for (std::uint32_t m = 0; m < c.models.size(); ++m) {
    core::StageSpec stage{.pool = c.models[m].pool, .latency = {}};
    for (std::uint32_t b = 1; b <= c.models[m].batch; ++b) {
      stage.latency.p50_ns.push_back(batch_of(c.models[m], c.models[m].p50, b));
      stage.latency.p99_ns.push_back(batch_of(c.models[m], c.models[m].p99, b));
    }
    s.topology.routes.push_back({.module = m, .batch = c.models[m].batch, .rate_rps = 0, .stages = {stage}});
    s.topology.modules.push_back({.application = m, .before = {}, .after = {}, .routes = {m}});
    s.topology.applications.push_back({.slo_ns = 0, .rate_rps = 0, .modules = {m}});
  }
  std::vector<std::vector<sim::Arrival>> lists;
  for (std::uint32_t i = 0; i < c.sources.size(); ++i) {
    const Source& source = c.sources[i];
    s.topology.applications[source.model].slo_ns = source.deadline;
    s.streams.push_back({.application = source.model, .slo_ns = source.deadline, .max_age_ns = ours ? source.max_age : 0, .period_ns = source.period,
                         .depth = source.background ? 4 : cap,
                         .supersede = ours && !source.background ? core::Supersede::latest : core::Supersede::fifo, .priority = source.priority});
    std::vector<TimeNs> times;
    const auto phase = 1 + static_cast<TimeNs>(sim::Random(sim::mix(seed) + i).below(static_cast<std::uint64_t>(source.period)));
    for (TimeNs at = phase; at < length; at += source.period) times.push_back(at);
    lists.push_back(sim::to_stream(times, i));
  }
  s.arrivals = sim::merged(lists);
  return s;
}

// Log-normal through p50 and p99, kept within [p50 / 2, 3 p99].
TimeNs drawn(const Model& m, std::uint64_t seed, std::uint32_t stream, TimeNs capture, std::uint32_t items) {
  constexpr double kNormal99 = 2.3263;
  sim::Random random(sim::mix(sim::mix(seed) + stream) + static_cast<std::uint64_t>(capture));
  const auto p50 = static_cast<double>(m.p50), p99 = static_cast<double>(m.p99);
  const double t = p50 * sim::exp(random.normal() * sim::ln(p99 / p50) / kNormal99);
  return batch_of(m, static_cast<TimeNs>(std::clamp(t, p50 / 2, 3 * p99)), items);
}

struct Freshness {
  double uncovered = 0, view = 0, gap_ms = 0, age_ms = 0, answers = 0;
};
struct Delivery {
  TimeNs at, capture;
};

Freshness measure(const Source& s, std::span<const Delivery> deliveries, TimeNs phase, TimeNs length) {
  const auto windows = static_cast<std::size_t>((length - phase) / s.period);
  std::vector<bool> covered(windows, false);
  TimeNs expiry = phase + s.max_age, gap = 0, newest = phase, since = phase;
  double area = 0;
  std::size_t fresh = 0, sampled = 0;
  const auto sample_until = [&](TimeNs until) {  // the ends of periods before `until`
    for (; sampled < windows && phase + static_cast<TimeNs>(sampled + 1) * s.period < until; ++sampled) {
      const TimeNs end = phase + static_cast<TimeNs>(sampled + 1) * s.period;
      if (!deliveries.empty() && deliveries.front().at <= end && end - newest <= s.max_age) ++fresh;
    }
  };
  const auto age_until = [&](TimeNs until) {
    area += (static_cast<double>(since - newest) + static_cast<double>(until - newest)) / 2 * static_cast<double>(until - since);
    since = until;
  };
  for (const Delivery& d : deliveries) {
    if (d.at > length) break;
    sample_until(d.at);
    age_until(d.at);
    newest = std::max(newest, d.capture);
    if (d.at - d.capture > s.max_age) continue;
    gap = std::max(gap, d.at - expiry);
    expiry = std::max(expiry, d.capture + s.max_age);
    const auto window = static_cast<std::size_t>((d.at - phase) / s.period);
    if (window < windows) covered[window] = true;
  }
  sample_until(length + 1);
  age_until(length);
  gap = std::max(gap, length - expiry);
  const auto hit = static_cast<double>(std::count(covered.begin(), covered.end(), true));
  const auto all = static_cast<double>(windows);
  return {.uncovered = 1000 * (1 - hit / all), .view = 1000 * (1 - static_cast<double>(fresh) / all), .gap_ms = static_cast<double>(gap) / 1e6,
          .age_ms = area / static_cast<double>(length - phase) / 1e6, .answers = static_cast<double>(deliveries.size())};
}

std::vector<Freshness> run_once(const Case& c, const core::Policy& policy, bool ours, std::uint32_t cap, std::uint64_t seed, TimeNs length) {
  sim::Scenario s = scenario(c, policy, ours, cap, seed, length);
  std::vector<std::vector<Delivery>> deliveries(c.sources.size());
  std::vector<TimeNs> phases(c.sources.size(), 0);
  for (const sim::Arrival& a : s.arrivals) {
    if (phases[a.stream] == 0) phases[a.stream] = a.at_ns;
  }
  s.duration = [&](const sim::Execution& e) {
    const sim::Arrival& a = s.arrivals[e.tasks.front().token];
    return drawn(c.models[c.sources[a.stream].model], seed, a.stream, a.at_ns, e.items);
  };
  s.on_answer = [&](const sim::AnswerEvent& e) {
    const sim::Arrival& a = s.arrivals[e.arrival];
    if (e.outcome == Outcome::completed || e.outcome == Outcome::late) deliveries[a.stream].push_back({e.at_ns, a.at_ns});
  };
  (void)sim::run(s);
  std::vector<Freshness> out;
  for (std::size_t i = 0; i < c.sources.size(); ++i) out.push_back(measure(c.sources[i], deliveries[i], phases[i], length));
  return out;
}

struct Cell {
  std::string scenario, policy, stream;
  std::vector<Freshness> repeats;

  template <class Field>
  std::array<double, 3> of(Field field) const {  // median, least, largest
    std::vector<double> v;
    for (const Freshness& f : repeats) v.push_back(f.*field);
    std::sort(v.begin(), v.end());
    return {v[v.size() / 2], v.front(), v.back()};
  }
};

std::vector<Cell> study(std::uint64_t seed, std::uint32_t repeats, TimeNs third) {
  core::Policy ours, baseline;
  if (!core::preset("leat", ours) || !core::preset("fifs", baseline)) return {};
  const std::vector<Case> all = cases();
  cli::Progress progress("freshness study", all.size() * 2, "scenarios");
  std::vector<Cell> cells;
  for (const Case& c : all) {
    for (bool leat : {true, false}) {
      const std::size_t first = cells.size();
      for (const Source& s : c.sources) cells.push_back({c.name, leat ? "leat" : "priority queue", s.name, {}});
      for (std::uint32_t r = 0; r < repeats; ++r) {
        std::vector<Freshness> best;
        for (std::uint32_t cap : kCaps) {
          const auto one = run_once(c, leat ? ours : baseline, leat, cap, seed + r, third * c.seconds_thirds);
          if (best.empty()) best = one;
          for (std::size_t i = 0; i < one.size(); ++i) {
            if (one[i].uncovered < best[i].uncovered) best[i] = one[i];
          }
        }
        for (std::size_t i = 0; i < best.size(); ++i) cells[first + i].repeats.push_back(best[i]);
      }
      progress.add(1);
    }
  }
  return cells;
}

void print(const std::vector<Cell>& cells, std::uint64_t seed) {
  std::printf("seed %llu; uncovered and view in permille; medians [least, largest]; caps 1 and 8, the better one for each stream\n",
              static_cast<unsigned long long>(seed));
  std::printf("%-22s %-15s %-6s %20s %7s %9s %8s %8s\n", "scenario", "policy", "stream", "uncovered", "view", "gap ms", "age ms", "answers");
  for (const Cell& c : cells) {
    const auto u = c.of(&Freshness::uncovered);
    char uncovered[48];
    std::snprintf(uncovered, sizeof uncovered, "%.1f [%.1f, %.1f]", u[0], u[1], u[2]);
    std::printf("%-22s %-15s %-6s %20s %7.1f %9.1f %8.1f %8.0f\n", c.scenario.c_str(), c.policy.c_str(), c.stream.c_str(), uncovered,
                c.of(&Freshness::view)[0], c.of(&Freshness::gap_ms)[0], c.of(&Freshness::age_ms)[0], c.of(&Freshness::answers)[0]);
  }
}

nlohmann::ordered_json to_json(const std::vector<Cell>& cells, std::uint64_t seed) {
  nlohmann::ordered_json out = {{"seed", seed}, {"cells", nlohmann::ordered_json::array()}};
  for (const Cell& c : cells) {
    const auto u = c.of(&Freshness::uncovered);
    out["cells"].push_back({{"scenario", c.scenario}, {"policy", c.policy}, {"stream", c.stream}, {"uncovered_permille", u[0]},
                            {"uncovered_permille_least", u[1]}, {"uncovered_permille_largest", u[2]}, {"view_uncovered_permille", c.of(&Freshness::view)[0]},
                            {"longest_gap_ms", c.of(&Freshness::gap_ms)[0]}, {"mean_age_ms", c.of(&Freshness::age_ms)[0]},
                            {"answers", c.of(&Freshness::answers)[0]}});
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  const auto seed = static_cast<std::uint64_t>(args.integer("seed"));
  const TimeNs third = args.integer("seconds") * 1'000'000'000 / 3;
  const std::vector<Cell> cells = study(seed, static_cast<std::uint32_t>(args.integer("repeats")), third);
  if (args.flag("json")) {
    std::printf("%s\n", to_json(cells, seed).dump(1).c_str());
  } else {
    print(cells, seed);
  }
  return 0;
}
