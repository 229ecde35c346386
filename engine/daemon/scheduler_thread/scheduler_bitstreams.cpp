// Bitstreams: an access unit goes to every worker that may be given its frame as soon as it is submitted, whatever the
// core makes of the frame, since later pictures refer to it. Its slot is held until they have read it.
#include "engine/daemon/scheduler_thread/scheduler_loop.h"

namespace leat::daemon {

void SchedulerLoop::decode(std::uint32_t s, const shm::Taken& taken) noexcept {
  Stream& stream = streams_[s];
  const bool gap = taken.gap || stream.missed;
  stream.missed = false;
  const auto& takes_frames = plans_.in_force->takes_frames;
  if (stream.granted.application >= takes_frames.size()) return;
  for (const std::uint32_t p : takes_frames[stream.granted.application]) {
    Partition& partition = partitions_[p];
    if (partition.port == nullptr || partition.broken) continue;  // the next worker begins with a key picture anyway
    AccessUnits& units = partition.units;
    worker::DispatchCell cell;
    cell.kind = worker::CellKind::access_unit;
    cell.count = 1;
    cell.pool = stream.granted.pool;
    cell.pool_generation = stream.granted.pool_generation;
    cell.slot = taken.slot;
    cell.item = static_cast<std::uint32_t>(taken.bytes);
    cell.items = gap ? 2 : 1;
    if (units.count == worker::kMaxAccessUnits || !partition.port->push({&cell, 1})) {
      stream.missed = true;
      continue;
    }
    partition.dirty = true;
    units.all[(units.first + units.count++) % worker::kMaxAccessUnits] = {s, taken.slot};
    clients_[stream.client].port->hold(stream.index, taken.slot);
  }
}

// False: it was sent no such many.
bool SchedulerLoop::decoded(Partition& partition, std::uint32_t count) noexcept {
  AccessUnits& units = partition.units;
  if (count > units.count) return false;
  for (std::uint32_t i = 0; i < count; ++i) {
    const AccessUnits::Unit& unit = units.all[units.first];
    units.first = (units.first + 1) % worker::kMaxAccessUnits;
    --units.count;
    const Stream& stream = streams_[unit.stream];
    clients_[stream.client].port->unhold(stream.index, unit.slot);
    clients_[stream.client].dirty = true;  // an answer kept back until now may have become visible
  }
  return true;
}

}  // namespace leat::daemon
