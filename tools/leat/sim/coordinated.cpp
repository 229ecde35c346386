// leat sim --coordinated: clients of coordinated streams on a plan, with what tracking loses from recorded tables, as
// many as are given; who is admitted, what they keep, and what it costs.
#include "tools/leat/sim/coordinated.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "engine/sim/shown.h"
#include "engine/sim/workload/random.h"
#include "tools/base/cli/json_output.h"
#include "tools/base/json/json.h"
#include "tools/scene/tracking/drop_table.h"

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

// One uncut module each.
std::vector<std::uint32_t> coordinated_applications(const sim::Scenario& s) {
  std::vector<std::uint32_t> out;
  const core::Scheduler probe(s.topology, s.policy, s.limits);
  for (std::uint32_t a = 0; a < s.topology.applications.size(); ++a)
    if (probe.can_coordinate(a)) out.push_back(a);
  return out;
}

// Of one frame by itself, on the quickest of its partitions.
TimeNs single_ns(const core::Topology& t, std::uint32_t application) {
  TimeNs single = core::kNever;
  for (const core::RouteId r : t.modules[t.applications[application].modules[0]].routes)
    single = std::min(single, t.routes[r].stages[0].latency.p50_ns[0]);
  return single;
}

struct Client {
  std::uint32_t application = 0;
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
  const std::vector<std::uint32_t> applications = coordinated_applications(s);
  if (applications.empty())
    return cli::fail("leat sim",
                     "--coordinated: no application of the plan is one uncut module; only such ones are coordinated");
  const auto tables = record(args.text("video"), static_cast<std::uint64_t>(args.integer("seed")));
  if (!tables) return cli::fail("leat sim", tables.error());
  const double sla = args.real("accuracy"),
               seconds = study.length_ns > 0 ? 1e-9 * static_cast<double>(study.length_ns) : 30;
  s.cameras_until_ns = static_cast<TimeNs>(1e9 * seconds);
  s.streams.clear();
  sim::Random random(s.seed * 7919 + 17);
  std::vector<Client> clients;
  for (std::uint32_t i = 0; i < count; ++i) {
    // Every video with every application: each round of them begins with the next.
    const std::size_t turn = i + i / std::lcm(tables->size(), applications.size());
    const std::uint32_t application = applications[turn % applications.size()];
    const scene::DropTable* table = &(*tables)[i % tables->size()];
    const std::uint64_t offset = random.below(table->frames);
    const auto phase = static_cast<TimeNs>(random.below(kPeriod));
    s.streams.push_back({.application = application,
                         .depth = 4,
                         .supersede = core::Supersede::latest,
                         .terms = {.sla_drop = sla, .period_ns = kPeriod, .group = tasks > 1 ? 1 + i / tasks : 0}});
    s.cameras.push_back(
        {.stream = i, .phase_ns = phase, .seen = [table, offset](std::uint64_t f, std::uint32_t stride) {
           return table->observed(offset + f, stride);
         }});
    clients.push_back({.application = application,
                       .table = table,
                       .offset = offset,
                       .shown = sim::Shown({.phase_ns = phase,
                                            .period_ns = kPeriod,
                                            .sla_drop = sla,
                                            .single = core::streams::frames_until_answer(
                                                single_ns(s.topology, application), {.period_ns = kPeriod}, 0.1),
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
    list.push_back({{"application", study.plan.applications[c.application].name},
                    {"video", c.table->video},
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
  const auto table = [&](const char* of, std::size_t width) {
    std::printf("%-*s %8s %9s %8s %8s %9s\n", static_cast<int>(width), of, "clients", "admitted", "every", "lost",
                "within %");
  };
  const auto row = [&](const std::string& name, std::size_t width, const auto& belongs) {
    double n = 0, in = 0, every = 0, lost = 0, held = 0, second = 0;
    for (const Client& c : clients) {
      if (!belongs(c)) continue;
      n += 1;
      second += c.shown.seconds();
      held += c.shown.kept();
      lost += c.shown.mean_drop() * c.shown.seconds();
      if (c.schedule.view.standing != Standing::admitted) continue;
      in += 1;
      every += c.schedule.view.setting.interval;
    }
    std::printf("%-*s %8.0f %9.0f %8.1f %8.3f %9.1f\n", static_cast<int>(width), name.c_str(), n, in,
                in == 0 ? 0 : every / in, second == 0 ? 0 : lost / second, second == 0 ? 0 : 100 * held / second);
  };
  std::size_t width = 14;
  for (const std::uint32_t a : applications) width = std::max(width, study.plan.applications[a].name.size());
  table("video", width);
  for (const scene::DropTable& t : *tables) row(t.video, width, [&](const Client& c) { return c.table == &t; });
  if (applications.size() > 1) {
    table("application", width);
    for (const std::uint32_t a : applications)
      row(study.plan.applications[a].name, width, [&](const Client& c) { return c.application == a; });
  }
  std::printf("trace hash %016llx\n", static_cast<unsigned long long>(out.trace_hash));
  return 0;
}

}  // namespace leat::tools
