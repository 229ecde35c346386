// What users are charged: what the plan expects when a request comes, and what its batches took when it is answered.
//
// Who is dear has batches of one; they are all his. What a batch took is leatd's own measure, from its dispatch or its
// predecessor's end to the report: what a worker says of its times is not looked at. It is divided among the members by
// the units that they were planned with.
#include <algorithm>

#include "engine/core/core.h"
#include "planner/paying_batch.h"

namespace leat::core {
namespace {

constexpr double kSlow = 2.5;  // times what was expected: who of its users is dear is to be found out
constexpr double kMaxOff = 3;  // times what was expected: more is not learned from one batch

}  // namespace

Shares::Key Scheduler::State::account_of(StreamId stream) const noexcept {
  const StreamConfig& config = ledger.stream(stream).config;
  const ApplicationSpec& app = plan->model.topology().applications[config.application];
  return {.component = plan->model.component_of(app.modules.front()),
          .user = config.user,
          .application = app.weight > 0 ? config.application : kNone};
}

LatencyScales::Key Scheduler::State::scale_of(const Request& r) const noexcept {
  const StreamConfig& config = ledger.stream(r.stream).config;
  return {.application = config.application, .user = config.user};
}

// Its class, and above every class whether it is within its user's share.
std::uint8_t Scheduler::State::level_of(StreamId id) const noexcept {
  const Stream& stream = ledger.stream(id);
  const std::uint8_t priority = ledger.priority_of(stream);
  if (users.shares.empty()) return priority;
  const StreamConfig& config = stream.config;
  const double scale = users.scales.of({.application = config.application, .user = config.user});
  const auto cost = static_cast<TimeNs>(static_cast<double>(plan->model.cost_ns(config.application)) * scale);
  const bool within = users.shares.has_room(account_of(id), cost, config.slo_ns, now);
  return static_cast<std::uint8_t>(priority + (within ? kPriorities : 0));
}

// The request is charged, and told with whom it may run.
void Scheduler::State::enter_share(std::uint32_t id, const ApplicationSpec& app) noexcept {
  Request& r = ledger.change(id);
  const StreamConfig& config = ledger.stream(r.stream).config;
  const Shares::Key key = account_of(r);
  const LatencyScales::Standing takes = users.scales.enter(scale_of(r), now);
  const TimeNs planned =
      takes.dear ? plan->model.lone_cost_ns(config.application) : plan->model.cost_ns(config.application);
  const Shares::Standing standing =
      users.shares.enter({.key = key,
                          .user_weight = config.user_weight,
                          .application_weight = app.weight > 0 ? app.weight : 1000,
                          .cost_ns = static_cast<TimeNs>(static_cast<double>(planned) * takes.scale),
                          .slo_ns = config.slo_ns},
                         now);
  r.competes = standing.competes;
  r.within_share = standing.within;
  r.charged_ns = standing.charged_ns;
  if (standing.competes) {
    r.dear = takes.dear;
    if (takes.apart) r.company = Company::own_user;
    if (takes.dear) r.company = Company::nobody;
    r.gated = takes.dear && plan->schedulers[key.component]->books();
    if (users.scales.found_dear(scale_of(r))) {
      // While he was alone, his frames were what the modules' latency scales were learned from.
      for (ModuleId m : plan->model.components()[key.component].modules) {
        plan->load.forget_scale(m);
        plan->paying.forget(m);
      }
      grants.measure(plan->model, plan->paying, machine);
      plan->schedulers[key.component]->forget_scale();
      mark_dear(r);
    }
  }
  if (!users.quarantine.empty()) {
    r.company = std::max(r.company, users.quarantine.company(config.user, now));
    r.gated = r.gated || users.quarantine.struck(config.user, now);
  }
  ledger.count().total.within_share += standing.within ? 1 : 0;
  ledger.count().streams[r.stream].within_share += standing.within ? 1 : 0;
}

// What its user sends, and has waiting, rides with his own alone for a while.
void Scheduler::State::part(const Request& r) noexcept {
  const std::uint32_t user = user_of(r);
  users.scales.part(scale_of(r), now);
  for (StreamId s = 0; s < ledger.streams(); ++s) {
    if (ledger.stream(s).config.user != user) continue;
    for (std::uint32_t w = ledger.stream(s).first; w != kNone; w = ledger.request(w).next)
      if (ledger.request(w).placed == 0)
        ledger.change(w).company = std::max(ledger.request(w).company, Company::own_user);
  }
}

// What he has waiting already is worth as much as what comes now: beyond his share, and alone.
void Scheduler::State::mark_dear(const Request& of) noexcept {
  const LatencyScales::Key key = scale_of(of);
  for (StreamId s = 0; s < ledger.streams(); ++s) {
    const StreamConfig& config = ledger.stream(s).config;
    if (config.user != key.user || config.application != key.application) continue;
    for (std::uint32_t r = ledger.stream(s).first; r != kNone; r = ledger.request(r).next) {
      Request& waiting = ledger.change(r);
      if (!waiting.competes || waiting.placed > 0) continue;
      waiting.dear = true;
      waiting.company = Company::nobody;
      for (TaskId t = waiting.tasks; t != kNone; t = tasks[t].next_of_request) {
        if (tasks[t].state != TaskState::queued || tasks[t].queue == kNone) continue;
        dequeue(t);
        tasks[t].level = class_of(tasks[t].level);
        hasten(tasks[t], longer_ns(waiting, tasks[t].module));
        enqueue(t);
      }
    }
  }
}

TimeNs Scheduler::State::longer_ns(const Request& r, ModuleId module) noexcept {
  const double more = std::max(0.0, users.scales.of(scale_of(r)) - 1);
  return static_cast<TimeNs>(more * static_cast<double>(plan->model.module(module).min_ns));
}

// A batch's stage has ended, or its partition was lost while it ran.
void Scheduler::State::charge(const Batch& b, TimeNs ran) noexcept {
  if (users.shares.empty()) return;
  const Model& model = plan_of(b).model;
  const RouteSpec& route = model.topology().routes[b.route];
  const double items = b.list.items, took = static_cast<double>(ran);
  const std::uint32_t user = user_of(ledger.request(tasks[b.list.first].request));
  double expected = 0;
  bool counted = false, several = false;
  for (TaskId t = b.list.first; t != kNone; t = tasks[t].next_in_batch) {
    const Request& r = ledger.request(tasks[t].request);
    expected += tasks[t].items / items * (r.competes ? users.scales.of(scale_of(r)) : 1);
    counted = counted || r.competes;
    several = several || user_of(r) != user;
  }
  if (!counted) return;
  // Until the report is read is time too, and of a short batch a good part of it.
  const TimeNs planned = route.stages[b.stage].latency.p50_ns[b.list.items - 1] + planner::kHandOverNs;
  const double scale = took / static_cast<double>(planned);
  const double of_route = took / static_cast<double>(model.run_ns(b.route)[std::min(b.list.items, route.batch)]);
  const double off = std::clamp(scale, expected / kMaxOff, expected * kMaxOff) - expected;
  for (TaskId t = b.list.first; t != kNone; t = tasks[t].next_in_batch) {
    Request& r = ledger.change(tasks[t].request);
    if (!r.competes) continue;
    const ModuleModel& m = model.module(b.module);
    r.spent_ns += (r.dear ? m.lone_ns : m.unit_ns) * tasks[t].items * of_route;
    // A batch tells as much as it is of a request.
    const auto whole = static_cast<double>(model.cost_ns(ledger.stream(r.stream).config.application));
    users.scales.learn(scale_of(r), off * tasks[t].items / items, std::min(1.0, m.unit_ns * items / whole));
    if (several && scale > kSlow * expected) part(r);
  }
}

// What was not run to its end has cost at least what was charged for it: others might have come in its place.
void Scheduler::State::correct_share(const Request& r, bool done) noexcept {
  if (users.shares.empty() || !r.within_share) return;
  const double more = r.spent_ns - static_cast<double>(r.charged_ns);
  if (done || more > 0) users.shares.correct(account_of(r), more);
}

}  // namespace leat::core
