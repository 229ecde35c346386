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
using core::streams::Standing;

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
  std::uint64_t offset = 0;  // of its frames in the table's video
  sim::Shown shown;
  core::StreamSchedule schedule;
  std::uint64_t answers = 0;

  [[nodiscard]] bool admitted() const { return schedule.view.standing == Standing::admitted; }
};

// Of some of the clients.
struct Sums {
  double clients = 0, admitted = 0, intervals = 0, evictions = 0;  // intervals: of the admitted
  double answers = 0, kept_s = 0, shown_s = 0, lost_s = 0;         // lost_s: of accuracy, by seconds

  void add(const Client& c) {
    clients += 1;
    answers += static_cast<double>(c.answers);
    kept_s += c.shown.kept();
    shown_s += c.shown.seconds();
    lost_s += c.shown.mean_drop() * c.shown.seconds();
    evictions += c.schedule.view.evictions;
    if (!c.admitted()) return;
    admitted += 1;
    intervals += c.schedule.view.setting.interval;
  }
};

// The clients on the plan, the run, and what is told of it.
class CoordinatedRun {
 public:
  CoordinatedRun(const cli::Arguments& args, const sim::Study& study, const core::Policy& policy);
  // Makes the clients; an error where none can be.
  Status prepare(const std::string& videos);
  void run();
  [[nodiscard]] Json json() const;
  void print() const;

 private:
  void add_client(std::uint32_t number, sim::Random& random);
  void watch();
  template <class Belongs>
  void print_row(const std::string& name, std::size_t width, const Belongs& belongs) const;

  const sim::Study& study_;
  const std::uint32_t count_, tasks_;
  const double sla_, seconds_;
  sim::Scenario scenario_;
  std::vector<std::uint32_t> applications_;
  std::vector<scene::DropTable> tables_;
  std::vector<Client> clients_;
  double batches_ = 0, items_ = 0;
  sim::Outcomes outcomes_;
  Sums all_;
};

CoordinatedRun::CoordinatedRun(const cli::Arguments& args, const sim::Study& study, const core::Policy& policy)
    : study_(study),
      count_(static_cast<std::uint32_t>(args.integer("coordinated"))),
      tasks_(static_cast<std::uint32_t>(args.integer("tasks"))),
      sla_(args.real("accuracy")),
      seconds_(study.length_ns > 0 ? 1e-9 * static_cast<double>(study.length_ns) : 30) {
  scenario_.topology = study.believed;
  scenario_.reality = &study.reality;
  scenario_.policy = policy;
  scenario_.seed = static_cast<std::uint64_t>(args.integer("seed"));
  scenario_.noise_permille = study.noise_permille;
  scenario_.check_every = study.check_every;
  scenario_.faults = study.faults.faults;
  scenario_.limits.streams = scenario_.limits.coordinated =
      tasks_ > 1 ? count_ + (count_ + tasks_ - 1) / tasks_ : count_;
  scenario_.cameras_until_ns = static_cast<TimeNs>(1e9 * seconds_);
}

Status CoordinatedRun::prepare(const std::string& videos) {
  applications_ = coordinated_applications(scenario_);
  if (applications_.empty())
    return Error{"--coordinated: no application of the plan is one uncut module; only such ones are coordinated"};
  auto tables = record(videos, scenario_.seed);
  if (!tables) return Error{tables.error()};
  tables_ = std::move(*tables);
  scenario_.streams.clear();
  sim::Random random(scenario_.seed * 7919 + 17);
  for (std::uint32_t i = 0; i < count_; ++i) add_client(i, random);
  watch();
  return Done{};
}

void CoordinatedRun::add_client(std::uint32_t i, sim::Random& random) {
  // Every video with every application: each round of them begins with the next.
  const std::size_t turn = i + i / std::lcm(tables_.size(), applications_.size());
  const std::uint32_t application = applications_[turn % applications_.size()];
  const scene::DropTable* table = &tables_[i % tables_.size()];
  const std::uint64_t offset = random.below(table->frames);
  const auto phase = static_cast<TimeNs>(random.below(kPeriod));
  scenario_.streams.push_back(
      {.application = application,
       .depth = 4,
       .supersede = core::Supersede::latest,
       .terms = {.sla_drop = sla_, .period_ns = kPeriod, .group = tasks_ > 1 ? 1 + i / tasks_ : 0}});
  scenario_.cameras.push_back(
      {.stream = i, .phase_ns = phase, .seen = [table, offset](std::uint64_t f, std::uint32_t stride) {
         return table->observed(offset + f, stride);
       }});
  clients_.push_back({.application = application,
                      .table = table,
                      .offset = offset,
                      .shown = sim::Shown({.phase_ns = phase,
                                           .period_ns = kPeriod,
                                           .sla_drop = sla_,
                                           .single = core::streams::frames_until_answer(
                                               single_ns(scenario_.topology, application), {.period_ns = kPeriod}, 0.1),
                                           .from_ns = static_cast<TimeNs>(1e9 * kWarmUp),
                                           .extra = [table, offset](std::uint64_t f, std::uint32_t stride) {
                                             return table->extra(offset + f, stride);
                                           }})});
}

void CoordinatedRun::watch() {
  scenario_.on_shown = [this](const sim::ShownEvent& e) {
    Client& c = clients_[e.camera];
    ++c.answers;  // what was under way when it was evicted is shown to nobody who counts
    if (c.admitted()) c.shown.answer(e.at_ns, e.frame);
  };
  scenario_.on_schedule = [this](TimeNs at, std::uint32_t camera, const core::StreamSchedule& told) {
    Client& c = clients_[camera];
    if (c.admitted() && told.view.standing != Standing::admitted) c.shown.evicted(at);
    c.schedule = told;
  };
  scenario_.on_run = [this](const sim::RunEvent& e) {
    batches_ += 1;
    items_ += e.items;
  };
}

void CoordinatedRun::run() {
  outcomes_ = sim::run(scenario_);
  for (Client& c : clients_) {
    c.shown.show(scenario_.cameras_until_ns);
    all_.add(c);
  }
}

Json CoordinatedRun::json() const {
  Json list = Json::array();
  for (const Client& c : clients_) {
    const core::streams::StreamView& v = c.schedule.view;
    list.push_back({{"application", study_.plan.applications[c.application].name},
                    {"video", c.table->video},
                    {"admitted", c.admitted()},
                    {"evictions", v.evictions},
                    {"interval", v.setting.interval},
                    {"planned_drop", v.planned_drop},
                    {"measured_drop", v.measured_drop},
                    {"seconds", c.shown.seconds()},
                    {"seconds_within_sla", c.shown.kept()},
                    {"mean_drop", c.shown.mean_drop()},
                    {"detections_per_second", static_cast<double>(c.answers) / seconds_}});
  }
  return {{"clients", count_},
          {"sla_drop", sla_},
          {"admitted", all_.admitted},
          {"evictions", all_.evictions},
          {"seconds_within_sla_share", all_.shown_s == 0 ? Json() : Json(all_.kept_s / all_.shown_s)},
          {"mean_clients", all_.shown_s / (seconds_ - kWarmUp)},
          {"detections_per_second", all_.answers / seconds_},
          {"frames_per_second", count_ * 1e9 / static_cast<double>(kPeriod)},
          {"batch", batches_ == 0 ? Json() : Json(items_ / batches_)},
          {"goodput", outcomes_.goodput()},
          {"per_client", list},
          {"trace_hash", outcomes_.trace_hash},
          {"seconds", seconds_}};
}

template <class Belongs>
void CoordinatedRun::print_row(const std::string& name, std::size_t width, const Belongs& belongs) const {
  Sums sums;
  for (const Client& c : clients_)
    if (belongs(c)) sums.add(c);
  const bool shown = sums.shown_s > 0;
  std::printf("%-*s %8.0f %9.0f %8.1f %8.3f %9.1f\n", static_cast<int>(width), name.c_str(), sums.clients,
              sums.admitted, sums.admitted == 0 ? 0 : sums.intervals / sums.admitted,
              shown ? sums.lost_s / sums.shown_s : 0, shown ? 100 * sums.kept_s / sums.shown_s : 0);
}

void CoordinatedRun::print() const {
  std::printf("%u clients at %.3f: %.0f admitted at the end, %.1f in the mean; %.1f %% of their seconds within it\n",
              count_, sla_, all_.admitted, all_.shown_s / (seconds_ - kWarmUp),
              all_.shown_s == 0 ? 0 : 100 * all_.kept_s / all_.shown_s);
  std::printf("%.1f detections/s of %.0f frames/s, %.1f in a batch; %.0f evictions in %.0f s\n",
              all_.answers / seconds_, count_ * 1e9 / static_cast<double>(kPeriod),
              batches_ == 0 ? 0 : items_ / batches_, all_.evictions, seconds_);
  std::size_t width = 14;
  for (const std::uint32_t a : applications_) width = std::max(width, study_.plan.applications[a].name.size());
  const auto head = [&](const char* of) {
    std::printf("%-*s %8s %9s %8s %8s %9s\n", static_cast<int>(width), of, "clients", "admitted", "every", "lost",
                "within %");
  };
  head("video");
  for (const scene::DropTable& t : tables_) print_row(t.video, width, [&](const Client& c) { return c.table == &t; });
  if (applications_.size() > 1) {
    head("application");
    for (const std::uint32_t a : applications_)
      print_row(study_.plan.applications[a].name, width, [&](const Client& c) { return c.application == a; });
  }
  std::printf("trace hash %016llx\n", static_cast<unsigned long long>(outcomes_.trace_hash));
}

}  // namespace

int simulate_coordinated(const cli::Arguments& args, const sim::Study& study, const core::Policy& policy) {
  CoordinatedRun run(args, study, policy);
  if (const Status ready = run.prepare(args.text("video")); !ready) return cli::fail("leat sim", ready.error());
  run.run();
  const cli::JsonOutput output(args);
  if (output.wanted())
    if (const int failed = output.write(run.json().dump(1)); failed != 0) return failed;
  if (!output.alone()) run.print();
  return 0;
}

}  // namespace leat::tools
