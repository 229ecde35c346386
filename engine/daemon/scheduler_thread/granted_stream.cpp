#include "engine/daemon/scheduler_thread/granted_stream.h"

namespace leat::daemon {

std::uint64_t group_of(const shm::StreamSettings& o, std::uint64_t session) noexcept {
  return o.task_group == 0 ? 0 : (session + 1) << 32 | o.task_group;
}

core::StreamConfig config_of(const GrantedStream& s) noexcept {
  const shm::StreamSettings& o = s.settings;
  core::StreamConfig out;
  out.application = s.application;
  out.slo_ns = o.slo_ns;
  out.max_age_ns = o.max_age_ns;
  out.period_ns = o.period_ns;
  out.depth = o.depth;
  out.supersede = static_cast<core::Supersede>(o.overload);
  out.priority = static_cast<core::Priority>(o.priority);
  out.waits_for_grants = o.waits_for_grants != 0;
  out.user = s.owner.user;
  out.user_weight = s.owner.share_permille;
  out.terms = {.sla_drop = 1e-6 * o.sla_drop_ppm,
               .period_ns = o.period_ns,
               .weight = 1e-3 * s.owner.share_permille,
               .max_share = s.owner.coordinated_share,
               .group = group_of(o, s.owner.session),
               .task_weight = o.task_weight == 0 ? 1 : 1e-3 * o.task_weight,
               .local = o.local_drop_ppm == 0 ? 1 : 1e-6 * o.local_drop_ppm};
  return out;
}

}  // namespace leat::daemon
