// leat sim --coordinated: clients of coordinated streams on a plan, with what tracking loses from recorded tables, as
// many as are given; who is admitted, what they keep, and what it costs.
#include "tools/leat/sim/coordinated.h"

#include <algorithm>
#include <cstdio>

#include "engine/sim/random.h"
#include "engine/sim/shown.h"
#include "tools/cli/json_output.h"
#include "tools/json/json.h"
#include "tools/scene/drop_table.h"

namespace leat::tools {
namespace {

using core::TimeNs;

constexpr TimeNs kPeriod = 16'666'667;
constexpr double kWarmUp = 3;  // seconds that are not judged
constexpr std::uint32_t kTableFrames = 300, kTableEvery = 3;

Result<std::vector<scene::DropTable>> record(const std::string& list, std::uint64_t seed) {
  std::vector<scene::DropTable> tables;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    const std::string name = list.substr(at, comma - at);
    const auto kind = scene::motion_kind(name);
    if (!kind) {
      std::string known;
      for (const scene::MotionKind& k : scene::kMotionKinds) known += (known.empty() ? "" : ", ") + std::string(k.name);
      return Error{"--video: there is no video '" + name + "'; there are: " + known};
    }
    tables.push_back(scene::record_drops(*kind, seed, kTableFrames, kTableEvery));
    at = comma + 1;
  }
  return tables;
}

struct Client {
  const scene::DropTable* table = nullptr;
  std::uint64_t offset = 0;
  sim::Shown shown;
  core::StreamSchedule schedule;
  std::uint64_t answers = 0;
};

}  // namespace

int simulate_coordinated(const cli::Arguments& args, const sim::Study& study, const core::Policy& policy) {
  sim::Scenario s;
  s.topology = study.believed;
  s.reality = &study.reality;
  s.policy = policy;
  s.seed = static_cast<std::uint64_t>(args.integer("seed"));
  s.noise_permille = study.noise_permille;
  s.check_every = study.check_every;
  s.faults = study.faults.faults;
  const auto count = static_cast<std::uint32_t>(args.integer("coordinated"));
  const auto tasks = static_cast<std::uint32_t>(args.integer("tasks"));
  s.limits.streams = s.limits.coordinated = tasks > 1 ? count + (count + tasks - 1) / tasks : count;
  if (core::Scheduler probe(s.topology, s.policy, s.limits); !probe.can_coordinate(0))
    return cli::fail("leat sim",
                     "--coordinated: the plan's first application is not one uncut module; only such ones are "
                     "coordinated");
  const auto tables = record(args.text("video"), static_cast<std::uint64_t>(args.integer("seed")));
  if (!tables) return cli::fail("leat sim", tables.error());
  const double sla = args.real("accuracy"),
               seconds = study.length_ns > 0 ? 1e-9 * static_cast<double>(study.length_ns) : 30;
  s.cameras_until_ns = static_cast<TimeNs>(1e9 * seconds);
  s.streams.clear();
  sim::Random random(s.seed * 7919 + 17);
  TimeNs single = core::kNever;
  for (const core::RouteId r : s.topology.modules[s.topology.applications[0].modules[0]].routes)
    single = std::min(single, s.topology.routes[r].stages[0].latency.p50_ns[0]);
  std::vector<Client> clients;
  for (std::uint32_t i = 0; i < count; ++i) {
    const scene::DropTable* table = &(*tables)[i % tables->size()];
    const std::uint64_t offset = random.below(table->frames);
    const auto phase = static_cast<TimeNs>(random.below(kPeriod));
    s.streams.push_back({.depth = 4,
                         .supersede = core::Supersede::latest,
                         .terms = {.sla_drop = sla, .period_ns = kPeriod, .group = tasks > 1 ? 1 + i / tasks : 0}});
    s.cameras.push_back(
        {.stream = i, .phase_ns = phase, .seen = [table, offset](std::uint64_t f, std::uint32_t stride) {
           return table->observed(offset + f, stride);
         }});
    clients.push_back(
        {.table = table,
         .offset = offset,
         .shown = sim::Shown({.phase_ns = phase,
                              .period_ns = kPeriod,
                              .sla_drop = sla,
                              .single = core::streams::frames_until_answer(single, {.period_ns = kPeriod}, 0.1),
                              .from_ns = static_cast<TimeNs>(1e9 * kWarmUp),
                              .extra = [table, offset](std::uint64_t f, std::uint32_t stride) {
                                return table->extra(offset + f, stride);
                              }})});
  }
  using core::streams::Standing;
  s.on_shown = [&](const sim::ShownEvent& e) {
    Client& c = clients[e.camera];
    ++c.answers;  // what was under way when it was evicted is shown to nobody who counts
    if (c.schedule.view.standing == Standing::admitted) c.shown.answer(e.at_ns, e.frame);
  };
  s.on_schedule = [&](TimeNs at, std::uint32_t camera, const core::StreamSchedule& told) {
    Client& c = clients[camera];
    if (c.schedule.view.standing == Standing::admitted && told.view.standing != Standing::admitted) c.shown.evicted(at);
    c.schedule = told;
  };
  double batches = 0, items = 0;
  s.on_run = [&](const sim::RunEvent& e) {
    batches += 1;
    items += e.items;
  };
  const sim::Outcomes out = sim::run(s);
  double answers = 0, kept = 0, all = 0, admitted = 0, evictions = 0;
  Json list = Json::array();
  for (Client& c : clients) {
    c.shown.show(s.cameras_until_ns);
    answers += static_cast<double>(c.answers);
    kept += c.shown.kept();
    all += c.shown.seconds();
    const core::streams::StreamView& v = c.schedule.view;
    admitted += v.standing == core::streams::Standing::admitted ? 1 : 0;
    evictions += v.evictions;
    list.push_back({{"video", c.table->video},
                    {"admitted", v.standing == core::streams::Standing::admitted},
                    {"evictions", v.evictions},
                    {"interval", v.setting.interval},
                    {"planned_drop", v.planned_drop},
                    {"measured_drop", v.measured_drop},
                    {"seconds", c.shown.seconds()},
                    {"seconds_within_sla", c.shown.kept()},
                    {"mean_drop", c.shown.mean_drop()},
                    {"detections_per_second", static_cast<double>(c.answers) / seconds}});
  }
  const Json json = {{"clients", count},
                     {"sla_drop", sla},
                     {"admitted", admitted},
                     {"evictions", evictions},
                     {"seconds_within_sla_share", all == 0 ? Json() : Json(kept / all)},
                     {"mean_clients", all / (seconds - kWarmUp)},
                     {"detections_per_second", answers / seconds},
                     {"frames_per_second", count * 1e9 / static_cast<double>(kPeriod)},
                     {"batch", batches == 0 ? Json() : Json(items / batches)},
                     {"goodput", out.goodput()},
                     {"per_client", list},
                     {"trace_hash", out.trace_hash},
                     {"seconds", seconds}};
  const cli::JsonOutput output(args);
  if (output.wanted())
    if (const int failed = output.write(json.dump(1)); failed != 0) return failed;
  if (output.alone()) return 0;
  std::printf("%u clients at %.3f: %.0f admitted at the end, %.1f in the mean; %.1f %% of their seconds within it\n",
              count, sla, admitted, all / (seconds - kWarmUp), all == 0 ? 0 : 100 * kept / all);
  std::printf("%.1f detections/s of %.0f frames/s, %.1f in a batch; %.0f evictions in %.0f s\n", answers / seconds,
              count * 1e9 / static_cast<double>(kPeriod), batches == 0 ? 0 : items / batches, evictions, seconds);
  std::printf("%-14s %8s %9s %8s %8s %9s\n", "video", "clients", "admitted", "every", "lost", "within %");
  for (const scene::DropTable& t : *tables) {
    double n = 0, in = 0, every = 0, lost = 0, held = 0, second = 0;
    for (const Client& c : clients) {
      if (c.table != &t) continue;
      n += 1;
      second += c.shown.seconds();
      held += c.shown.kept();
      lost += c.shown.mean_drop() * c.shown.seconds();
      if (c.schedule.view.standing != core::streams::Standing::admitted) continue;
      in += 1;
      every += c.schedule.view.setting.interval;
    }
    std::printf("%-14s %8.0f %9.0f %8.1f %8.3f %9.1f\n", t.video.c_str(), n, in, in == 0 ? 0 : every / in,
                second == 0 ? 0 : lost / second, second == 0 ? 0 : 100 * held / second);
  }
  std::printf("trace hash %016llx\n", static_cast<unsigned long long>(out.trace_hash));
  return 0;
}

}  // namespace leat::tools
