#include "engine/daemon/clients/stream_rules.h"

#include <algorithm>

#include "tools/base/text/units.h"

namespace leat::daemon {
namespace {

using shm::Refusal;

constexpr const char* kPriorities[] = {"background", "normal", "high", "protected"};
constexpr const char* kRules[] = {"fifo", "latest", "latest_per_key", "never_drop"};

// Of a `latest` stream's slots: one is written, one waits. Beside them stand as many as run at once, where its camera
// takes a picture every 33 ms unless it says otherwise; where one runs for less than half of that, the slot that ran is
// there again, its answer read, before the next is needed.
constexpr std::int64_t kSlotsBeside = 2, kUsualPeriodNs = 33'000'000;

std::string text_of(const leat_tensor_shape& t) {
  std::string out = "[";
  for (std::uint32_t d = 0; d < t.rank; ++d) out += (d == 0 ? "" : ", ") + std::to_string(t.dims[d]);
  return out + "] " + leat_dtype_name(t.dtype);
}

}  // namespace

std::uint32_t slots_for(const shm::OpenStream& asked, const ServedApplication& application) {
  if (asked.settings.overload != LEAT_OVERLOAD_latest || asked.settings.sla_drop_ppm != 0) return asked.pool.slots;
  const std::int64_t period_ns = asked.settings.period_ns > 0 ? asked.settings.period_ns : kUsualPeriodNs;
  const std::int64_t running = 1 + 2 * application.need_ns / period_ns;
  return static_cast<std::uint32_t>(std::min<std::int64_t>(asked.pool.slots, kSlotsBeside + running));
}

std::string problem_of_tensors(const shm::PoolSpec& pool, const std::vector<leat_tensor_shape>& wanted) {
  if (wanted.empty() != (pool.format != LEAT_FORMAT_tensors))
    return wanted.empty() ? "takes pictures, not tensors"
                          : "takes tensors, not pictures; open the stream with the format 'tensors'";
  std::string shapes;
  for (const auto& w : wanted) shapes += (shapes.empty() ? "" : ", ") + text_of(w);
  bool same = pool.tensor_count == wanted.size();
  for (std::uint32_t i = 0; same && i < pool.tensor_count; ++i) {
    const leat_tensor_shape &given = pool.tensors[i], &w = wanted[i];
    const std::uint32_t skip = given.rank == w.rank + 1 && given.dims[0] == 1 ? 1 : 0;
    same =
        given.dtype == w.dtype && given.rank == w.rank + skip && std::equal(w.dims, w.dims + w.rank, given.dims + skip);
  }
  return same ? std::string() : "takes other tensors: " + shapes;
}

std::string problem_of_codec(const shm::PoolSpec& pool, const ServedApplication& application) {
  if (!pool.bitstream()) return {};
  const auto lacks =
      std::ranges::find_if(application.decodes, [&](const auto& d) { return (d.codecs >> pool.codec & 1u) == 0; });
  if (lacks == application.decodes.end()) return {};
  static constexpr const char* kNames[] = {"",
#define X(name, value, format, text) #name,
                                           LEAT_CODECS(X)
#undef X
  };
  return "runs on partition '" + lacks->partition + "', which decodes no " + kNames[pool.codec] +
         "; open the stream with pixels, or serve the application on GPUs that decode it alone";
}

Objection objection_to_settings(const std::string& who, const UserLimits& limits, const shm::StreamSettings& o,
                                const ServedApplication& application) {
  const std::string user = "user " + who + " may ";
  if (o.priority > limits.priority)
    return {LEAT_ERROR_not_permitted, Refusal::priority,
            user + "ask for priority '" + kPriorities[limits.priority] + "' at most, not '" + kPriorities[o.priority] +
                "'; ask for less, or raise priority in [limits.user]"};
  if ((limits.overload_set >> o.overload & 1u) == 0)
    return {LEAT_ERROR_not_permitted, Refusal::overload,
            user + "not use the overload rule '" + kRules[o.overload] +
                "'; use another, or add it to overload in [limits.user]"};
  if (o.sla_drop_ppm != 0 && limits.coordinated_share <= 0)
    return {LEAT_ERROR_not_permitted, Refusal::accuracy,
            user +
                "have no coordinated streams; open it without an accuracy, or raise coordinated_share in "
                "[limits.user]"};
  const std::int64_t slo_ns = o.slo_ns > 0 ? o.slo_ns : application.slo_ns;
  const std::int64_t asked_ns = o.max_age_ns > 0 ? std::min(slo_ns, o.max_age_ns) : slo_ns;
  if (const std::int64_t least_ns = limits.min_slo_of(application.slo_ns); asked_ns < least_ns)
    return {LEAT_ERROR_not_permitted, Refusal::slo,
            user + "ask '" + application.name + "' for an SLO of " + text::exact_time_text(least_ns + 499) +
                " at least, not " + text::exact_time_text(std::max<std::int64_t>(0, asked_ns - 499)) +
                "; ask for more, or lower min_slo_ms in [limits.user]"};
  return {};
}

}  // namespace leat::daemon
