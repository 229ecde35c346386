#include "shm/src/protocol/stream_settings.h"

#include "shm/src/segments/segment_layout.h"

namespace leat::shm {
namespace {

constexpr std::uint32_t kDefaultDepth = 4;
constexpr std::uint32_t kMaxDropPpm = 500'000;
constexpr std::uint32_t kMaxTaskWeight = 1'000'000;  // thousandths
constexpr std::int64_t kMinCameraNs = 4'000'000, kMaxCameraNs = 2'000'000'000;

}  // namespace

StreamSettings settings_of(const leat_stream_options& o) noexcept {
  return {.depth = o.depth != 0 ? o.depth : kDefaultDepth,
          .overload = o.overload,
          .priority = o.priority,
          .sla_drop_ppm = o.sla_drop_ppm,
          .slo_ns = o.slo_ns,
          .max_age_ns = o.max_age_ns,
          .period_ns = o.period_ns,
          .task_group = o.task_group,
          .task_weight = o.task_weight,
          .local_drop_ppm = o.local_drop_ppm,
          .waits_for_grants = o.waits_for_grants,
          .color_range = o.color_range,
          .color_matrix = o.color_matrix};
}

const char* problem(const StreamSettings& o) noexcept {
  if (o.waits_for_grants > 1) return "open_stream: waits_for_grants is 0 or 1";
  if (o.waits_for_grants != 0 && o.sla_drop_ppm != 0)
    return "open_stream: a coordinated stream is told when a frame is wanted anyway; leave out waits_for_grants";
  if (!color_known(o.color_range, o.color_matrix)) return "open_stream: unknown color_range or color_matrix";
  if (o.depth == 0 || o.depth > kMaxDepth) return "open_stream: depth must be 1..64";
  if (o.overload > LEAT_OVERLOAD_never_drop) return "open_stream: unknown overload rule";
  if (o.priority > LEAT_PRIORITY_PROTECTED) return "open_stream: unknown priority";
  if (!span_ok(o.slo_ns) || !span_ok(o.max_age_ns) || !span_ok(o.period_ns))
    return "open_stream: slo, max_age and period must be 0 to one day";
  if (o.sla_drop_ppm > kMaxDropPpm) return "open_stream: an accuracy of over 0.5 can be spared by nobody";
  if (o.sla_drop_ppm != 0 && (o.period_ns < kMinCameraNs || o.period_ns > kMaxCameraNs))
    return "open_stream: a coordinated stream needs its camera's period, 4 ms to 2 s";
  if (o.sla_drop_ppm == 0 && (o.task_group != 0 || o.task_weight != 0 || o.local_drop_ppm != 0))
    return "open_stream: only coordinated streams are tasks of a group; give sla_drop_ppm too";
  if (o.task_weight > kMaxTaskWeight || o.local_drop_ppm > 1'000'000)
    return "open_stream: a task's weight is 1000000 thousandths at most, its local algorithm loses 1000000 millionths "
           "at most";
  return nullptr;
}

}  // namespace leat::shm
