#include "engine/record/replay.h"

#include <algorithm>
#include <optional>

namespace leat::record {
namespace {

using core::TimeNs;

// Makes the core again, and is what it asks.
class Replay final : private core::TaskSizes, private core::Offers {
 public:
  Replay(Record& record, core::Presets presets) : record_(record), presets_(presets) {}

  Result<Replayed> run();

 private:
  std::uint32_t units(std::uint64_t, core::ModuleId, std::uint32_t) const noexcept override;
  std::optional<TimeNs> picture_ns(core::StreamId stream) const noexcept override;

  bool look() const;  // there is a next entry, in next_
  bool take(Entry& out);
  [[nodiscard]] bool asked_of(Kind kind) const;
  Status make(bool measures, bool offers);
  Status begin(const Entry& e);
  Status restore(const Entry& e);
  Status look_for_core(const Entry& e, bool action);
  Status follow(const Entry& e, bool action);
  Status feed(const Entry& e);
  Status replace(const Entry& e);
  [[nodiscard]] core::BatchHandle handle(const Entry& e) const;
  void compare(const Entry& e);
  void differ(const Entry& e, const std::string& text);

  Record& record_;
  core::Presets presets_;
  std::unique_ptr<core::Scheduler> core_;
  std::shared_ptr<const RecordedPlan> plan_;
  Replayed out_;
  mutable Entry next_;
  mutable bool looked_ = false, there_ = false;
  mutable std::uint32_t asked_ = 0;
  mutable std::optional<Known> known_;  // there is one where there is a core
  std::vector<std::byte> state_;        // its pieces until now
  std::uint64_t state_hash_ = 0;
  bool measures_ = false, offers_ = false;
  core::StreamId opened_ = core::kNone;
  std::uint64_t hash_ = 0;
};

bool Replay::look() const {
  if (!looked_) there_ = record_.next(next_);
  looked_ = true;
  return there_;
}

bool Replay::take(Entry& out) {
  if (!look()) return false;
  std::swap(out, next_);
  looked_ = false;
  return true;
}

// The next entry is what was answered here when the core asked.
bool Replay::asked_of(Kind kind) const {
  // What a new segment begins with may stand between.
  while (look() && (next_.kind == Kind::plan || (next_.kind == Kind::stream && next_.context))) looked_ = false;
  return look() && next_.kind == kind && next_.skipped == asked_;
}

std::uint32_t Replay::units(std::uint64_t, core::ModuleId, std::uint32_t) const noexcept {
  if (!asked_of(Kind::units)) {
    ++asked_;
    return 1;
  }
  looked_ = false;
  asked_ = 0;
  return std::clamp<std::uint32_t>(next_.units, 1, core::kMaxBatch);
}

std::optional<TimeNs> Replay::picture_ns(core::StreamId stream) const noexcept {
  LastPicture& last = known_->pictures[stream];
  if (!asked_of(Kind::picture)) {
    ++asked_;
  } else {
    looked_ = false;
    asked_ = 0;
    last = {.there = next_.flag, .at_ns = next_.picture_ns};
  }
  return last.there ? std::optional(last.at_ns) : std::nullopt;
}

Status Replay::make(bool measures, bool offers) {
  if (plan_ == nullptr) return Error{"it names no plan where it begins"};
  auto policy = policy_of(*plan_, presets_);
  if (!policy.ok()) return Error{policy.error()};
  core_ = std::make_unique<core::Scheduler>(plan_->topology, *policy, plan_->limits);
  if (measures) core_->measure_tasks(*this);
  if (offers) core_->watch_offers(*this);
  known_.emplace(plan_->limits);
  return Done{};
}

Status Replay::begin(const Entry& e) {
  if (core_ != nullptr) return Error{"it begins twice"};
  return make(e.flag, e.offers);
}

// Where its beginning is lost: a core that goes on from the first state that is whole.
Status Replay::restore(const Entry& e) {
  if (e.first) {
    state_.clear();
    state_hash_ = e.hash;
    measures_ = e.flag;
    offers_ = e.offers;
  }
  state_.insert(state_.end(), e.piece.begin(), e.piece.end());
  if (!e.last) return Done{};
  if (hash_of(state_) != state_hash_) return Done{};  // its first pieces were overwritten; there is another behind it
  if (auto status = make(measures_, offers_); !status) return status;
  core::Snapshot own = core::Snapshot::reading(state_);
  own(*known_);
  if (!own.ok() || !core_->load(std::span(state_).last(own.left())))
    return Error{"the state that it begins with is of another build of leatd; use the release that wrote it"};
  out_.from_ns = e.at_ns;
  out_.before = core_->counters().total;
  state_ = {};
  return Done{};
}

Status Replay::replace(const Entry& e) {
  ++out_.plans;
  plan_ = e.plan;
  auto policy = policy_of(*plan_, presets_);
  if (!policy.ok()) return Error{policy.error()};
  if (!core_->same_requests(plan_->topology)) return Error{"a plan in it cannot follow the one before"};
  core::ReadyPlanPtr ready = core_->prepare(plan_->topology, *policy);
  if (!core_->replace(e.at_ns, ready, e.flag)) differ(e, "a plan took over, and would now have to wait");
  return Done{};
}

// That of the batch which was sent last under the number, or the one named.
core::BatchHandle Replay::handle(const Entry& e) const {
  if (e.stale || e.batch >= known_->batches.size()) return {e.batch, e.generation};
  return {e.batch, known_->batches[e.batch].generation};
}

Status Replay::feed(const Entry& e) {
  ++out_.events;
  asked_ = 0;
  switch (e.kind) {
    case Kind::open_stream:
      opened_ = core_->open_stream(e.at_ns, e.config);
      return Done{};
    case Kind::close_stream:
      core_->close_stream(e.at_ns, e.stream, e.reason);
      return Done{};
    case Kind::submit:
      (void)core_->submit(e.at_ns, e.submission);
      return Done{};
    case Kind::cancel:
      core_->cancel(e.at_ns, e.request);
      return Done{};
    case Kind::observe:
      (void)core_->observe(e.at_ns, e.stream, e.seen);
      return Done{};
    case Kind::stage_started:
      core_->stage_started(e.at_ns, handle(e), e.stage);
      return Done{};
    case Kind::stage_beside:
      core_->stage_beside(e.at_ns, handle(e), e.stage);
      return Done{};
    case Kind::stage_finished: {
      const core::BatchHandle batch = handle(e);
      if (!e.results.empty() && known_->is_last(batch) && known_->batches[batch.index].tasks != e.results.size())
        return Error{"a batch in it ends with other tasks than it had"};
      (void)core_->stage_finished(e.at_ns, batch, e.stage, e.results, e.went_on_ns);
      return Done{};
    }
    case Kind::partition_lost:
      ++out_.losses;
      (void)core_->partition_lost(e.at_ns, e.partition);
      return Done{};
    case Kind::partition_ready:
      core_->partition_ready(e.at_ns, e.partition);
      return Done{};
    case Kind::estimates:
      if (e.estimates.modules.size() > plan_->topology.modules.size())
        return Error{"it estimates modules that there are not"};
      core_->set_estimates(e.at_ns, e.estimates);
      return Done{};
    case Kind::advance:
      core_->advance(e.at_ns);
      return Done{};
    case Kind::replace:
      return replace(e);
    case Kind::take_retired:
      --out_.events;  // no event of the core's
      if (core_->take_retired() == nullptr) differ(e, "an earlier plan was over, and is not now");
      return Done{};
    case Kind::give_up:
      core_->give_up(e.at_ns, e.application, e.reason);
      return Done{};
    default:
      return Error{"an entry stands where none of its kind can"};
  }
}

std::string text_of(const core::Action& a, const RecordedPlan& plan) {
  switch (a.kind) {
    case core::ActionKind::dispatch:
      return "a batch of " + std::to_string(a.tasks.size()) + " to " + partition_name(plan, a.path[0]) + " by route " +
             std::to_string(a.route) + " as number " + std::to_string(a.batch.index);
    case core::ActionKind::answer:
      return "frame " + std::to_string(a.token) + " is answered " + std::string(name_of(a.outcome)) +
             (a.reason == Reason::none ? "" : " (" + std::string(name_of(a.reason)) + ")");
    case core::ActionKind::transfer:
      return "frame " + std::to_string(a.token) + " is transferred";
    case core::ActionKind::schedule:
      return "stream " + std::to_string(a.stream) + " is told its schedule";
  }
  return "?";
}

core::ActionKind action_of(Kind kind) {
  switch (kind) {
    case Kind::dispatch:
      return core::ActionKind::dispatch;
    case Kind::transfer:
      return core::ActionKind::transfer;
    case Kind::schedule:
      return core::ActionKind::schedule;
    default:
      return core::ActionKind::answer;
  }
}

// The recorded action, as far as the record has it.
core::Action recorded(const Entry& e) {
  core::Action a;
  a.kind = action_of(e.kind);
  a.batch.index = e.batch;
  a.route = e.route;
  a.path = e.path;
  a.tasks = e.tasks;
  a.first_stage = e.stage;
  a.went_on = e.flag;
  a.token = e.submission.token;
  a.stream = e.stream;
  a.outcome = e.outcome;
  a.reason = e.reason;
  a.where = e.where;
  return a;
}

bool same(const core::Action& was, const core::Action& is) {
  if (was.kind != is.kind) return false;
  switch (was.kind) {
    case core::ActionKind::dispatch:
      return was.batch.index == is.batch.index && was.route == is.route && was.first_stage == is.first_stage &&
             was.went_on == is.went_on && std::ranges::equal(was.path, is.path) &&
             std::ranges::equal(was.tasks, is.tasks, [](const core::TaskRef& x, const core::TaskRef& y) {
               return x.token == y.token && x.item == y.item && x.items == y.items && x.units == y.units;
             });
    case core::ActionKind::answer:
      return was.token == is.token && was.outcome == is.outcome && was.reason == is.reason && was.where == is.where;
    case core::ActionKind::transfer:
      return was.token == is.token;
    case core::ActionKind::schedule:
      return was.stream == is.stream;
  }
  return false;
}

void Replay::compare(const Entry& e) {
  ++out_.actions;
  const core::Action was = recorded(e);
  core::Action is;
  if (!core_->next_action(is)) return differ(e, "then: " + text_of(was, *plan_) + "; now: nothing");
  if (!same(was, is)) return differ(e, "then: " + text_of(was, *plan_) + "; now: " + text_of(is, *plan_));
  hash_ = mixed(hash_, is, *core_);
  if (is.kind == core::ActionKind::dispatch) known_->sent(is);
  ++out_.same;
}

void Replay::differ(const Entry& e, const std::string& text) {
  if (!out_.difference.empty()) return;
  out_.difference = text;
  out_.differs_ns = e.at_ns;
  out_.differs_in = e.kind;
}

Result<Replayed> Replay::run() {
  record_.rewind();
  out_.begin_ns = out_.from_ns = record_.begin_ns();
  Entry e;
  while (take(e)) {
    out_.end_ns = e.at_ns;
    const bool action = e.kind >= Kind::dispatch && e.kind <= Kind::schedule;
    if (!out_.difference.empty()) {  // what follows follows from it
      out_.actions += action ? 1 : 0;
      continue;
    }
    Status status = core_ == nullptr ? look_for_core(e, action) : follow(e, action);
    if (!status) return Error{status.error()};
  }
  if (core_ == nullptr)
    return Error{
        "neither its beginning nor a state of the core is in it, so that the core cannot be made again as it was; make "
        "recorder_mib larger"};
  out_.cut = record_.problem();
  out_.total = core_->counters().total;
  return std::move(out_);
}

Status Replay::look_for_core(const Entry& e, bool action) {
  switch (e.kind) {
    case Kind::plan:
    case Kind::replace:
      plan_ = e.plan;
      return Done{};
    case Kind::begin:
      return begin(e);
    case Kind::state:
      return restore(e);
    default:
      out_.skipped += action ? 1 : 0;
      return Done{};
  }
}

Status Replay::follow(const Entry& e, bool action) {
  if (action) {
    compare(e);
    return Done{};
  }
  switch (e.kind) {
    case Kind::plan:
    case Kind::note:
    case Kind::state:
      return Done{};
    case Kind::begin:
      return begin(e);
    case Kind::stream:
      if (!e.context && e.stream != opened_) differ(e, "a stream got another number");
      return Done{};
    case Kind::check:
      if (e.hash != hash_) differ(e, "what was told with one of the last actions differs: a time, or a schedule");
      hash_ = 0;
      return Done{};
    case Kind::units:
    case Kind::picture:
      differ(e, "the core asked for something, and does not now");
      return Done{};
    default:
      return feed(e);
  }
}

}  // namespace

Result<core::Policy> policy_of(const RecordedPlan& plan, core::Presets presets) {
  auto made = core::policy_of(plan.names.preset, plan.names.settings, presets);
  if (!made.ok()) return Error{"its policy: " + made.error()};
  core::Policy out = plan.policy;
  out.scheduler = made->scheduler;
  out.variant = made->variant;
  out.given = made->given;
  return out;
}

Result<Replayed> replay(Record& record, core::Presets presets) { return Replay(record, presets).run(); }

}  // namespace leat::record
