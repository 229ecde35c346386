#include "engine/sim/what_if.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>

#include "engine/sim/recorded_pictures.h"
#include "engine/sim/recorded_times.h"
#include "engine/sim/simulator.h"
#include "engine/sim/workload/random.h"

namespace leat::sim {
namespace {

using core::kNone;
using core::ModuleId;
using core::PartitionId;
using core::TimeNs;
using record::History;
using record::RecordedPlan;

constexpr TimeNs kBeforeNs = 10'000'000'000;  // the simulation's clock where the record begins
constexpr std::uint32_t kMoreStreams = 64;    // that may still hold frames when others take their place

// What tasks found, and what they took, one by one where the record has them, else as others of their module.
class RecordedTasks {
 public:
  explicit RecordedTasks(const History& h, std::uint64_t seed) : seed_(seed) {
    for (const History::Run& r : h.runs)
      for (std::uint32_t i = r.first; i < r.first + r.count; ++i) {
        const History::Task& t = h.tasks[i];
        const std::uint32_t units = std::max(1u, t.units / std::max(1u, t.rows));
        differ_ = differ_ || units != 1;
        units_.add(key(t.frame, r.module, t.item), r.module, units);
        if (t.fan_out != kNone) fan_outs_.add(key(t.frame, r.module, t.item), r.module, t.fan_out);
      }
  }
  [[nodiscard]] bool differ() const { return differ_; }  // in size
  [[nodiscard]] std::uint32_t units(std::uint64_t frame, ModuleId module, std::uint32_t item) const {
    return units_.of(key(frame, module, item), module, seed_);
  }
  [[nodiscard]] std::uint32_t fan_out(std::uint64_t frame, ModuleId module, std::uint32_t item) const {
    return fan_outs_.of(key(frame, module, item), module, seed_);
  }

 private:
  struct Numbers {
    std::unordered_map<std::uint64_t, std::uint32_t> one;
    std::unordered_map<ModuleId, std::vector<std::uint32_t>> all;
    void add(std::uint64_t task, ModuleId module, std::uint32_t number) {
      if (one.emplace(task, number).second) all[module].push_back(number);
    }
    [[nodiscard]] std::uint32_t of(std::uint64_t task, ModuleId module, std::uint64_t seed) const {
      if (const auto own = one.find(task); own != one.end()) return own->second;
      const auto others = all.find(module);
      return others == all.end() ? 1 : others->second[mix(seed ^ mix(task)) % others->second.size()];
    }
  };
  static std::uint64_t key(std::uint64_t frame, ModuleId module, std::uint32_t item) {
    return frame << 32 | std::uint64_t{module & 0xffff} << 16 | (item & 0xffff);
  }
  std::uint64_t seed_;
  bool differ_ = false;
  Numbers units_, fan_outs_;
};

std::vector<std::string> module_names(const RecordedPlan& plan) {
  std::vector<std::string> out;
  for (ModuleId m = 0; m < plan.topology.modules.size(); ++m) out.push_back(module_name(plan, m));
  return out;
}

// Where a name stands among others; kNone: nowhere.
std::uint32_t place_of(const std::string& name, const std::vector<std::string>& in) {
  const auto at = std::ranges::find(in, name);
  return at == in.end() ? kNone : static_cast<std::uint32_t>(at - in.begin());
}

class Asked {
 public:
  Asked(const History& history, const Question& question)
      : h_(history),
        q_(question),
        plans_(question.plans.empty() ? history.plans : question.plans),
        tasks_(history, question.seed),
        times_(history),
        pictures_(recorded_pictures(history)) {}
  Result<WhatIf> run();

 private:
  [[nodiscard]] TimeNs at(TimeNs recorded) const { return std::max<TimeNs>(1, recorded - h_.begin_ns + kBeforeNs); }
  void plans();
  Status streams();
  void arrivals();
  void count();
  void answered(const AnswerEvent& e);
  void partitions();
  void stages(const core::Topology& topology, const RecordedPlan& plan);
  [[nodiscard]] TimeNs duration(const Execution& e);
  [[nodiscard]] std::uint32_t counted_as(std::uint32_t stream);

  const History& h_;
  const Question& q_;
  const std::vector<History::Plan>& plans_;
  const RecordedTasks tasks_;
  const RecordedTimes times_;
  const std::vector<RecordedPicture> pictures_;  // by arrival
  Scenario s_;
  std::vector<ModuleId> recorded_;  // by module of the plans that are asked about; kNone: the record does not have it
  std::unordered_map<const core::Topology*, std::vector<RecordedTimes::StageKey>> keys_;  // by route; stage 0
  std::vector<PartitionId> was_;       // by partition of those plans: in the record; kNone: it does not have it
  std::vector<std::uint32_t> totals_;  // by stream: index into out_.applications
  WhatIf out_;
};

void Asked::stages(const core::Topology& topology, const RecordedPlan& plan) {
  auto& keys = keys_[&topology];
  for (const core::RouteSpec& r : topology.routes)
    keys.push_back({.module = module_name(plan, r.module), .stages = static_cast<std::uint32_t>(r.stages.size())});
}

void Asked::plans() {
  const RecordedPlan& was = h_.plan();
  s_.limits = was.limits;
  s_.limits.streams += kMoreStreams;
  s_.limits.coordinated = 0;
  s_.limits.samples = false;
  std::size_t partitions = s_.limits.partitions, modules = s_.limits.modules, applications = s_.limits.applications;
  for (const History::Plan& p : plans_) {
    partitions = std::max(partitions, p.plan->topology.partitions.size());
    modules = std::max(modules, p.plan->topology.modules.size());
    applications = std::max(applications, p.plan->topology.applications.size());
  }
  s_.limits.partitions = static_cast<std::uint32_t>(partitions);
  s_.limits.modules = static_cast<std::uint32_t>(modules);
  s_.limits.applications = static_cast<std::uint32_t>(applications);
  s_.topology = plans_.front().plan->topology;
  for (std::size_t i = 1; i < plans_.size(); ++i)
    s_.replacements.push_back(
        {.at_ns = at(plans_[i].at_ns), .topology = plans_[i].plan->topology, .measured_anew = plans_[i].measured_anew});
  s_.topology.partitions.resize(partitions);
  stages(s_.topology, *plans_.front().plan);
  for (std::size_t i = 0; i < s_.replacements.size(); ++i) {
    s_.replacements[i].topology.partitions.resize(partitions);
    stages(s_.replacements[i].topology, *plans_[i + 1].plan);
  }
  const std::vector<std::string> names = module_names(*h_.plans.back().plan);
  for (ModuleId m = 0; m < modules; ++m)
    recorded_.push_back(!q_.by_name ? m : place_of(module_name(*plans_.back().plan, m), names));
}

std::uint32_t Asked::counted_as(std::uint32_t stream) {
  const History::Stream& s = h_.streams[stream];
  const std::string name = application_name(*h_.plans.back().plan, s.config.application);
  auto found = std::ranges::find(out_.applications, name, &WhatIf::Application::name);
  if (found == out_.applications.end()) found = out_.applications.insert(found, {.name = name});
  return static_cast<std::uint32_t>(found - out_.applications.begin());
}

Status Asked::streams() {
  std::vector<std::string> names;
  const RecordedPlan& plan = *plans_.back().plan;
  for (std::uint32_t a = 0; a < plan.topology.applications.size(); ++a) names.push_back(application_name(plan, a));
  s_.streams.clear();
  for (std::uint32_t i = 0; i < h_.streams.size(); ++i) {
    totals_.push_back(counted_as(i));
    const History::Stream& stream = h_.streams[i];
    core::StreamConfig config = stream.config;
    config.terms = {};
    if (q_.by_name) {
      const std::string& name = out_.applications[totals_.back()].name;
      config.application = place_of(name, names);
      if (config.application == kNone)
        return Error{"the plan has no application '" + name + "', whose frames the record has"};
    }
    s_.streams.push_back(config);
    s_.lives.push_back({.opened_ns = stream.opened_ns <= h_.begin_ns ? 0 : at(stream.opened_ns),
                        .closed_ns = stream.closed_ns == core::kNever ? core::kNever : at(stream.closed_ns)});
  }
  return Done{};
}

// Frames of streams that do not wait for grants come when they came; pictures of the others are there when they were,
// whether they were submitted or not.
void Asked::arrivals() {
  for (const RecordedPicture& p : pictures_) {
    const History::Frame& f = h_.frames[p.frame];
    const TimeNs later = p.capture_ns - f.capture_ns;
    s_.arrivals.push_back({.at_ns = at(p.at_ns),
                           .capture_ns = at(p.capture_ns),
                           .stream = f.stream,
                           .items = f.items,
                           .key = f.key,
                           .deadline_ns = f.deadline_ns == 0 ? 0 : at(f.deadline_ns + later),
                           .branch_draw = f.branch_draw | 1});
  }
  s_.write = [this](std::size_t picture) { return pictures_[picture].write_ns; };
}

void Asked::count() {
  for (const RecordedPicture& p : pictures_) {
    const History::Frame& f = h_.frames[p.frame];
    WhatIf::Application& a = out_.applications[totals_[f.stream]];
    if (p.submitted && f.answered_ns == 0) {
      ++out_.open;
      continue;
    }
    for (FrameTotals* t : {&out_.was, &a.was}) p.submitted ? t->add(f.outcome, f.reason) : void(++t->left_out);
    for (FrameTotals* t : {&out_.is, &a.is}) ++t->left_out;  // until it is answered
  }
}

void Asked::answered(const AnswerEvent& e) {
  const RecordedPicture& p = pictures_[e.arrival];
  const History::Frame& f = h_.frames[p.frame];
  if (p.submitted && f.answered_ns == 0) return;
  for (FrameTotals* t : {&out_.is, &out_.applications[totals_[f.stream]].is}) {
    t->add(e.outcome, e.reason);
    --t->left_out;
  }
}

// As they were lost and came back. One that the record says nothing of is there if it ran anything, or is new.
void Asked::partitions() {
  const RecordedPlan &was = *h_.plans.back().plan, &is = *plans_.back().plan;
  std::vector<std::uint8_t> ran(std::max(was.topology.partitions.size(), std::size_t{s_.limits.partitions}));
  for (const History::Run& r : h_.runs)
    if (r.partition < ran.size()) ran[r.partition] = 1;
  std::vector<std::string> names;
  for (PartitionId p = 0; p < was.topology.partitions.size(); ++p) names.push_back(partition_name(was, p));
  for (PartitionId p = 0; p < s_.limits.partitions; ++p) {
    const PartitionId then = !q_.by_name ? p : place_of(partition_name(is, p), names);
    was_.push_back(then < names.size() ? then : kNone);
    if (then >= names.size()) continue;
    bool up = true, first = true;
    for (const History::Change& c : h_.changes) {
      if (c.partition != then) continue;
      if (first && (c.up || h_.whole)) {
        s_.faults.push_back({.at_ns = 1, .kind = FaultKind::lose, .partition = p});
        up = false;
      }
      first = false;
      if (c.up == up) continue;
      up = c.up;
      s_.faults.push_back({.at_ns = at(c.at_ns), .kind = up ? FaultKind::restore : FaultKind::lose, .partition = p});
    }
    if (first && ran[then] == 0) s_.faults.push_back({.at_ns = 1, .kind = FaultKind::lose, .partition = p});
  }
  std::ranges::stable_sort(s_.faults, {}, &Fault::at_ns);
}

TimeNs Asked::duration(const Execution& e) {
  RecordedTimes::StageKey key = keys_.at(e.plan)[e.route];
  key.stage = e.stage;
  key.went_on = e.went_on;
  key.goes_on = e.goes_on;
  const auto drawn = times_.draw(key, e.plan->routes[e.route].stages[e.stage].latency, e.items, was_[e.partition],
                                 e.at_ns - kBeforeNs + h_.begin_ns, mix(q_.seed ^ mix(e.serial)));
  ++out_.batches;
  out_.unseen += drawn.seen ? 0 : 1;
  return drawn.ns;
}

Result<WhatIf> Asked::run() {
  plans();
  if (auto status = streams(); !status) return Error{status.error()};
  arrivals();
  partitions();
  s_.policy = q_.policy;
  s_.seed = q_.seed;
  count();
  s_.on_answer = [this](const AnswerEvent& e) { answered(e); };
  s_.duration = [&](const Execution& e) { return duration(e); };
  s_.goes_on = std::ranges::any_of(h_.runs, &History::Run::went_on);
  s_.fan_out = [&](std::size_t picture, ModuleId module, std::uint32_t item) {
    return tasks_.fan_out(pictures_[picture].frame, recorded_[module], item);
  };
  if (tasks_.differ())
    s_.size = [&](std::size_t picture, ModuleId module, std::uint32_t item) {
      return tasks_.units(pictures_[picture].frame, recorded_[module], item);
    };
  out_.cpu_seconds = sim::run(s_).cpu_seconds;
  return std::move(out_);
}

}  // namespace

Result<WhatIf> what_if(const History& history, const Question& question) { return Asked(history, question).run(); }

namespace {

// Routes that have nowhere left for a stage go. False: a module has none any more.
bool drop_homeless_routes(core::Topology& t, ModuleId& module) {
  std::vector<core::RouteId> now(t.routes.size(), kNone);
  std::vector<core::RouteSpec> routes;
  for (core::RouteId r = 0; r < t.routes.size(); ++r) {
    if (std::ranges::any_of(t.routes[r].stages, [](const core::StageSpec& s) { return s.pool.empty(); })) continue;
    now[r] = static_cast<core::RouteId>(routes.size());
    routes.push_back(std::move(t.routes[r]));
  }
  t.routes = std::move(routes);
  for (module = 0; module < t.modules.size(); ++module) {
    std::vector<core::RouteId> left;
    for (const core::RouteId r : t.modules[module].routes)
      if (now[r] != kNone) left.push_back(now[r]);
    if (left.empty() && !t.modules[module].routes.empty()) return false;
    t.modules[module].routes = std::move(left);
  }
  return true;
}

}  // namespace

Result<std::vector<History::Plan>> with_partitions(const History& history, const std::vector<std::string>& without,
                                                   const std::vector<std::string>& twice) {
  std::size_t partitions = 0;  // of all plans
  for (const History::Plan& p : history.plans) partitions = std::max(partitions, p.plan->topology.partitions.size());
  for (const auto* list : {&without, &twice})
    for (const std::string& name : *list)
      if (std::ranges::none_of(
              history.plans, [&](const History::Plan& p) { return place_of(name, p.plan->names.partitions) != kNone; }))
        return Error{"no partition of the record is called '" + name + "'; leat record shows which there are"};
  std::vector<History::Plan> out;
  for (const History::Plan& was : history.plans) {
    auto plan = std::make_shared<RecordedPlan>(*was.plan);
    core::Topology& t = plan->topology;
    const auto called = [&](PartitionId p, const std::string& name) {
      return p < was.plan->topology.partitions.size() && partition_name(*was.plan, p) == name;
    };
    t.partitions.resize(partitions + twice.size());
    for (std::size_t i = 0; i < twice.size(); ++i)
      for (core::RouteSpec& r : t.routes)
        for (core::StageSpec& s : r.stages) {
          const auto like = std::ranges::find_if(s.pool, [&](PartitionId p) { return called(p, twice[i]); });
          if (like == s.pool.end()) continue;
          t.partitions[partitions + i] = t.partitions[*like];
          s.pool.push_back(static_cast<PartitionId>(partitions + i));
        }
    for (core::RouteSpec& r : t.routes)
      for (core::StageSpec& s : r.stages)
        std::erase_if(s.pool, [&](PartitionId p) {
          return std::ranges::any_of(without, [&](const std::string& name) { return called(p, name); });
        });
    if (ModuleId module = 0; !drop_homeless_routes(t, module))
      return Error{"without them nothing is left for '" + module_name(*plan, module) + "'; leave one of them"};
    out.push_back({.at_ns = was.at_ns, .plan = std::move(plan), .measured_anew = was.measured_anew});
  }
  return out;
}

}  // namespace leat::sim
