#include "engine/daemon/changes/live_change.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/daemon/changes/in_place.h"
#include "engine/daemon/deployment/capacity/objective.h"
#include "engine/daemon/deployment/loop_options.h"
#include "engine/daemon/log.h"
#include "engine/daemon/startup.h"
#include "shm/src/segments/available_memory.h"
#include "tools/base/text/units.h"

namespace leat::daemon {
namespace {

constexpr std::int64_t kLookNs = 50'000'000;  // at a trial
constexpr std::int64_t kEmptyNs =
    10'000'000'000;  // beyond the objective, as a busy host may need: then what is left of it fails
constexpr const char* kAsBefore = "; what was served is served as before";
constexpr const char* kAsInSteps = "; what has changed stays";
constexpr int kMaxBacks = 5;

bool same_layout(const ResultLayout& a, const ResultLayout& b) {
  return a.result_bytes == b.result_bytes &&
         std::ranges::equal(a.parts, b.parts,
                            [](const leat_part& x, const leat_part& y) { return std::memcmp(&x, &y, sizeof x) == 0; });
}

// What is another than before, a line each.
std::vector<std::string> differences(const Config& running, const Target& target) {
  std::vector<std::string> out;
  const auto served = [&](const std::string& name) {
    return std::ranges::any_of(running.applications,
                               [&](const ApplicationConfig& a) { return !a.retired && a.application.name == name; });
  };
  for (const ApplicationConfig& a : target.config.applications) {
    if (a.retired) continue;
    if (!served(a.application.name)) out.push_back("application '" + a.application.name + "' comes");
  }
  for (const std::uint32_t a : target.retiring) {
    const bool heir = std::ranges::any_of(target.heirs, [&](const auto& h) { return h.old == a; });
    out.push_back("application '" + running.applications[a].application.name +
                  (heir ? "' gets another version" : "' goes"));
  }
  out.insert(out.end(), target.moves.begin(), target.moves.end());
  if (target.waves.empty() && target.in_place.empty()) out.emplace_back("all workers stay");
  return out;
}

}  // namespace

LiveChange::LiveChange(Environment environment, std::unique_ptr<TargetBuilder> builder)
    : env_(std::move(environment)), builder_(std::move(builder)), trial_(env_.metrics, env_.supervisor) {}

// ---- reading ----

Result<std::uint64_t> LiveChange::ask(ChangeRequest request) {
  if (busy()) return Error{"leatd is still busy with: " + text_of(request_) + "; ask again when that is done"};
  request_ = request;
  line_.clear();
  failed_ = dry_ = changed_ = in_place_ = false;
  said_.clear();
  waves_.clear();
  steps_ = 0;
  backs_ = 0;
  first_.reset();
  exchange_.reset();
  step_ = Step::reading;
  log_info(text_of(request_) + ": reading");
  builder_->begin({env_.now.config, env_.now.deployment, env_.now.ready, env_.slots}, env_.now.additions,
                  std::move(request));
  ++number_;
  tell_progress();
  return number_;
}

// The next step of a change that has several.
void LiveChange::read_next(bool back) {
  step_ = Step::reading;
  tell_progress();
  builder_->begin(
      {env_.now.config, env_.now.deployment, env_.now.ready, env_.slots, first_->deployment, back, exchange_, steps_},
      back ? first_->additions : env_.now.additions, request_);
}

void LiveChange::on_target(std::int64_t now) {
  auto made = builder_->take();
  if (!made || step_ != Step::reading) return;
  if (!made->ok()) return fail(made->error(), now);
  target_ = std::move(**made);
  if (!first_) {
    in_place_ = !target_->in_place.empty();
    waves_ = target_->in_place;
    for (const auto& wave : target_->waves) {
      if (in_place_) break;
      waves_.emplace_back();
      for (const std::uint32_t p : wave) waves_.back().push_back(target_->deployment.partitions[p].partition.name);
    }
    said_ = differences(env_.now.config, *target_);
    exchange_ = target_->exchange;
  }
  if (request_.dry_run) {
    dry_ = true;
    return finish();
  }
  if (auto status = env_.prepare_setups(target_->deployment.setups); !status) return fail(status.error(), now);
  auto features = make_feature_pools(target_->config, target_->deployment);
  if (!features.ok()) return fail(features.error(), now);
  for (std::size_t e = 0; e < features->size(); ++e) {
    const std::uint32_t number = target_->deployment.edges[e].number;
    const auto& known = env_.now.deployment.edges;
    if (std::ranges::find(known, number, &FeatureEdge::number) == known.end())
      env_.features[number] = std::move((*features)[e]);
  }
  for (const auto& wave : target_->waves)
    for (const std::uint32_t p : wave) workers_.push_back({.partition = p, .slot = target_->deployment.slots[p]});
  if (!first_) first_ = {env_.now.config, std::make_shared<const Deployment>(env_.now.deployment), env_.now.additions};
  if (backs_ > 0) target_->config = first_->config;
  step_ = Step::starting;
  wave_ = 0;
  trial_.note_before(env_.now.deployment, target_->heirs);
  begin_records(target_->config, target_->deployment, env_.metrics);
  start_wave(now);
}

// ---- new workers ----

void LiveChange::start_wave(std::int64_t now) {
  if (wave_ == target_->waves.size()) return take_over(now);
  tell_progress();
  if (!in_place_)
    log_info(text_of(request_) + ": starting workers beside the old ones, wave " + std::to_string(wave_ + 1) + " of " +
             std::to_string(target_->waves.size()));
  for (const std::uint32_t p : target_->waves[wave_]) {
    NewWorker& w = *of_slot(target_->deployment.slots[p]);
    worker::Setup setup = target_->deployment.setups[p];
    w.started = true;
    if (auto status = env_.supervisor.start_beside(w.slot, std::move(setup), now); !status)
      return fail(status.error(), now);
  }
}

bool LiveChange::worker_ready(std::uint32_t slot, WorkerPort* port, const worker::Ready& ready, std::int64_t now) {
  NewWorker* const w = of_slot(slot);
  if (w == nullptr || w->served) return false;
  if (step_ != Step::starting) return true;
  w->port = port;
  w->ready = ready;
  const auto& wave = target_->waves[wave_];
  const bool all = std::ranges::all_of(
      wave, [&](std::uint32_t p) { return of_slot(target_->deployment.slots[p])->ready.has_value(); });
  if (!all) return true;
  ++wave_;
  start_wave(now);
  return true;
}

bool LiveChange::worker_failed(std::uint32_t slot, const std::string& line) {
  const NewWorker* const w = of_slot(slot);
  if (w == nullptr || w->served) return false;
  if (line_.empty()) line_ = "partition '" + target_->deployment.partitions[w->partition].partition.name + "': " + line;
  return true;  // worker_gone() follows
}

bool LiveChange::worker_lost(std::uint32_t slot, const std::string& how, std::int64_t now) {
  NewWorker* const w = of_slot(slot);
  if (w == nullptr) return false;
  const std::string line =
      "the new worker of partition '" + target_->deployment.partitions[w->partition].partition.name + "' " + how;
  if (w->served) {
    if (step_ == Step::on_trial) go_back(line);
    return false;
  }
  if (line_.empty()) line_ = line;
  env_.supervisor.released(slot, false, now);
  return true;
}

void LiveChange::worker_gone(std::uint32_t slot, std::int64_t now) {
  env_.metrics.writer().end(shm::RecordKind::partition, slot);
  leaving_.erase(slot);
  if (NewWorker* const w = of_slot(slot); w != nullptr && !w->served) w->started = false;
  if (step_ == Step::starting) return fail(line_.empty() ? "a new worker has ended" : line_, now);
  if (step_ == Step::giving_up && leaving_.empty()) return finish();
  if (step_ == Step::letting_go && leaving_.empty() && awaited_plan_ == nullptr) finish();
}

// ---- the plan ----

// The target with what the workers have said.
Result<InForce> LiveChange::completed() const {
  InForce out{.config = target_->config, .deployment = target_->deployment, .additions = target_->additions};
  const auto& slots = env_.now.deployment.slots;
  for (std::uint32_t p = 0; p < out.deployment.partitions.size(); ++p) {
    const std::uint32_t slot = out.deployment.slots[p];
    if (target_->fresh[p] != 0) {
      out.ready.push_back(*std::ranges::find(workers_, slot, &NewWorker::slot)->ready);
    } else {
      out.ready.push_back(env_.now.ready[static_cast<std::size_t>(std::ranges::find(slots, slot) - slots.begin())]);
    }
  }
  if (auto status = complete_plan(out.config, out.deployment, out.ready); !status) return Error{status.error()};
  for (const auto& line : choose_objectives(out.config, out.deployment)) log_info(line);
  for (std::uint32_t a = 0; a < out.config.applications.size(); ++a) {
    if (out.config.applications[a].retired) {
      out.served.push_back({.name = {}, .slo_ns = out.config.applications[a].application.slo_ns});
      out.recognised.emplace_back();
      out.tensors.emplace_back();
      continue;
    }
    auto said = models_said(out.config, a, out.deployment.setups, out.ready);
    if (!said.ok()) return Error{said.error()};
    said->served.need_ns = need_of(out.deployment, a).largest_ns;
    out.served.push_back(std::move(said->served));
    out.recognised.push_back(std::move(said->recognised));
    out.tensors.push_back(std::move(said->tensors));
  }
  return out;
}

// Streams that are open have slots for what the old version takes and writes.
std::string LiveChange::shapes_differ(const InForce& next) const {
  for (const Arrangement::Heir& heir : target_->heirs) {
    const ServedApplication &old = env_.now.served[heir.old], &now = next.served[heir.now];
    const bool inputs = old.tensors.size() == now.tensors.size() &&
                        std::ranges::equal(old.tensors, now.tensors, [](const auto& a, const auto& b) {
                          return a.dtype == b.dtype && a.rank == b.rank && std::ranges::equal(a.dims, b.dims);
                        });
    if (!inputs || !same_layout(old.results, now.results))
      return "the new version of '" + now.name + "' takes or answers something of another shape than the one before";
  }
  return {};
}

Status LiveChange::fit(const InForce& next) {
  const core::Topology topology = topology_of(next.config, next.deployment, env_.slots);
  if (const std::string problem = topology.problem(); !problem.empty()) return Error{next.config.file + ": " + problem};
  if (std::string line = idle_setting(next.config, next.deployment); !line.empty()) return Error{std::move(line)};
  if (std::string line = shapes_differ(next); !line.empty()) {
    if (request_.kind == ChangeRequest::Kind::replace) return Error{line};
    log_warning(line + "; its open streams get no answers any more, and open again");
    target_->heirs.clear();
  }
  for (const Arrangement::Heir& heir : target_->heirs) {
    const planner::Application& app = next.config.applications[heir.now].application;
    const std::int64_t need = next.served[heir.now].need_ns;
    if (need > app.slo_ns && request_.kind == ChangeRequest::Kind::replace)
      return Error{"the new version of '" + app.name + "' needs " + text::time_text(need) +
                   " on an idle host, more than its objective of " + text::time_text(app.slo_ns)};
  }
  if (request_.kind == ChangeRequest::Kind::replace)
    if (std::string line = trial_.refused(env_.now.deployment, next.deployment, target_->heirs); !line.empty())
      return Error{std::move(line)};
  return Done{};
}

// Of applications that retire nothing new is taken.
const LoopPlan* LiveChange::put_plan(const Both& of, std::span<const std::uint32_t> new_edges) {
  core::Topology topology = topology_of(of.config, of.deployment, env_.slots);
  for (const Arrangement::Heir& h : target_->heirs) topology.applications[h.old].heir = h.now;
  PlanTables tables = plan_tables(of.config, of.deployment, topology, env_.slots);
  for (const std::uint32_t a : retiring_) tables.closed[a] = 1;
  return env_.scheduler.replace_plan(topology, served_policy(of.config), std::move(tables), new_edges, false);
}

std::vector<std::uint32_t> LiveChange::new_edges() const {
  std::vector<std::uint32_t> out;
  const auto& known = before_->deployment.edges;
  for (const FeatureEdge& e : env_.now.deployment.edges)
    if (std::ranges::find(known, e.number, &FeatureEdge::number) == known.end()) out.push_back(e.number);
  return out;
}

void LiveChange::take_over(std::int64_t now) {
  auto next = completed();
  if (!next.ok()) return fail(next.error(), now);
  if (auto status = fit(*next); !status) return fail(status.error(), now);
  Config config = env_.now.config;
  Deployment deployment = env_.now.deployment;
  widen(config, deployment, next->config);
  const Both with = both(next->config, next->deployment, config, deployment, target_->retiring);
  if (const std::string problem = topology_of(with.config, with.deployment, env_.slots).problem(); !problem.empty())
    return fail("the plans do not go together: " + problem, now);
  env_.begins();
  for (NewWorker& w : workers_) {
    w.served = true;
    env_.supervisor.settle(w.slot);
    env_.scheduler.command({.kind = Command::Kind::worker_ready,
                            .partition = w.slot,
                            .pid = env_.supervisor.pid(w.slot),
                            .worker = w.port});
  }
  before_ = std::exchange(env_.now, std::move(*next));
  before_->config = std::move(config);
  before_->deployment = std::move(deployment);
  before_->served.resize(env_.now.served.size());
  before_->recognised.resize(env_.now.served.size());
  before_->tensors.resize(env_.now.served.size());
  retiring_ = target_->retiring;
  back_ = false;
  publish();
  changed_ = true;
  step_ = Step::taking_over;
  tell_progress();
  awaited_plan_ = put_plan(with, new_edges());
}

void LiveChange::publish() {
  (void)cap_memory(env_.now.config.limits, shm::available_memory().room_in_group());
  for (std::uint32_t a = 0; a < env_.now.served.size(); ++a) env_.sessions.serve(a, env_.now.served[a]);
  env_.sessions.limits_changed();
}

void LiveChange::on_scheduler_event(const SchedulerEvent& event, std::int64_t now) {
  if (event.kind == SchedulerEvent::Kind::plan_in_force) {
    if (event.plan != awaited_plan_) return;
    awaited_plan_ = nullptr;
    return in_force(now);
  }
  if (event.partition != core::kNone) {
    if (leaving_.contains(event.partition)) env_.supervisor.retire(event.partition, now);
    return;
  }
  std::erase(retiring_, event.application);
  if (step_ == Step::emptying && retiring_.empty()) let_go();
}

void LiveChange::in_force(std::int64_t now) {
  if (step_ == Step::letting_go) return leave_slots();
  if (!back_ && target_->in_place.empty() && backs_ == 0) {
    log_info(text_of(request_) + ": in force");
    for (const auto& line : unschedulable(env_.now.deployment)) log_warning(line);
  }
  if (!back_ && !target_->heirs.empty() && request_.trial_ns > 0) return begin_trial(now);
  begin_emptying(now);
}

// ---- a new version on trial ----

void LiveChange::begin_trial(std::int64_t now) {
  step_ = Step::on_trial;
  trial_until_ns_ = now + request_.trial_ns;
  trial_.begin(before_->deployment, target_->heirs, request_.trial_ns);
  tell_progress();
  due_ns_ = now + kLookNs;
}

void LiveChange::look_at_trial(std::int64_t now) {
  const bool over = now >= trial_until_ns_;
  if (std::string why = trial_.trouble(before_->deployment, env_.now.deployment, target_->heirs, over); !why.empty())
    return go_back(why);
  if (over) return begin_emptying(now);
  due_ns_ = now + kLookNs;
}

void LiveChange::go_back(const std::string& why) {
  log_error(text_of(request_) + ": " + why + "; the version before serves again");
  line_ = why + "; the version before serves again";
  failed_ = back_ = true;
  due_ns_ = INT64_MAX;
  std::vector<Arrangement::Heir> heirs;
  retiring_.clear();
  for (const Arrangement::Heir& h : target_->heirs) {
    heirs.push_back({h.now, h.old});
    retiring_.push_back(h.now);
  }
  std::swap(env_.now, *before_);  // before_: what it goes back from
  publish();
  step_ = Step::taking_over;
  target_->heirs = std::move(heirs);
  const Both with = both(env_.now.config, env_.now.deployment, before_->config, before_->deployment, retiring_);
  awaited_plan_ = put_plan(with, {});
}

// ---- what was before ----

void LiveChange::begin_emptying(std::int64_t now) {
  if (retiring_.empty()) return leave_slots();
  step_ = Step::emptying;
  std::int64_t longest = 0;
  for (const std::uint32_t a : retiring_) {
    longest = std::max(longest, before_->config.applications[a].application.slo_ns);
    env_.scheduler.command({.kind = Command::Kind::await_quiet, .application = a});
  }
  due_ns_ = now + longest + kEmptyNs;
}

void LiveChange::let_go() {
  due_ns_ = INT64_MAX;
  for (const std::uint32_t a : retiring_) env_.scheduler.command({.kind = Command::Kind::give_up, .application = a});
  step_ = Step::letting_go;
  retiring_.clear();
  awaited_plan_ = put_plan({env_.now.config, env_.now.deployment}, {});
}

void LiveChange::leave_slots() {
  step_ = Step::letting_go;
  tell_progress();
  due_ns_ = INT64_MAX;
  const auto& kept = env_.now.deployment.slots;
  for (const std::uint32_t slot : before_->deployment.slots)
    if (std::ranges::find(kept, slot) == kept.end() && env_.supervisor.in_use(slot)) leaving_.insert(slot);
  if (leaving_.empty()) return finish();
  for (const std::uint32_t slot : leaving_)
    env_.scheduler.command({.kind = Command::Kind::await_quiet, .partition = slot});
}

// Nothing has taken over yet: the new workers go.
void LiveChange::fail(const std::string& line, std::int64_t now) {
  const bool stays = steps_ > 0 || backs_ > 0;
  const std::string whole = line + (stays ? kAsInSteps : kAsBefore);
  if (!failed_) line_ = whole;
  failed_ = true;
  log_error(text_of(request_) + ": " + whole);
  step_ = Step::giving_up;
  for (const NewWorker& w : workers_)
    if (w.started && env_.supervisor.in_use(w.slot)) leaving_.insert(w.slot);
  const std::set<std::uint32_t> going = leaving_;  // some are gone before this ends
  for (const std::uint32_t slot : going) env_.supervisor.retire(slot, now);
  if (step_ == Step::giving_up && leaving_.empty()) finish();
}

// Records of what is served no more, or was begun for nothing.
void LiveChange::end_records() {
  const Deployment& now = env_.now.deployment;
  const auto end_modules = [&](const Config& config) {
    std::uint32_t module = 0;
    for (std::uint32_t a = 0; a < config.applications.size(); ++a) {
      const bool served = a < env_.now.config.applications.size() && !env_.now.config.applications[a].retired;
      for (std::size_t m = 0; m < config.applications[a].modules.size(); ++m, ++module)
        if (!served) env_.metrics.writer().end(shm::RecordKind::module, module);
    }
  };
  const auto end_others = [&](const Deployment& d) {
    for (const std::uint32_t slot : d.slots)
      if (std::ranges::find(now.slots, slot) == now.slots.end())
        env_.metrics.writer().end(shm::RecordKind::partition, slot);
    for (const FeatureEdge& e : d.edges)
      if (std::ranges::find(now.edges, e.number, &FeatureEdge::number) == now.edges.end())
        env_.metrics.writer().end(shm::RecordKind::edge, e.number);
  };
  end_modules(env_.now.config);
  end_modules(target_->config);
  end_others(target_->deployment);
  if (before_) end_others(before_->deployment);
}

void LiveChange::finish() {
  const bool follows = !failed_ && !dry_ && target_ && !target_->in_place.empty();
  if (target_ && !dry_) end_records();
  step_ = Step::none;
  due_ns_ = INT64_MAX;
  target_.reset();
  before_.reset();
  workers_.clear();
  leaving_.clear();
  retiring_.clear();
  if (follows) return follow();
  if (failed_ && something_is_out() && backs_ < kMaxBacks) return ++backs_, read_next(true);
  if (failed_ && (steps_ > 0 || backs_ > 0)) {
    const std::string out = what_is_out();
    const std::string end = out.empty() ? "what was out is back" : out + " out; the next change brings that back";
    log_info(text_of(request_) + ": " + end);
    line_ += "; " + end;
  }
  if (!failed_ && !dry_) log_info(text_of(request_) + ": done");
  if (!dry_) ++(failed_ ? given_up_ : done_);
  tell_progress();
  first_.reset();
  if (changed_) env_.ends();
}

// Of an exchange the new version serves from the second step on: what is out then comes back with that.
void LiveChange::follow() {
  if (++steps_; exchange_ && steps_ == 2)
    first_ = {exchange_->config, std::make_shared<const Deployment>(exchange_->wanted), exchange_->additions};
  read_next(false);
}

bool LiveChange::something_is_out() const {
  return first_ && back_in_place(env_.now.config, env_.now.deployment, *first_->deployment).has_value();
}

// Partitions that were to have a worker and have none: "'p0', 'p1' stay". Empty: there is none.
std::string LiveChange::what_is_out() const {
  if (!first_) return {};
  const Deployment& was = *first_->deployment;
  const auto& is = env_.now.deployment.partitions;
  std::string names;
  int count = 0;
  for (std::size_t p = 0; p < was.partitions.size(); ++p) {
    const std::string& name = was.partitions[p].partition.name;
    if (was.setups[p].modules.empty() ||
        std::ranges::find(is, name, [](const PartitionConfig& q) { return q.partition.name; }) != is.end())
      continue;
    names += (count++ == 0 ? "'" : ", '") + name + "'";
  }
  return count == 0 ? names : names + (count == 1 ? " stays" : " stay");
}

// For those who look at the counters.
void LiveChange::tell_progress() {
  using shm::DaemonCounter;
  shm::Record daemon = env_.metrics.daemon();
  daemon.set(DaemonCounter::change_step, static_cast<std::uint64_t>(step_));
  daemon.set(DaemonCounter::change_wave, wave_shown());
  daemon.set(DaemonCounter::change_waves, waves_.size());
  daemon.set(DaemonCounter::changes, done_);
  daemon.set(DaemonCounter::changes_failed, given_up_);
}

std::size_t LiveChange::wave_shown() const {
  if (step_ == Step::none || (step_ == Step::reading && steps_ == 0)) return 0;
  if (in_place_) return std::min(steps_ + 1, waves_.size());
  return step_ == Step::starting ? wave_ + 1 : waves_.size();
}

void LiveChange::advance(std::int64_t now) {
  if (now < due_ns_) return;
  due_ns_ = INT64_MAX;
  if (step_ == Step::on_trial) return look_at_trial(now);
  if (step_ == Step::emptying) let_go();
}

LiveChange::NewWorker* LiveChange::of_slot(std::uint32_t slot) noexcept {
  const auto at = std::ranges::find(workers_, slot, &NewWorker::slot);
  return at == workers_.end() ? nullptr : &*at;
}

Json LiveChange::status() const {
  if (number_ == 0) return nullptr;
  static constexpr const char* kSteps[] = {"done",     "reading",  "starting",   "taking_over",
                                           "on_trial", "emptying", "letting_go", "giving_up"};
  const bool over = step_ == Step::none;
  const char* const state = !over     ? kSteps[static_cast<std::size_t>(step_)]
                            : dry_    ? "dry_run"
                            : failed_ ? "failed"
                                      : "done";
  return {{"number", number_},
          {"kind", name_of(request_.kind)},
          {"what", text_of(request_)},
          {"state", state},
          {"over", over},
          {"wave", wave_shown()},
          {"in_place", in_place_},
          {"waves", waves_},
          {"differences", said_},
          {"line", line_}};
}

}  // namespace leat::daemon
