// Coordinated streams on the scheduler thread: what the core has planned goes to the client's page, what the client
// reports goes to the core. Both are a copy of a few hundred bytes; the plan itself is made within
// Scheduler::advance().
#include <algorithm>
#include <cmath>

#include "engine/daemon/scheduler_thread/scheduler_loop.h"
#include "leat/leat.h"

namespace leat::daemon {
namespace {

using core::streams::Standing;
using shm::StreamCounter;

static_assert(shm::kScheduleFrames == core::kScheduledFrames);
static_assert(static_cast<int>(Standing::none) == LEAT_STANDING_NONE &&
              static_cast<int>(Standing::waiting) == LEAT_STANDING_WAITING &&
              static_cast<int>(Standing::admitted) == LEAT_STANDING_ADMITTED &&
              static_cast<int>(Standing::silent) == LEAT_STANDING_SILENT);

std::uint32_t ppm(double share) noexcept {
  return static_cast<std::uint32_t>(std::lround(std::min(std::max(share, 0.0), 1.0) * 1e6));
}

std::uint32_t microseconds(core::TimeNs ns) noexcept {
  return static_cast<std::uint32_t>(std::clamp<core::TimeNs>(ns / 1000, 1, UINT32_MAX));
}

}  // namespace

void SchedulerLoop::tell_schedule(core::StreamId id, std::int64_t now) noexcept {
  const std::uint32_t s = streams_.of_core[id];
  if (s == core::kNone || !streams_[s].open || streams_[s].closing) return;
  if (streams_[s].granted.settings.waits_for_grants != 0) return tell_turn(s, now);
  const Stream& stream = streams_[s];
  const core::StreamSchedule plan = core_->schedule(id);
  shm::Schedule told;
  told.standing = static_cast<std::uint32_t>(plan.view.standing);
  told.interval = plan.view.standing == Standing::admitted
                      ? static_cast<std::uint32_t>(std::lround(plan.view.setting.interval))
                      : 0;
  told.count = plan.count;
  told.evictions = plan.view.evictions;
  told.sla_ppm = stream.granted.settings.sla_drop_ppm;
  told.planned_ppm = ppm(plan.view.planned_drop);
  told.measured_ppm = ppm(plan.view.measured_drop);
  for (std::uint32_t i = 0; i < plan.count; ++i) {
    const core::ScheduledFrame& f = plan.frames[i];
    told.frames[i] = (static_cast<std::uint64_t>(f.at_ns) & ~std::uint64_t{1}) | (f.probe ? 1 : 0);
  }
  if (const core::streams::Asks& asks = plan.view.asks; asks.latest_ns > 0) {
    told.ask_above_ppm = ppm(asks.above);
    told.ask_earliest_us = microseconds(asks.earliest_ns);
    told.ask_latest_us = microseconds(asks.latest_ns);
    told.ask_refill_us = microseconds(asks.refill_ns);
    told.ask_bucket = static_cast<std::uint32_t>(std::lround(100 * asks.bucket));
  }
  told.local_above_ppm = ppm(plan.view.local_above);
  clients_[stream.client].port->schedule(stream.index, told);
  shm::Record record = metrics_.of(shm::RecordKind::stream, stream.granted.pool);
  record.set(StreamCounter::standing, told.standing);
  record.set(StreamCounter::interval, told.interval);
  record.set(StreamCounter::sla_drop_ppm, told.sla_ppm);
  record.set(StreamCounter::planned_drop_ppm, told.planned_ppm);
  record.set(StreamCounter::measured_drop_ppm, told.measured_ppm);
  record.set(StreamCounter::evictions, told.evictions);
  record.set(StreamCounter::margin_ppm, ppm(plan.view.margin));
  if (stream.granted.settings.task_group != 0)
    record.set(StreamCounter::task_group, stream.granted.settings.task_group);
}

// Everything in it is the client's word: the core checks what it takes, and takes no more than it has answered.
void SchedulerLoop::observe(const Stream& stream, const shm::Taken& taken, std::int64_t now) noexcept {
  if (ending_.draining || stream.closing) return;
  const bool used = core_->observe(now, stream.core,
                                   {.stride = taken.key & ~shm::kObserveFar,
                                    .drop = 1e-6 * taken.items,
                                    .period_ns = taken.deadline_ns,
                                    .far = (taken.key & shm::kObserveFar) != 0,
                                    .expected = taken.generation > 0 ? 1e-6 * (taken.generation - 1) : -1});
  metrics_.of(shm::RecordKind::stream, stream.granted.pool)
      .add(used ? StreamCounter::observations : StreamCounter::observations_ignored);
}

}  // namespace leat::daemon
