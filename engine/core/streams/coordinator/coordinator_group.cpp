// Groups of tasks (coordinator.h): who belongs to one, what it is planned for, and whose turn each of its slots is.
#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/core/streams/coordinator/coordinator.h"

namespace leat::core::streams {
namespace {

constexpr std::uint32_t kSlotsAhead = 6;    // that the program looks at
constexpr std::uint32_t kPrograms = 32;     // of a tick, for all users; later slots go to who loses most by then
constexpr std::uint32_t kNeverAsked = 900;  // frames; older than anything

}  // namespace

// False: its group is full, or there is no room for a new lead.
bool Coordinator::join(TimeNs now, std::uint32_t task) noexcept {
  const CoordinatedStream& spec = streams_[task].spec;
  const auto same_lead = [&](const Stream& s) {
    return s.tasks > 0 && s.user == streams_[task].user && s.spec.group == spec.group;
  };
  std::uint32_t any = 0, lead = kNone, tasks = 0;
  while (any < streams_.size() && !same_lead(streams_[any])) ++any;
  const bool is_first = any == streams_.size();
  if (!is_first) {
    each_lead(any, [&](std::uint32_t id) {
      tasks += streams_[id].tasks;
      if (streams_[id].spec.module == spec.module) lead = id;
    });
  }
  if (tasks == kGroupTasks) return false;
  if (lead == kNone) {
    if ((lead = make(now, spec)) == kNone) return false;
    streams_[lead].turn = is_first ? ++groups_.turns : streams_[any].turn;
    streams_[lead].sibling = is_first ? lead : std::exchange(streams_[any].sibling, lead);
    roster_.waiting.push_back(lead);
  }
  Stream& g = streams_[lead];
  g.task[g.tasks++] = task;
  streams_[task].lead = lead;
  sum_up(lead);
  return true;
}

void Coordinator::part(std::uint32_t task) noexcept {
  Stream& t = streams_[task];
  Stream& g = streams_[t.lead];
  static_cast<void>(std::remove(g.task.begin(), g.task.begin() + g.tasks, task));
  if (--g.tasks > 0) {
    sum_up(t.lead);
  } else {
    std::uint32_t before = t.lead;
    while (streams_[before].sibling != t.lead) before = streams_[before].sibling;
    streams_[before].sibling = g.sibling;
    leave(t.lead, Standing::none);
  }
  release(t);
  t.lead = kNone;
}

// With constant slopes r and shares p of slots that come every L frames, a task loses r L / (2 p) in the mean; the
// weighted sum is least where p goes with sqrt(w r), and then it is that of one stream with the slope below.
void Coordinator::sum_up(std::uint32_t lead) noexcept {
  Stream& g = streams_[lead];
  double weights = 0, sla = 0, slopes = 0, planned = 0, priority = 0, share = 0, local = 0;
  const Stream* quickest = nullptr;
  for (std::uint32_t i = 0; i < g.tasks; ++i) {
    const Stream& t = streams_[g.task[i]];
    if (quickest == nullptr || t.spec.pace.period_ns < quickest->spec.pace.period_ns) quickest = &t;
  }
  for (std::uint32_t i = 0; i < g.tasks; ++i) {
    const Stream& t = streams_[g.task[i]];
    const double w = t.spec.task_weight;
    const double of_lead =
        static_cast<double>(quickest->spec.pace.period_ns) / static_cast<double>(t.spec.pace.period_ns);
    weights += w;
    local += w * t.spec.local;
    sla += w * t.spec.sla_drop;
    slopes += std::sqrt(w * t.estimator.slope() * of_lead);
    planned += std::sqrt(w * t.estimator.slope() / (1 - margin_of(t)) * of_lead);
    priority += t.spec.weight;
    share += t.spec.max_share;
  }
  g.spec.sla_drop = sla / weights;
  g.spec.weight = priority / g.tasks;
  g.spec.max_share = std::min(1.0, share);
  g.spec.pace.period_ns = quickest->spec.pace.period_ns;
  g.phase_ns = quickest->phase_ns;
  g.slope = slopes * slopes / weights;
  g.left = 1 - slopes * slopes / (planned * planned);
  g.task_weights = weights;
  g.locally = local / weights;
}

// Among the leads of its group, which also go by one weight.
void Coordinator::share_sla(std::uint32_t lead) noexcept {
  std::array<SlaPart, kGroupTasks> parts;
  std::uint32_t n = 0, tasks = 0;
  double budget = 0, priority = 0;
  each_lead(lead, [&](std::uint32_t id) {
    const Stream& g = streams_[id];
    const std::uint32_t batch =
        times_.common_batch[g.spec.module][g.partition == kNone ? times_.first[g.spec.module] : g.partition];
    parts[n++] = {.weight = g.task_weights,
                  .slope = g.slope / (1 - g.left),
                  .cost = static_cast<double>(runs(g)[batch - 1]) / batch / static_cast<double>(g.spec.pace.period_ns),
                  .local = g.locally};
    budget += g.task_weights * g.spec.sla_drop;
    priority += g.tasks * g.spec.weight;
    tasks += g.tasks;
  });
  const auto drops = streams::share_sla(std::span(parts).first(n), budget);
  n = 0;
  each_lead(lead, [&](std::uint32_t id) {
    streams_[id].sla_drop = drops[n++];
    streams_[id].spec.weight = priority / tasks;
  });
}

// Frames, in the mean of this plan: slots come early where that fills batches.
std::uint32_t Coordinator::slots_apart(const Stream& lead) noexcept {
  const double frames = lead.slots < 2 ? lead.setting.interval
                                       : static_cast<double>(lead.last_slot_ns - lead.first_slot_ns) /
                                             static_cast<double>(lead.spec.pace.period_ns) / (lead.slots - 1);
  return static_cast<std::uint32_t>(std::clamp(std::round(frames), 1.0, kGroupHorizon / 2.0));
}

// Whose turn the slot at `at` is.
std::uint32_t Coordinator::next_task(const Stream& lead, TimeNs at, bool by_program) noexcept {
  std::array<GroupTask, kGroupTasks> tasks;
  const auto period = static_cast<double>(lead.spec.pace.period_ns);
  const std::uint32_t apart = slots_apart(lead);
  std::uint32_t max = 0;
  for (std::uint32_t i = 0; i < lead.tasks; ++i) {
    const Stream& t = streams_[lead.task[i]];
    const double age = t.asked_ns == INT64_MIN ? kNeverAsked : static_cast<double>(at - t.asked_ns) / period;
    tasks[i] = {.slope = t.asking.slope(t.estimator.slope()) * period / static_cast<double>(t.spec.pace.period_ns),
                .local = t.spec.local,
                .weight = t.spec.task_weight,
                .latency = apart,
                .age = static_cast<std::uint32_t>(std::clamp(age, 0.0, static_cast<double>(kNeverAsked)))};
    if (loss_now(tasks[i], curve_) > loss_now(tasks[max], curve_)) max = i;
  }
  if (by_program)
    max = groups_.program.next(std::span(tasks).first(lead.tasks), std::min(kGroupHorizon, kSlotsAhead * apart));
  return lead.task[max];
}

// What was planned for groups goes to their tasks. What was kept of the plan before went to them then.
void Coordinator::hand_out() noexcept {
  for (const std::uint32_t id : roster_.in) {
    Stream& g = streams_[id];
    g.slots = 0;
    for (std::uint32_t i = 0; i < g.tasks; ++i) streams_[g.task[i]].asked_ns = streams_[g.task[i]].sent_ns;
  }
  const auto users = static_cast<std::uint32_t>(std::ranges::count_if(users_, &User::here));
  const std::uint32_t max = std::max(1u, kPrograms / std::max(1u, users));
  for (std::size_t i = kept_.batches.size(); i < planned_.batches.size(); ++i) {
    const PlannedBatch& b = planned_.batches[i];
    for (const std::uint32_t id : members(b)) {
      Stream& g = streams_[id];
      if (g.tasks == 0 || (g.slots > 0 && g.last_slot_ns == b.start_ns)) continue;
      if (g.slots++ == 0) g.first_slot_ns = b.start_ns;
      g.last_slot_ns = b.start_ns;
    }
  }
  for (std::size_t i = kept_.batches.size(); i < planned_.batches.size(); ++i) {
    const PlannedBatch& b = planned_.batches[i];
    std::uint32_t lead = kNone, task = kNone;
    for (std::uint32_t m = b.first; m < b.first + b.count; ++m) {
      const std::uint32_t id = planned_.members[m];
      if (streams_[id].tasks == 0) continue;
      if (id != lead)
        task = next_task(streams_[lead = id], b.start_ns, user_of(streams_[id]).programs++ < max);  // else of a probe
      planned_.members[m] = task;
      streams_[task].asked_ns = b.start_ns;
    }
  }
}

}  // namespace leat::core::streams
