#include "engine/daemon/changes/replanning.h"

#include <fcntl.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "engine/daemon/log.h"
#include "planner/io/plan_io.h"
#include "tools/base/documents/text_file.h"
#include "tools/base/subprocess/run.h"

namespace leat::daemon {
namespace {

constexpr std::int64_t kChildNs = 10'000'000'000;  // then it is killed
constexpr std::uintmax_t kMaxAnswer = 16 << 20;    // bytes
constexpr int kLooksBetween = 6;                   // from one change to the next

std::string times_text(double carried) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f times", carried);
  return text;
}

void forget(const std::string& file) {
  std::error_code none;
  if (!file.empty()) std::filesystem::remove(file, none);
}

}  // namespace

Replanning::Replanning(Environment environment, std::int64_t now)
    : env_(std::move(environment)), look_ns_(now + env_.now.config.replan_look_ns), looked_ns_(now) {
  (void)take_rates(now);
  on_ = env_.now.config.replan_auto;
  residents_ = residents_of(env_.now.config, env_.now.deployment);
  binds_ = planner::memory_binds(residents_.problem);
}

// Where it is off, an idle leatd is not woken for it.
std::int64_t Replanning::next_due() const noexcept {
  return std::min(env_.now.config.replan_auto ? look_ns_ : INT64_MAX, child_until_ns_);
}

void Replanning::advance(std::int64_t now) {
  if (now >= child_until_ns_) {
    child_until_ns_ = INT64_MAX;
    late_ = true;
    child_.send_kill();  // on_child() follows
  }
  see_outcome(now);
  const bool was_on = std::exchange(on_, env_.now.config.replan_auto);
  if (!on_ || (was_on && now < look_ns_)) return;
  look_ns_ = now + env_.now.config.replan_look_ns;
  if (was_on)
    look(now);
  else
    (void)take_rates(now);  // what came before counts for nothing
}

// Requests a second of each application since the last look; what of them was given up or came late is in worst_.
std::vector<double> Replanning::take_rates(std::int64_t now) {
  const Config& config = env_.now.config;
  const Deployment& d = env_.now.deployment;
  std::vector<double> out(config.applications.size(), 0);
  const double seconds = static_cast<double>(std::max<std::int64_t>(1, now - looked_ns_)) / 1e9;
  looked_ns_ = now;
  worst_ = 1;
  std::size_t n = 0;
  for (std::uint32_t a = 0; a < config.applications.size(); ++a) {
    double part = 1;
    for (std::uint32_t m = 0; m < config.applications[a].modules.size(); ++m, ++n) {
      if (counts_.size() <= n) counts_.emplace_back();
      if (config.applications[a].retired) continue;
      const shm::Record record = env_.metrics.of(shm::RecordKind::module, d.first_module[a] + m);
      const Count is{record.value(shm::ModuleCounter::arrived),
                     record.value(shm::ModuleCounter::dropped) + record.value(shm::ModuleCounter::failed)};
      const Count was = std::exchange(counts_[n], is);
      if (is.arrived < was.arrived || is.given_up < was.given_up) continue;  // the number is another application's now
      const auto arrived = static_cast<double>(is.arrived - was.arrived);
      if (config.applications[a].application.modules[m].after.empty()) out[a] = std::max(out[a], arrived / seconds);
      if (arrived > 0) part -= static_cast<double>(is.given_up - was.given_up) / arrived;
    }
    if (late_answers_.size() <= a) late_answers_.resize(a + 1, 0);
    const std::uint64_t late = env_.metrics.late(a), newly = late - std::exchange(late_answers_[a], late);
    if (out[a] > 0) part -= static_cast<double>(newly) / (out[a] * seconds);
    worst_ = std::min(worst_, std::max(part, 0.0));
  }
  return out;
}

void Replanning::look(std::int64_t now) {
  const std::vector<double> rates = take_rates(now);
  if (env_.change.busy() || child_ || asked_) return;
  residents_ = residents_of(env_.now.config, env_.now.deployment);
  binds_ = planner::memory_binds(residents_.problem);
  if (!binds_) return;
  planner::set_weights(residents_.problem, rates, residents_.items, rule_);
  carried_ = planner::carried(residents_.problem, residents_.holds, rule_);
  if (now < free_ns_ || !planner::looks_for_better(carried_, worst_, rule_)) return;
  begin(now, rates);
}

void Replanning::begin(std::int64_t now, const std::vector<double>& rates) {
  // What set_weights() counts each application with.
  std::vector<double> asked = rates;
  for (std::size_t m = 0; m < residents_.modules.size(); ++m)
    asked[residents_.modules[m].application] = residents_.problem.weight[m] / residents_.items[m];
  if (!folder_) folder_ = std::make_unique<PlannerFolder>();
  Status ready = folder_->write(env_.now.config, env_.now.deployment, asked);
  const std::string from = folder_->path() + "/from.json";
  if (ready) ready = planner::write_plan(from, plan_file_of(env_.now.config, env_.now.deployment));
  if (!ready) return fail(now, ready.error());
  plan_ = folder_->path() + "/plan-" + std::to_string(++plans_) + ".json";
  std::vector<std::string> words = folder_->words(env_.solver, plan_);
  words.insert(words.end(), {"--from", from});
  const Fd said(open((folder_->path() + "/said").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  subprocess::Command command{.words = std::move(words)};
  if (said) command.fds = {{said.get(), 1}, {said.get(), 2}};
  command.group = subprocess::Group::own;
  command.death_signal = SIGKILL;
  auto child = subprocess::Process::start(command);
  if (!child.ok()) return fail(now, child.error());
  child_ = std::move(*child);
  child_until_ns_ = now + kChildNs;
  late_ = false;
}

void Replanning::on_child(std::int64_t now) {
  if (!child_) return;
  if (const auto how = child_.ended()) {
    child_until_ns_ = INT64_MAX;
    judge(now, *how);
  }
}

Result<planner::PlanFile> Replanning::answer(const subprocess::Ending& how) const {
  if (late_) return Error{"leat-plan was stopped after " + std::to_string(kChildNs / 1'000'000'000) + " s"};
  if (!how.clean()) {
    std::string line;
    std::error_code error;
    if (std::filesystem::file_size(folder_->path() + "/said", error) <= kMaxAnswer && !error)
      if (const auto said = read_text_file(folder_->path() + "/said"); said.ok()) line = subprocess::last_line(*said);
    return Error{"leat-plan " + how.text() + (line.empty() ? "" : ": " + line)};
  }
  std::error_code error;
  if (std::filesystem::file_size(plan_, error) > kMaxAnswer || error) return Error{"leat-plan left no plan"};
  return planner::read_plan(plan_);
}

void Replanning::judge(std::int64_t now, const subprocess::Ending& how) {
  const auto plan = answer(how);
  if (!plan.ok()) return fail(now, plan.error());
  if (!consider(now, *plan)) forget(plan_);
}

// False: it is not asked for.
bool Replanning::consider(std::int64_t now, const planner::PlanFile& plan) {
  if (env_.change.busy() || !env_.now.config.replan_auto) return false;  // it was about what is no more
  const Residents running = residents_of(env_.now.config, env_.now.deployment);
  if (running.modules.size() != residents_.modules.size() || running.holds != residents_.holds) return false;
  const auto holds = holds_of(plan, env_.now.config, env_.now.deployment, residents_);
  for (std::size_t m = 0; m < residents_.modules.size(); ++m)
    if (std::ranges::none_of(holds, [&](const std::vector<bool>& of) { return of[m]; }))
      return fail(now, "leat-plan's answer leaves '" + name_of(env_.now.config, residents_.modules[m]) +
                           "' without a partition"),
             false;
  const double then = planner::carried(residents_.problem, holds, rule_);
  if (holds == residents_.holds || !planner::worth_a_change(carried_, then, rule_)) return false;
  ChangeRequest request{.kind = ChangeRequest::Kind::plan, .text = plan_};
  request.automatic = true;
  request.why =
      text_of_moves(holds) + "; what arrives is carried " + times_text(then) + ", " + times_text(carried_) + " before";
  line_ = request.why;
  const auto asked = env_.ask(std::move(request));
  if (!asked.ok()) return fail(now, asked.error()), false;
  asked_ = *asked;
  return true;
}

std::string Replanning::text_of_moves(const std::vector<std::vector<bool>>& holds) const {
  std::string out;
  for (std::size_t p = 0; p < holds.size(); ++p) {
    const std::string text = moves_text(env_.now.config, residents_.modules, residents_.holds[p], holds[p]);
    if (text.empty()) continue;
    out += (out.empty() ? "" : "; ") + env_.now.deployment.partitions[p].partition.name + " " + text;
  }
  return out;
}

// What became of the change that was asked for.
void Replanning::see_outcome(std::int64_t now) {
  if (!asked_ || env_.change.busy()) return;
  asked_.reset();
  free_ns_ = now + kLooksBetween * env_.now.config.replan_look_ns;
  if (env_.change.failed()) {
    ++failures_;
    line_ = "given up: " + line_;
    forget(plan_);
  } else {
    ++changes_;
    forget(std::exchange(in_force_, plan_));
  }
}

void Replanning::fail(std::int64_t now, const std::string& line) {
  ++failures_;
  free_ns_ = now + kLooksBetween * env_.now.config.replan_look_ns;
  line_ = line;
  log_warning("replan = \"auto\": " + line + "; the plan in force stays");
}

Json Replanning::status() const {
  const char* const state = !env_.now.config.replan_auto ? "off"
                            : !binds_                    ? "all resident"
                            : child_                     ? "planning"
                            : asked_                     ? "changing"
                                                         : "watching";
  return {{"state", state},      {"carried", carried_},   {"in_time", worst_},
          {"changes", changes_}, {"failures", failures_}, {"line", line_}};
}

}  // namespace leat::daemon
