// The client library's part in coordinated streams: reads the schedule, reports what tracking lost.
#include <algorithm>
#include <cmath>

#include "leat/leat.h"
#include "shm/src/client/client_errors.h"
#include "shm/src/client/client_state.h"

using namespace leat::shm;

namespace {

leat_error report(const char* function, leat_stream* stream, uint32_t stride, double drop, double expected,
                  uint32_t how) {
  const std::string name = function;
  if (stream == nullptr || stream->schedule == nullptr)
    return fail(LEAT_ERROR_invalid_argument, name + ": the stream was not opened with sla_drop_ppm");
  if (stride == 0 || stride > 255 || !(drop >= 0 && drop <= 1))
    return fail(LEAT_ERROR_invalid_argument, name + ": stride must be 1..255 and drop 0..1");
  if (how == 0) stream->clock.answered();
  leat_client* c = stream->client;
  // Frames and cancels come first: a report that finds the ring half full is left out.
  if (c->submissions.room(kSubmissionRing / 2) < kSubmissionRing / 2) return fail_static(LEAT_ERROR_ring_full);
  SubmissionDescriptor d;
  d.kind = SubmissionKind::observe;
  d.stream = static_cast<std::uint16_t>(stream->index);
  d.key = stride | how;
  d.items = static_cast<std::uint32_t>(std::lround(drop * 1e6));
  if (expected >= 0) d.generation = 1 + static_cast<std::uint32_t>(std::lround(std::min(expected, 1.0) * 1e6));
  d.deadline_ns = stream->clock.period_ns();
  if (!c->submissions.push(d)) return fail_static(LEAT_ERROR_ring_full);
  return LEAT_ERROR_ok;
}

}  // namespace

int leat_should_submit(leat_stream* stream, int64_t capture_ns) {
  return leat_should_submit_expecting(stream, capture_ns, -1);
}

int leat_should_submit_expecting(leat_stream* stream, int64_t capture_ns, double expected) {
  if (stream->waits_for_grants) return stream->grants.wanted(capture_ns) ? 1 : 0;
  if (stream->schedule == nullptr) return 1;
  return stream->clock.wanted(*stream->schedule, capture_ns, expected) ? 1 : 0;
}

leat_error leat_observe(leat_stream* stream, uint32_t stride, double drop) {
  return report("leat_observe", stream, stride, drop, -1, 0);
}

leat_error leat_observe_expecting(leat_stream* stream, uint32_t stride, double drop, double expected) {
  return report("leat_observe_expecting", stream, stride, drop, expected, 0);
}

leat_error leat_observe_far(leat_stream* stream, uint32_t stride, double drop) {
  return report("leat_observe_far", stream, stride, drop, -1, kObserveFar);
}

leat_error leat_schedule_of(leat_stream* stream, leat_schedule* out) {
  if (stream == nullptr || out == nullptr)
    return fail(LEAT_ERROR_invalid_argument, "leat_schedule_of: an argument is missing");
  *out = {};
  if (stream->waits_for_grants) {
    const Schedule& s = stream->grants.refresh();
    out->standing = s.standing;
    out->granted = s.granted;
    return LEAT_ERROR_ok;
  }
  if (stream->schedule == nullptr) return LEAT_ERROR_ok;
  const Schedule& s = stream->clock.refresh(*stream->schedule);
  out->standing = s.standing;
  out->interval = s.interval;
  out->evictions = s.evictions;
  out->sla_drop = s.sla_ppm / 1e6;
  out->planned_drop = s.planned_ppm / 1e6;
  out->measured_drop = s.measured_ppm / 1e6;
  out->local_above = s.local_above_ppm / 1e6;
  out->next_ns = s.count > 0 ? static_cast<int64_t>(s.frames[0]) : 0;
  return LEAT_ERROR_ok;
}
