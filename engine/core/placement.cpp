// Where work goes. Early binding: place() picks a task's lane on arrival. Late binding: preferred() picks among the idle
// partitions of a lane, whose servers stand in order of preference; choose_path() picks the partitions of later stages.
//
// Reservations (reservation.cpp) take the place of both.
#include <algorithm>

#include "engine/core/state.h"

namespace leat::core {
namespace {

std::uint64_t next_random(std::uint64_t& state) {
  state += 0x9E3779B97F4A7C15u;
  std::uint64_t x = state;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace

LaneId Scheduler::State::place(ModuleId module, const Task& task) noexcept {
  ModuleState& m = modules[module];
  const auto up = [&](LaneId l) { return partitions[servers[lanes[l].first_server].partition].up; };
  const auto run = [&](LaneId l) {
    const Server& s = servers[lanes[l].first_server];
    return s.run_ns[std::min(task.items, topology.routes[s.route].batch)];
  };
  // ELSA eq. 1: T_wait = run time of what is queued there + what remains of the batches it holds.
  const auto wait = [&](LaneId l) {
    return lanes[l].queued_run_ns + std::max<TimeNs>(0, partitions[servers[lanes[l].first_server].partition].free_ns - now);
  };
  LaneId best = kNone;
  TimeNs least = kNever;
  switch (policy.place) {
    case Place::elsa: {
      const TimeNs left = task.deadline_ns - now;
      for (LaneId l = m.first_lane; l < m.first_lane + m.lanes; ++l) {  // ascending size
        if (!up(l) || task.items > topology.routes[servers[lanes[l].first_server].route].batch) continue;
        const TimeNs w = wait(l), d = run(l);
        // Algorithm 2, step A with eq. 2: slack = SLA - alpha (T_wait + beta T_new) > 0; step B: the fastest.
        const TimeNs need = policy.alpha_permille * (w + policy.beta_permille * d / 1000) / 1000;
        if (left > need) return l;
        if (w + d < least) {
          least = w + d;
          best = l;
        }
      }
      break;
    }
    case Place::tc:
      return next_by_window(module, task);
    case Place::rr:
      return next_in_turn(module, task);
    case Place::random: {
      std::uint32_t n = 0;
      for (LaneId l = m.first_lane; l < m.first_lane + m.lanes; ++l) {
        if (up(l) && next_random(random) % ++n == 0) best = l;
      }
      break;
    }
    case Place::fifs:
    case Place::least_wait:
    case Place::reservation:
      for (LaneId l = m.first_lane; l < m.first_lane + m.lanes; ++l) {
        if (!up(l)) continue;
        const TimeNs w = wait(l);
        if (w < least) {
          least = w;
          best = l;
        }
      }
      break;
  }
  return best != kNone ? best : m.first_lane;  // nobody is up: it waits there until somebody is, or expires
}

ServerId Scheduler::State::preferred(const Lane& lane) noexcept {
  if (policy.place != Place::random) return idle_server(lane);
  ServerId best = kNone;
  std::uint32_t n = 0;
  for (ServerId s = lane.first_server; s < lane.first_server + lane.servers; ++s) {
    const Partition& p = partitions[servers[s].partition];
    if (p.up && p.held <= policy.queue_ahead && next_random(random) % ++n == 0) best = s;
  }
  return best;
}

// Later stages: of each pool the partition that is expected to be free first.
void Scheduler::State::choose_path(Batch& batch, PartitionId first) noexcept {
  const RouteSpec& route = topology.routes[batch.route];
  const std::size_t size = std::min<std::size_t>(batch.list.items, route.batch) - 1;
  TimeNs end = 0;
  for (std::size_t k = 0; k < route.stages.size(); ++k) {
    const StageSpec& stage = route.stages[k];
    PartitionId best = k == 0 ? first : kNone;
    for (std::size_t i = 0; k > 0 && i < stage.pool.size(); ++i) {
      const PartitionId p = stage.pool[i];
      if (partitions[p].up && (best == kNone || partitions[p].free_ns < partitions[best].free_ns)) best = p;
    }
    if (best == kNone) best = stage.pool.front();  // none is up: the batch comes back when it gets there
    batch.path[k] = best;
    end = std::max(k == 0 ? batch.start_ns : end + transfer_ns(batch, k), partitions[best].free_ns) + stage.latency.p50_ns[size];
    if (k == 0) batch.stage_end_ns = end;
    partitions[best].free_ns = end;
  }
  batch.expected_end_ns = end;
}

// From stage k - 1 to stage k; both links of a host are as fast as its slower end.
TimeNs Scheduler::State::transfer_ns(const Batch& batch, std::size_t k) const noexcept {
  const RouteSpec& route = topology.routes[batch.route];
  const std::int64_t bytes = route.stages[k - 1].transfer_bytes * batch.list.items;
  if (bytes == 0 || topology.hosts.empty()) return 0;
  return link_ns(bytes, batch.path[k - 1], batch.path[k]);
}

TimeNs Scheduler::State::link_ns(std::int64_t bytes, PartitionId from, PartitionId to) const noexcept {
  const std::uint32_t a = topology.partitions[from].host, b = topology.partitions[to].host;
  if (a == b || topology.hosts.empty()) return 0;
  double slow = 0;
  for (double speed : {topology.hosts[a].up_bytes_per_ns, topology.hosts[b].down_bytes_per_ns}) {
    if (speed > 0 && (slow == 0 || speed < slow)) slow = speed;
  }
  return slow > 0 ? static_cast<TimeNs>(static_cast<double>(bytes) / slow) : 0;
}

}  // namespace leat::core
