// Streams that wait for grants, on the scheduler thread: whose turn it is goes to the client's page, and what the
// client says of its pictures to the core.
#include <algorithm>

#include "engine/daemon/scheduler_thread/scheduler_loop.h"
#include "leat/leat.h"

namespace leat::daemon {
namespace {

using shm::StreamCounter;

constexpr std::int64_t kOfferNs = 100'000;  // no camera takes pictures faster: more are not believed

}  // namespace

void SchedulerLoop::tell_turn(std::uint32_t s, std::int64_t now) noexcept {
  Stream& stream = streams_[s];
  const core::StreamSchedule schedule = core_->schedule(stream.core);
  shm::Schedule told;
  told.standing = schedule.open ? LEAT_STANDING_OPEN : LEAT_STANDING_TURNS;
  told.granted = static_cast<std::uint32_t>(schedule.granted);
  Client& client = clients_[stream.client];
  client.port->schedule(stream.index, told);
  // The ring is that of answers, at the end of the turn: at most one, and only if the client sleeps.
  if (client.port->awaits_turn(stream.index)) {
    client.port->urge();
    client.dirty = true;
  }
  shm::Record record = metrics_.of(shm::RecordKind::stream, stream.granted.pool);
  record.set(StreamCounter::standing, told.standing);
  record.set(StreamCounter::granted, schedule.granted);
  metrics_.total().set(StreamCounter::granted, core_->counters().total.granted);
  count_offers(stream, now);
}

// The client's count is its word. It goes up only, and no faster than anybody could mean.
void SchedulerLoop::count_offers(Stream& stream, std::int64_t now) noexcept {
  const std::uint64_t said = clients_[stream.client].port->offered(stream.index);
  if (said <= stream.offered) return;
  const auto most = static_cast<std::uint64_t>((now - stream.offered_ns) / kOfferNs) + 1;
  const std::uint64_t more = std::min(said - stream.offered, most);
  stream.offered += more;
  stream.offered_ns = now;
  metrics_.of(shm::RecordKind::stream, stream.granted.pool).set(StreamCounter::offered, stream.offered);
  metrics_.total().add(StreamCounter::offered, more);
}

std::optional<core::TimeNs> SchedulerLoop::picture_ns(core::StreamId id) const noexcept {
  const std::uint32_t s = streams_.of_core[id];
  if (s == core::kNone || !streams_[s].open || streams_[s].closing) return std::nullopt;
  const shm::ClientPort& port = *clients_[streams_[s].client].port;
  if (!port.offers(streams_[s].index)) return std::nullopt;
  return port.newest_ns(streams_[s].index);
}

}  // namespace leat::daemon
