#include "engine/core/streams/coordinator/coordinator.h"

#include <algorithm>
#include <cmath>

namespace leat::core::streams {
namespace {

constexpr TimeNs kMinPeriod = 4'000'000, kMaxPeriod = 2'000'000'000;
constexpr std::size_t kEntries = 64;  // planned frames of one stream, in the mean, and as many for trials
// Of what a partition's batches take: how far each moves it, and how far off a profile may be.
constexpr double kMinStep = 0.005, kMaxStep = 0.08, kMaxSlower = 32;
constexpr double kGraceShare = 0.95, kGraceStep = 0.004;  // of batches, that the grace is enough for; a batch moves it

}  // namespace

Coordinator::Coordinator(std::vector<BatchTimes> batch_ns, const CoordinatorSettings& settings)
    : times_(std::move(batch_ns)),
      settings_(settings),
      curve_(settings.bend, settings.hidden),
      users_(settings.streams, settings.margin),
      streams_(settings.streams),
      parts_(times_.profile_ns.front().size(), Partition{.grace = settings.grace}),
      packer_{.packing = Packing(settings.streams, times_.batch_ns.size()),
              .candidates = {},
              .tallies = std::vector<Tally>(settings.streams)},
      groups_{.program = GroupPlanner(curve_)} {
  for (const BatchTimes& each : times_.batch_ns) {
    const auto served = std::find_if(each.begin(), each.end(), [](const auto& runs) { return !runs.empty(); });
    times_.first.push_back(static_cast<PartitionId>(served - each.begin()));
  }
  roster_.in.reserve(settings.streams);
  search_.order.reserve(settings.streams);
  roster_.waiting.reserve(settings.streams);
  packer_.candidates.reserve(settings.streams);
  rivals_.portions.reserve(settings.streams);
  rivals_.claimants.reserve(settings.streams);
  for (Batches* each : {&planned_, &kept_}) {
    each->batches.reserve(settings.streams * kEntries * 2);
    each->members.reserve(settings.streams * kEntries * 2);
  }
}

std::uint32_t Coordinator::make(TimeNs now, const CoordinatedStream& spec) noexcept {
  const auto free =
      std::find_if(streams_.begin(), streams_.end(), [](const Stream& s) { return s.standing == Standing::none; });
  if (free == streams_.end()) return kNone;
  const std::uint32_t user = users_.of(spec.user, spec.user_weight);
  if (users_[user].places >= std::max(1.0, std::floor(spec.max_share * settings_.streams))) return kNone;
  ++users_[user].places;
  EstimatorSettings estimator = settings_.estimator;
  estimator.prior_slope =
      spec.prior_slope > 0 ? spec.prior_slope : users_[user].prior_slope(settings_.estimator.prior_slope);
  *free = Stream{.standing = Standing::waiting,
                 .spec = spec,
                 .user = user,
                 .estimator = DropEstimator(estimator),
                 .sla_drop = spec.sla_drop};
  free->heard_ns = free->since_ns = now;
  free->probed_ns = now - settings_.probe_ns;  // its first frame is a probe
  free->phase_ns = now;
  return static_cast<std::uint32_t>(free - streams_.begin());
}

std::uint32_t Coordinator::open(TimeNs now, const CoordinatedStream& spec) noexcept {
  const std::uint32_t id = spec.module < times_.batch_ns.size() ? make(now, spec) : kNone;
  if (id == kNone) return kNone;
  if (spec.group == 0) {
    streams_[id].turn = ++groups_.turns;
    roster_.waiting.push_back(id);
  } else if (!join(now, id)) {
    release(streams_[id]);
    return kNone;
  }
  if (roster_.open++ == 0) next_tick_ns_ = now;
  return id;
}

double Coordinator::margin_of(const Stream& s) const noexcept {
  if (s.tasks > 0) return s.left;
  return s.margin.value(user_of(s).margin, s.estimator.slope(), s.estimator.settled(), settings_.margin);
}

// Its place.
void Coordinator::release(Stream& s) noexcept {
  s.standing = Standing::none;
  --user_of(s).places;
}

void Coordinator::leave(std::uint32_t id, Standing to) noexcept {
  Stream& s = streams_[id];
  std::erase(s.standing == Standing::admitted ? roster_.in : roster_.waiting, id);
  if (to == Standing::none)
    release(s);
  else
    s.standing = to;
  s.partition = kNone;
  s.usual = 0;
  s.sent_ns = INT64_MIN;
  s.asking.restart();
  s.meter.restart();
  for (std::uint32_t i = 0; i < s.tasks; ++i) {
    streams_[s.task[i]].sent_ns = INT64_MIN;
    streams_[s.task[i]].meter.restart();
  }
  if (to == Standing::waiting) {
    s.turn = ++groups_.turns;
    roster_.waiting.push_back(id);
  }
}

void Coordinator::close(TimeNs, std::uint32_t id) noexcept {
  if (id >= streams_.size() || streams_[id].standing == Standing::none) return;
  if (streams_[id].lead == kNone)
    leave(id, Standing::none);
  else
    part(id);
  if (--roster_.open == 0) {
    planned_.batches.clear();
    planned_.members.clear();
  }
}

// Up for each that took longer and down for each that did not: one of many that was held up says nothing.
void Coordinator::ran(std::uint32_t m, PartitionId p, std::uint32_t batch, TimeNs run_ns, TimeNs late_ns) noexcept {
  if (m >= times_.usual.size() || p >= parts_.size() || batch == 0 || batch > times_.profile_ns[m][p].size()) return;
  const auto run = static_cast<double>(run_ns), profile = static_cast<double>(times_.profile_ns[m][p][batch - 1]);
  Usual& u = times_.usual[m][p];
  const bool up = run > u.times * profile;
  u.step = std::clamp(up == u.up ? u.step * 1.5 : u.step / 2, kMinStep, kMaxStep);
  u.up = up;
  const double needed = (run + static_cast<double>(late_ns)) / (u.times * profile) - 1;
  u.times = std::clamp(up ? u.times * (1 + u.step) : u.times / (1 + u.step), 1 / kMaxSlower, kMaxSlower);
  double& grace = parts_[p].grace;
  grace = std::clamp(grace + kGraceStep * (needed > grace ? kGraceShare : kGraceShare - 1),
                     std::min(settings_.min_grace, settings_.grace), settings_.grace);
}

bool Coordinator::period_ok(TimeNs period_ns) noexcept { return period_ns >= kMinPeriod && period_ns <= kMaxPeriod; }

void Coordinator::spoke(TimeNs now, std::uint32_t id) noexcept {
  if (id >= streams_.size() || planned(id).standing != Standing::silent) return;
  if (streams_[id].lead != kNone) id = streams_[id].lead;
  streams_[id].heard_ns = now;
  streams_[id].standing = Standing::none;
  leave(id, Standing::waiting);
}

void Coordinator::frame_clock(std::uint32_t id, TimeNs last_capture_ns, TimeNs period_ns) noexcept {
  if (id >= streams_.size() || streams_[id].standing == Standing::none) return;
  if (!period_ok(period_ns)) return;
  streams_[id].phase_ns = last_capture_ns;
  streams_[id].spec.pace.period_ns = period_ns;
  if (streams_[id].lead != kNone) sum_up(streams_[id].lead);
}

void Coordinator::answered(TimeNs now, std::uint32_t id, TimeNs capture_ns) noexcept {
  if (id >= streams_.size() || streams_[id].standing == Standing::none) return;
  Stream &s = streams_[id], &plan = planned(id);
  plan.heard_ns = now;
  if (plan.standing == Standing::silent) return spoke(now, id);
  if (capture_ns <= s.meter.source_ns() || capture_ns > now) return;
  if (plan.reference <= 0) return;  // never planned
  s.asking.answered(now, settings_.asking);
  const auto second = s.meter.answered(now, capture_ns, s.spec.pace.period_ns, plan.reference, curve_);
  if (!second) return;
  s.measured_drop = second->drop;
  if (plan.spendthrift) return;
  if (asks(s)) s.asking.measured(user_of(s).asking, second->drop / s.sla_drop, settings_.asking);
  s.margin.measured(user_of(s).margin, second->slope, s.estimator.slope(), s.estimator.settled(), settings_.margin);
}

bool Coordinator::observe(TimeNs now, std::uint32_t id, std::uint32_t stride, double drop, bool far,
                          double expected) noexcept {
  if (id >= streams_.size() || streams_[id].standing == Standing::none) return false;
  if (stride == 0 || stride > kLongestStride || !(drop >= 0 && drop <= 1)) return false;
  Stream& s = streams_[id];
  s.estimator.observe(now, stride, drop, curve_);
  if (!far) s.meter.observed(stride, s.estimator.loss(drop), curve_);
  if (!far && expected >= 0 && expected <= 1 && stride > 1)  // one frame on there is nothing to tell apart
    s.asking.observed(user_of(s).asking, expected, curve_.at(stride), s.estimator.loss(drop), s.spec.sla_drop,
                      settings_.asking);
  user_of(s).showed(s.estimator.slope());
  return true;
}

StreamView Coordinator::view(std::uint32_t id) const noexcept {
  if (id >= streams_.size()) return {};
  const Stream &s = streams_[id], &plan = planned(id);
  StreamView v{.standing = s.standing == Standing::none ? Standing::none : plan.standing,
               .setting = plan.setting,
               .partition = plan.partition,
               .slope = s.estimator.slope(),
               .jitter = s.estimator.jitter(),
               .margin = margin_of(plan),
               .planned_drop = plan.planned_drop,
               .measured_drop = s.measured_drop,
               .evictions = plan.evictions,
               .worth = s.asking.worth(),
               .local_above = s.asking.local_above(s.spec.local)};
  if (v.standing == Standing::admitted && asks(s)) v.asks = asks_of(s);
  return v;
}

}  // namespace leat::core::streams
