// Batches: formed when a partition can take one, started, moved from stage to stage, ended, lost.
#include <algorithm>
#include <bit>

#include "engine/core/state.h"

namespace leat::core {

// Looks at whatever became free or got tasks since the last event, until nothing more can start. Called once at the end of
// each event, so that a whole upstream batch has arrived before a partition chooses.
void Scheduler::State::pump() noexcept {
  for (;;) {
    if (!dirty_lanes.empty()) {
      const LaneId id = dirty_lanes.back();
      dirty_lanes.pop_back();
      Lane& lane = lanes[id];
      lane.dirty = false;
      if (reservations != nullptr) {
        reserve_lane(id);
        continue;
      }
      for (ServerId s = preferred(lane); s != kNone && (lane.tasks > 0 || lane.forming.tasks > 0); s = preferred(lane)) {
        if (serve(servers[s].partition)) continue;
        if (lane.mixed || (policy.look_ahead && !periodic.empty())) offer_others(lane, s);
        break;
      }
      if (policy.form_ahead && lane.tasks > 0) collect_ahead(lane);
    } else if (!dirty_partitions.empty()) {
      const PartitionId id = dirty_partitions.back();
      dirty_partitions.pop_back();
      partitions[id].dirty = false;
      if (reservations != nullptr) {
        send_due(id);
        continue;
      }
      while (serve(id)) {
      }
    } else {
      return;
    }
  }
}

// `refused` leaves its partition idle, perhaps on purpose: another idle one may see it otherwise.
void Scheduler::State::offer_others(const Lane& lane, ServerId refused) noexcept {
  for (ServerId s = lane.first_server; s < lane.first_server + lane.servers && lane.tasks > 0; ++s) {
    const Partition& p = partitions[servers[s].partition];
    if (s != refused && p.up && p.held <= policy.queue_ahead) (void)serve(servers[s].partition);
  }
}

// Starts one batch on the partition, from the most urgent of the lanes it serves. False: nothing (more) to start.
bool Scheduler::State::serve(PartitionId id) noexcept {
  const Partition& p = partitions[id];
  if (!p.up || p.held > policy.queue_ahead || batches.left() == 0) return false;
  if (policy.look_ahead && !periodic.empty()) {
    const Turn turn = serve_periodic(id);
    if (turn != Turn::not_shared) return turn == Turn::started;
  }
  if (p.servers.size() == 1) return try_server(p.servers.front());
  struct Rank {
    std::uint32_t priority;
    TimeNs deadline;
    ServerId server;
    bool operator>(const Rank& o) const {
      return priority != o.priority ? priority > o.priority : deadline != o.deadline ? deadline < o.deadline : server < o.server;
    }
  };
  // In order of rank without sorting: each round takes the best below the one before. A partition serves few lanes.
  Rank last{UINT32_MAX, INT64_MIN, 0};
  for (;;) {
    Rank best{0, kNever, kNone};
    for (ServerId s : p.servers) {
      const Lane& lane = lanes[servers[s].lane];
      Rank rank{0, now, s};
      if (lane.classes != 0) {
        const auto top = static_cast<std::uint32_t>(std::bit_width(lane.classes) - 1);
        rank.priority = rank_of(static_cast<std::uint8_t>(top));
        rank.deadline = tasks[lane.queue[top].front()].deadline_ns;
      } else if (lane.forming.tasks == 0) {
        continue;
      }
      if (last > rank && (best.server == kNone || rank > best)) best = rank;
    }
    if (best.server == kNone) return false;
    if (try_server(best.server)) return true;
    last = best;
  }
}

bool Scheduler::State::try_server(ServerId id) noexcept {
  const Server& server = servers[id];
  Lane& lane = lanes[server.lane];
  if (lane.tasks == 0 && lane.forming.tasks == 0) return false;
  const TimeNs start = std::max(now, partitions[server.partition].held > 0 ? partitions[server.partition].free_ns : now);
  if (policy.ramp) ramp(modules[lane.module].application);
  const std::uint32_t target = batch_target(lane, server, start);
  if (target == 0) return false;
  if (policy.forecast) modules[lane.module].after_ns = forecast(lane.module, target, start - now + modules[lane.module].paced(server.run_ns[std::min(target, cap_of(server))]));
  if (lane.mixed || (policy.fit && lane.items > lane.tasks)) {  // unequal partitions, or unequal requests
    form_fitting(lane, server, start, target);
  } else {
    form(lane, server, start, policy.shrink_permille < 1000 ? shrink(lane, server, start, target) : target);
  }
  if (lane.forming.tasks == 0) return false;
  launch(server.lane, server, start);
  if (policy.form_ahead && lane.tasks > 0) collect_ahead(lane);
  return true;
}

// PARD, figure 3b: while a batch runs, its worker already takes requests into the next one.
void Scheduler::State::collect_ahead(Lane& lane) noexcept {
  const Server& server = servers[lane.first_server];
  const Partition& p = partitions[server.partition];
  if (!p.up || p.held == 0 || lane.forming.items >= server.cap) return;
  form(lane, server, std::max(now, p.free_ns), server.cap);
}

void Scheduler::State::launch(LaneId lane_id, const Server& server, TimeNs start) noexcept {
  Lane& lane = lanes[lane_id];
  const std::uint32_t id = batches.take();
  insist(id != kNone, "a batch is sent without a free slot");
  Batch& b = batches[id];
  b.state = BatchState::live;
  b.route = server.route;
  b.lane = lane_id;
  b.stage = 0;
  b.list = lane.forming;
  b.sent_ns = now;
  b.start_ns = b.started_ns = start;
  b.priority = 0;
  lane.forming = TaskList{};
  choose_path(b, server.partition);
  if (policy.place == Place::tc && lane.items == 0 && b.list.items < server.cap) {
    lane.block_left = 0;  // sent short of its size: the next task begins another batch
    lane.next_start_ns = partitions[server.partition].free_ns;
  }
  ModuleCounters& mc = counters.modules[lane.module];
  ModuleState& m = modules[lane.module];
  const TimeNs run = server.run_ns[std::min(b.list.items, topology.routes[b.route].batch)];
  m.queue_delay.roll(now);
  for (TaskId t = b.list.first; t != kNone; t = tasks[t].next_in_batch) {
    Task& task = tasks[t];
    task.state = TaskState::placed;
    task.batch = id;
    Request& r = requests[task.request];
    ++r.placed;
    r.started = true;
    b.priority = std::max(b.priority, task.priority);
    const TimeNs queued = task.taken_ns - task.queued_ns;
    mc.queue_ns_sum += static_cast<std::uint64_t>(queued);
    m.queue_delay.add(queued);
    if (!samples.empty()) leave({.module = lane.module, .at_ns = now, .queue_ns = queued, .wait_ns = start - task.taken_ns, .run_ns = run});
  }
  if (b.priority == 0) spend_background(run);
  b.forecast = true;
  ++m.running;
  m.running_items += b.list.items;
  m.running_end_sum += b.expected_end_ns;
  ++mc.batches;
  mc.items += b.list.items;
  ++counters.partitions[server.partition].batches;
  ++partitions[server.partition].held;
  ++counters.partitions[server.partition].running;
  partitions[server.partition].promised_ns = start + server.safe_ns[std::min(b.list.items, topology.routes[b.route].batch)] * margin_permille / 1000;
  set_idle(server.partition);
  Action a;
  a.kind = ActionKind::dispatch;
  a.batch = {id, batches.generation(id)};
  push(a);
}

void Scheduler::State::leave(const Sample& sample) noexcept {
  samples[(sample_first + sample_count) % samples.size()] = sample;
  if (sample_count < samples.size()) {
    ++sample_count;
  } else {
    sample_first = (sample_first + 1) % samples.size();
  }
}

void Scheduler::State::stage_started(BatchHandle handle, std::uint32_t stage) noexcept {
  if (!batches.valid(handle.index, handle.generation) || batches[handle.index].stage != stage) {
    ++counters.stale_events;
    return;
  }
  Batch& b = batches[handle.index];
  b.started_ns = now;
  const TimeNs late = now + topology.routes[b.route].stages[stage].latency.p50_ns[b.list.items - 1] - b.stage_end_ns;
  b.stage_end_ns += late;
  b.expected_end_ns += late;
  if (b.forecast) modules[lanes[b.lane].module].running_end_sum += late;
  Partition& p = partitions[b.path[stage]];
  p.free_ns = std::max(p.free_ns, b.stage_end_ns);  // feedback: reality is later than planned
}

bool Scheduler::State::stage_finished(BatchHandle handle, std::uint32_t stage, std::span<const TaskResult> results) noexcept {
  if (!batches.valid(handle.index, handle.generation) || batches[handle.index].stage != stage) {
    ++counters.stale_events;
    return false;
  }
  Batch& b = batches[handle.index];
  const PartitionId at = b.path[stage];
  Partition& p = partitions[at];
  insist(p.held > 0, "a partition ends a batch it does not hold");
  --p.held;
  --counters.partitions[at].running;
  if (p.held == 0) p.free_ns = now;
  const TimeNs ran = std::max<TimeNs>(0, now - b.started_ns);
  counters.partitions[at].busy_ns += static_cast<std::uint64_t>(ran);
  counters.modules[lanes[b.lane].module].busy_ns += static_cast<std::uint64_t>(ran);
  learn(b, ran);
  set_idle(at);
  mark_partition(at);
  if (b.state == BatchState::condemned) {
    give_back(handle.index);
    return false;
  }
  const RouteSpec& route = topology.routes[b.route];
  if (stage + 1 == route.stages.size()) {
    finish_tasks(handle.index, results);
    return false;
  }
  if (reservations != nullptr) {
    pass_on(handle.index);
    return false;
  }
  const PartitionId next = b.path[stage + 1];
  if (!partitions[next].up) {
    give_back(handle.index);
    return false;
  }
  ++b.stage;
  ++partitions[next].held;
  ++counters.partitions[next].running;
  ++counters.partitions[next].batches;
  const TimeNs moved = transfer_ns(b, b.stage);
  b.started_ns = now + moved;
  b.stage_end_ns = now + moved + route.stages[b.stage].latency.p50_ns[b.list.items - 1];
  partitions[next].free_ns = std::max(partitions[next].free_ns, b.stage_end_ns);
  set_idle(next);
  return true;
}

void Scheduler::State::finish_tasks(std::uint32_t id, std::span<const TaskResult> results) noexcept {
  Batch& b = batches[id];
  const ModuleId module = lanes[b.lane].module;
  std::size_t i = 0;
  for (TaskId t = b.list.first; t != kNone; ++i) {
    const TaskId next = tasks[t].next_in_batch;
    const std::uint32_t request = tasks[t].request;
    TaskResult result{};
    if (i < results.size()) {
      result = results[i];
    } else if (!results.empty()) {
      result = {.ok = false, .reason = Reason::model_error, .fan_out = 0};
    }
    Request& r = requests[request];
    --r.placed;
    release(t);
    ++counters.modules[module].tasks_run;
    if (r.doom == Outcome::pending && result.ok) {
      Progress& p = progress(request, module);
      p.made += result.fan_out;
      if (--p.tasks_left == 0) {
        const std::uint32_t generation = requests.generation(request);
        complete_module(request, module, true);
        if (requests.valid(request, generation)) settle(request);
      }
    } else if (r.doom == Outcome::pending) {
      drop_request(request, Outcome::failed, result.reason, module);
    } else {
      settle(request);
    }
    t = next;
  }
  free_batch(id);
}

void Scheduler::State::free_batch(std::uint32_t id) noexcept {
  if (batches[id].booking != kNone) close_booking(batches[id].booking);
  batches[id].booking = kNone;
  if (batches[id].forecast) {
    ModuleState& m = modules[lanes[batches[id].lane].module];
    --m.running;
    m.running_items -= batches[id].list.items;
    m.running_end_sum -= batches[id].expected_end_ns;
    batches[id].forecast = false;
  }
  batches[id].state = BatchState::free;
  batches[id].list = TaskList{};
  if (batches.left() == 0) {  // whoever waited for a slot
    for (LaneId l = 0; l < lanes.size(); ++l) {
      if (lanes[l].tasks > 0) mark(l);
    }
  }
  batches.give(id);
}

void Scheduler::State::give_back(std::uint32_t id) noexcept {
  const TaskList list = batches[id].list;
  const ModuleId module = lanes[batches[id].lane].module;
  const ModuleState& m = modules[module];
  for (TaskId t = list.first; t != kNone;) {
    const TaskId next = tasks[t].next_in_batch;
    Task& task = tasks[t];
    const std::uint32_t request = task.request;
    --requests[request].placed;
    if (reservations != nullptr) {
      unbook(t, 0);
      reservations->itineraries[t] = Itinerary{};
    }
    const bool slack = task.give_up_ns == kNever || now + m.least_ns + m.after_least_ns <= task.give_up_ns;
    if (requests[request].doom == Outcome::pending && task.retries < kMaxRetries && slack) {
      ++task.retries;
      ++counters.retries;
      task.batch = kNone;
      enqueue(t);
    } else {
      task.state = TaskState::placed;
      release(t);
      if (requests[request].doom == Outcome::pending) {
        drop_request(request, Outcome::failed, Reason::partition_lost, module);
      } else {
        settle(request);
      }
    }
    t = next;
  }
  free_batch(id);
}

void Scheduler::State::partition_lost(PartitionId id) noexcept {
  if (id >= partitions.size() || !partitions[id].up) {
    ++counters.stale_events;
    return;
  }
  Partition& p = partitions[id];
  p.up = false;
  p.held = 0;
  p.free_ns = now;
  ++counters.partitions[id].lost;
  counters.partitions[id].up = false;
  counters.partitions[id].running = 0;
  set_idle(id);
  for (std::uint32_t b = 0; b < batches.size(); ++b) {
    if (batches[b].state == BatchState::free) continue;
    const std::size_t stages = topology.routes[batches[b].route].stages.size();
    if (batches[b].path[batches[b].stage] == id) {
      give_back(b);
    } else if (reservations == nullptr && std::find(batches[b].path.begin() + batches[b].stage, batches[b].path.begin() + static_cast<std::ptrdiff_t>(stages), id) !=
               batches[b].path.begin() + static_cast<std::ptrdiff_t>(stages)) {
      batches[b].state = BatchState::condemned;  // another partition still works on it: its end must be proven first
    }
  }
  if (reservations != nullptr) unbook_partition(id);
  if (policy.binding == Binding::late) return;
  for (ServerId s : p.servers) {  // what was bound to it goes elsewhere
    Lane& lane = lanes[servers[s].lane];
    for (TaskId t = lane.forming.first; t != kNone; t = lane.forming.first) {
      lane.forming.first = tasks[t].next_in_batch;
      tasks[t].batch = kNone;
      enqueue(t);
    }
    lane.forming = TaskList{};
    for (std::uint32_t n = lane.tasks; n > 0; --n) {
      const auto top = static_cast<std::size_t>(std::bit_width(lane.classes) - 1);
      const TaskId t = lane.arrivals[top].front();
      dequeue(t);
      enqueue(t);
    }
  }
}

void Scheduler::State::partition_ready(PartitionId id) noexcept {
  if (id >= partitions.size() || partitions[id].up) {
    ++counters.stale_events;
    return;
  }
  partitions[id].up = true;
  partitions[id].held = 0;
  partitions[id].free_ns = now;
  counters.partitions[id].up = true;
  set_idle(id);
  mark_partition(id);
  if (reservations == nullptr) return;
  for (LaneId lane = 0; lane < lanes.size(); ++lane) mark(lane);  // later stages have no servers of their own
}

}  // namespace leat::core
