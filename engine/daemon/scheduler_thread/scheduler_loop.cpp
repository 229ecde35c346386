#include "engine/daemon/scheduler_thread/scheduler_loop.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>

#include "engine/daemon/scheduler_thread/goes_first.h"
#include "shm/src/rings/clock.h"
#include "tools/base/cores/cores.h"

namespace leat::daemon {
namespace {

using shm::DaemonCounter;
using shm::EventKind;
using shm::RecordKind;

// Descriptors looked at, worth something or not: of one client, and of all together, so that a turn stays short however
// many clients hurry. Who came last in one turn comes first in the next.
constexpr std::uint32_t kLooksPerClient = 64;
constexpr std::uint32_t kLooksPerTurn = 256;
constexpr std::uint32_t kCommandsPerTurn = 8;  // a client that comes or goes costs two system calls
constexpr std::uint32_t kClosesPerTurn = 2;    // of streams: each may drop what all its slots hold

}  // namespace

Result<std::unique_ptr<SchedulerLoop>> SchedulerLoop::create(const core::Topology& topology, const core::Policy& policy,
                                                             LoopOptions options, Metrics& metrics,
                                                             const shm::Doorbell& events_bell, shm::Doorbell bell) {
  std::unique_ptr<SchedulerLoop> loop(
      new SchedulerLoop(topology, policy, std::move(options), metrics, events_bell, std::move(bell)));
  if (auto status = loop->open_poll(); !status) return Error{status.error()};
  return loop;
}

SchedulerLoop::SchedulerLoop(const core::Topology& topology, const core::Policy& policy, LoopOptions options,
                             Metrics& metrics, const shm::Doorbell& events_bell, shm::Doorbell bell)
    : core_(std::make_unique<record::RecordedCore>(topology, policy, options.limits, options.plan.names)),
      options_(std::move(options)),
      metrics_(metrics),
      control_(events_bell, std::move(bell)),
      streams_(options_.limits.streams),
      clients_(options_.clients),
      batches_(options_.limits.batches),
      partitions_(std::max<std::size_t>(topology.partitions.size(), options_.limits.partitions)),
      features_(kMaxEdges, options_.limits.tasks),
      row_bytes_(kMaxEdges),
      meter_(metrics) {
  plans_.awaited.reserve(2 * std::size_t{shm::kMaxRecords[static_cast<std::size_t>(RecordKind::partition)]});
  auto first = std::make_unique<LoopPlan>();
  first->tables = std::move(options_.plan);
  for (const auto& [edge, spec] : first->tables.edges) first->new_rows.emplace_back(edge, shm::FeatureRows(spec));
  take_over(*first);
  plans_.held[0] = std::move(first);
  for (auto& c : clients_.all) c.stream.fill(core::kNone);
  if (options_.measures_tasks ||
      std::ranges::any_of(plans_.in_force->sizes, [](const auto& m) { return !m.sizes.empty(); }))
    core_->measure_tasks(*this);
  core_->watch_offers(*this);
  core_->record(options_.record, shm::monotonic_ns());
}

SchedulerLoop::~SchedulerLoop() = default;

// ---- the loop ----

void SchedulerLoop::run() {
  if (!options_.cores.empty()) (void)pin_thread(options_.cores);
  take_short_slices();
  if (options_.ahead) go_first();
  shm::Waiter waiter(options_.wait);
  shm::Record daemon = metrics_.daemon();
  std::int64_t now = shm::monotonic_ns();
  meter_.begin(now);
  while (!ending_.stopped) {
    const bool worked = turn(now) != 0;
    const std::int64_t end = shm::monotonic_ns();
    meter_.turned(now, end, worked);
    now = end;
    if (worked) {
      waiter.reset();
      continue;
    }
    if (waiter.should_park(!core_->idle())) {
      daemon.add(DaemonCounter::parks);
      park();
      waiter.reset();
    }
    now = shm::monotonic_ns();  // it has yielded or slept
  }
  core_->record(nullptr, now);
}

std::uint32_t SchedulerLoop::turn(std::int64_t now) noexcept {
  std::uint32_t done = take_commands(now);
  done += take_reports(now);
  done += take_submissions(now);
  if (core_->next_timer() <= now) {
    core_->advance(now);
    drain_actions(now);
    ++done;
  }
  if (next_look_ns_ <= now) done += look_for_hung(now);
  if (plans_.next != nullptr || plans_.earlier != 0) swap_plans(now);
  if (!plans_.awaited.empty()) tell_quiet();
  if (ending_.closing != 0) done += close_ended(now);
  if (done != 0) {
    flush(now);
    if (options_.samples) control_.pass_samples(*core_, now);
  }
  control_.end_turn();
  return done;
}

void SchedulerLoop::flush(std::int64_t now) noexcept {
  std::uint64_t wakes = 0;
  const auto& modules = core_->counters().modules;
  for (std::uint32_t m = 0; m < plans_.in_force->modules; ++m) {
    shm::Record module = metrics_.of(RecordKind::module, m);
    module.set(shm::ModuleCounter::queued, modules[m].queued);
    module.set(shm::ModuleCounter::left_out, modules[m].left_out);
    module.set(shm::ModuleCounter::arrived, modules[m].tasks);
    module.set(shm::ModuleCounter::items, modules[m].items);
    module.set(shm::ModuleCounter::queue_ns, modules[m].queue_ns_sum);
    module.set(shm::ModuleCounter::busy_ns, modules[m].busy_ns);
    module.set(shm::ModuleCounter::oldest_ns,
               modules[m].queued == 0 ? 0 : static_cast<std::uint64_t>(core_->oldest_queued_ns(m)));
  }
  for (const auto& [e, spec] : plans_.in_force->edges)
    metrics_.of(RecordKind::edge, e).set(shm::EdgeCounter::slots_in_use, features_.in_use(e));
  for (auto& p : std::span(partitions_.data(), used_partitions_)) {
    if (!p.dirty) continue;
    p.dirty = false;
    if (p.port == nullptr || p.broken) continue;
    wakes += p.port->flush();
    if (p.port->slow()) give_up(static_cast<std::uint32_t>(&p - partitions_.data()));
  }
  for (const auto c : clients_.live) {
    Client& client = clients_[c];
    if (!client.dirty) continue;
    client.dirty = false;
    if (client.port->wants_ring()) wakes += wake(c);
    tell_violation(c, now);  // found while answering: a torn slot word, an impossible index
    metrics_.of(RecordKind::client, c).set(shm::ClientCounter::completions, client.completions);
  }
  shm::Record daemon = metrics_.daemon();
  if (wakes != 0) daemon.add(DaemonCounter::wakes_sent, wakes);
  const core::Counters& counted = core_->counters();
  daemon.set(DaemonCounter::retries, counted.retries);
  daemon.set(DaemonCounter::idled_on_purpose, counted.idled_on_purpose);
  daemon.set(DaemonCounter::left_undecided, counted.left_undecided);
  daemon.set(DaemonCounter::stale_events, counted.stale_events);
}

// ---- submissions ----

std::uint32_t SchedulerLoop::take_submissions(std::int64_t now) noexcept {
  std::uint32_t looked = 0;
  const auto all = static_cast<std::uint32_t>(clients_.live.size());
  if (clients_.next >= all) clients_.next = 0;
  for (std::uint32_t i = 0; i < all && looked < kLooksPerTurn; ++i) {
    const std::uint32_t c = clients_.live[clients_.next];
    clients_.next = clients_.next + 1 < all ? clients_.next + 1 : 0;
    if (!clients_[c].leaving && clients_[c].port->has_submissions())
      looked += drain_port(c, std::min(kLooksPerClient, kLooksPerTurn - looked), now);
  }
  return looked;
}

std::uint32_t SchedulerLoop::drain_port(std::uint32_t index, std::uint32_t most, std::int64_t now) noexcept {
  Client& client = clients_[index];
  std::array<shm::Taken, kLooksPerClient> taken;
  std::uint32_t looked = 0;
  const std::uint32_t count = client.port->take(now, std::span(taken.data(), most), &looked);
  for (std::uint32_t i = 0; i < count; ++i) submit(client, taken[i], now);
  if (count != 0)
    metrics_.of(RecordKind::client, index).set(shm::ClientCounter::submissions, client.submissions += count);
  if (count < looked && client.port->violation() == shm::Violation::none)
    metrics_.of(RecordKind::client, index).set(shm::ClientCounter::late_cancels, client.late_cancels += looked - count);
  tell_violation(index, now);
  return looked;
}

// Once: the control thread ends the connection and counts the cause.
void SchedulerLoop::tell_violation(std::uint32_t index, std::int64_t now) noexcept {
  Client& client = clients_[index];
  const shm::Violation cause = client.port->violation();
  if (cause == shm::Violation::none || client.told) return;
  client.told = true;
  happened(EventKind::violation, now, 0, index, static_cast<std::uint64_t>(cause));
  control_.notify({.kind = SchedulerEvent::Kind::client_violated, .client = index, .violation = cause});
}

void SchedulerLoop::submit(Client& client, const shm::Taken& taken, std::int64_t now) noexcept {
  const std::uint32_t s = client.stream[taken.stream];
  Stream& stream = streams_[s];
  Slot& slot = stream.slots[taken.slot];
  const std::uint64_t token = std::uint64_t{s} << kSlotBits | taken.slot;
  if (taken.kind == shm::SubmissionKind::observe) return observe(stream, taken, now);
  if (taken.kind == shm::SubmissionKind::cancel) {
    metrics_.event(EventKind::cancelled, now, stream.granted.pool, token);
    core_->cancel(now, slot.handle);
    drain_actions(now);
    return;
  }
  const std::int64_t latest = taken.capture_ns + stream.granted.slo_ns;
  slot = {.submitted_ns = now,
          .capture_ns = taken.capture_ns,
          .deadline_ns = taken.deadline_ns == 0 ? latest : std::min(taken.deadline_ns, latest),
          .color = shm::color_or(taken.color, stream.granted.settings.color())};
  metrics_.submitted(stream.granted.pool, stream.granted.owner.record, taken.bytes, now - taken.capture_ns);
  if (taken.damaged) metrics_.damaged(stream.granted.pool);
  if (slot.color != stream.color) note_color(stream, slot.color);
  metrics_.event(EventKind::submitted, now, stream.granted.pool, token, taken.slot);
  if (client.refused || stream.closing || stream.unserved) {  // closing: the core's stream may be another's by now
    core::Action refused;
    refused.token = token;
    refused.outcome = Outcome::rejected;
    refused.reason = stream.closing ? Reason::stream_closed : Reason::not_ready;
    answer(refused, now);
    return;
  }
  if (stream.slots_of->spec().bitstream()) decode(s, taken);
  core::Submission submission;
  submission.stream = stream.core;
  submission.token = token;
  submission.capture_ns = taken.capture_ns;
  submission.deadline_ns = taken.deadline_ns;
  submission.items = taken.items;
  submission.key = taken.key;
  submission.branch_draw = record::branch_draw(token, taken.capture_ns);  // decides branches taken by chance
  slot.handle = core_->submit(now, submission);
  drain_actions(now);
  if (stream.granted.settings.waits_for_grants != 0) count_offers(stream, now);
}

void SchedulerLoop::note_color(Stream& stream, shm::Color color) noexcept {
  const shm::PoolSpec& frames = stream.slots_of->spec();
  stream.color = color;
  metrics_.of(RecordKind::stream, stream.granted.pool)
      .set(shm::StreamCounter::color,
           to_counter(shm::color_fact_of(color, frames.format, frames.height, frames.bitstream())));
}

// A frame's own size is its stream's; a detection's is read where the worker that found it wrote it, which its report
// made visible (shm/src/rings/ring.h).
std::uint32_t SchedulerLoop::units(std::uint64_t token, core::ModuleId module, std::uint32_t item) const noexcept {
  const ModuleSizes& sizes = plans_.in_force->sizes[module];
  if (sizes.sizes.empty()) return 1;
  const Stream& stream = streams_[token >> kSlotBits];
  const shm::PoolSpec& frames = stream.slots_of->spec();
  const auto slot = static_cast<std::uint32_t>(token & ((1u << kSlotBits) - 1));
  const std::uint64_t room = std::max<std::uint64_t>(frames.result_bytes, sizeof(leat_result));
  return sizes.units_of(frames.width, frames.height, stream.slots_of->result(slot), room, item);
}

void SchedulerLoop::happened(EventKind kind, std::int64_t now, std::uint64_t token, std::uint64_t a,
                             std::uint64_t b) noexcept {
  metrics_.event(kind, now, UINT32_MAX, token, a, b);
  core_->note(now, {.kind = static_cast<std::uint32_t>(kind), .token = token, .a = a, .b = b});
}

// ---- actions ----

void SchedulerLoop::drain_actions(std::int64_t now) noexcept {
  core::Action action;
  while (core_->next_action(action)) {
    if (action.kind == core::ActionKind::dispatch)
      dispatch(action, now);
    else if (action.kind == core::ActionKind::answer)
      answer(action, now);
    else if (action.kind == core::ActionKind::schedule)
      tell_schedule(action.stream, now);
    // A transfer moves nothing here: features are made where the next stage reads them (feature_slots.h), whatever time
    // the plan gives their way.
  }
}

void SchedulerLoop::answer(const core::Action& action, std::int64_t now) noexcept {
  const auto s = static_cast<std::uint32_t>(action.token >> kSlotBits);
  const auto index = static_cast<std::uint32_t>(action.token & ((1u << kSlotBits) - 1));
  Stream& stream = streams_[s];
  Slot& slot = stream.slots[index];
  slot.answered = true;
  features_.forget(slot.features);
  Client& client = clients_[stream.client];
  shm::PortAnswer out;
  out.stream = stream.index;
  out.slot = index;
  out.outcome = action.outcome;
  out.reason = action.reason;
  out.has_result = action.outcome == Outcome::completed || action.outcome == Outcome::late;
  const shm::PoolSpec& frames = stream.slots_of->spec();
  out.color = frames.bitstream() ? slot.color : shm::color_of(slot.color, {}, frames.format, frames.height);
  if (action.where != core::kNone) out.where = action.where - plans_.in_force->first_of[action.where];
  out.deadline_ns = slot.deadline_ns;
  out.answered_ns = now;
  out.dispatched_ns = slot.dispatched_ns;
  client.port->answer(out);
  client.dirty = true;
  ++client.completions;
  metrics_.answered(stream.granted.pool, stream.granted.owner.record, action.outcome, action.reason,
                    now - slot.capture_ns, now);
  if (action.outcome == Outcome::late) metrics_.answered_late(stream.granted.application);
  metrics_.within_share(stream.granted.pool, core_->counters().streams[stream.core].within_share,
                        core_->counters().total.within_share);
  metrics_.event(EventKind::answered, now, stream.granted.pool, action.token,
                 static_cast<std::uint64_t>(action.outcome), static_cast<std::uint64_t>(action.reason),
                 static_cast<std::uint64_t>(now - slot.capture_ns));
  if (action.where != core::kNone) {
    shm::Record module = metrics_.of(RecordKind::module, action.where);
    if (action.outcome == Outcome::dropped) module.add(shm::ModuleCounter::dropped);
    if (action.outcome == Outcome::failed) module.add(shm::ModuleCounter::failed);
    if (action.reason != Reason::none) module.cause(action.reason);
  }
}

// ---- commands ----

std::uint32_t SchedulerLoop::take_commands(std::int64_t now) noexcept {
  std::uint32_t done = 0, closes = 0;
  Command command;
  while (done < kCommandsPerTurn && closes < kClosesPerTurn && control_.next_command(command)) {
    handle(command, now);
    ++done;
    closes += command.kind == Command::Kind::close_stream;
  }
  return done;
}

void SchedulerLoop::handle(const Command& command, std::int64_t now) noexcept {
  switch (command.kind) {
    case Command::Kind::add_client:
      return add_client(command, now);
    case Command::Kind::remove_client:
      return remove_client(command.client, now);
    case Command::Kind::open_stream:
      return open_stream(command, now);
    case Command::Kind::close_stream:
      return close_stream(clients_[command.client].stream[command.stream], Reason::stream_closed, now);
    case Command::Kind::worker_ready:
      return add_worker(command, now);
    case Command::Kind::worker_lost:
      return worker_lost(command.partition, command.pid, now);
    case Command::Kind::worker_failed:
      return happened(EventKind::worker_failed, now, 0, command.partition, command.what);
    case Command::Kind::user_refused:
      return happened(EventKind::refused, now, 0, command.client, command.what);
    case Command::Kind::features_lost:
      return features_.spoil(command.edge);
    case Command::Kind::set_estimates:
      core_->set_estimates(now, *command.estimates);
      control_.estimates_came(now);
      return drain_actions(now);
    case Command::Kind::replace_plan:
      return take_plan(command.plan);
    case Command::Kind::record:
      core_->record(command.ring, now);
      return control_.notify({.kind = SchedulerEvent::Kind::record_left});
    case Command::Kind::await_quiet:
      return plans_.awaited.push_back({.partition = command.partition, .application = command.application});
    case Command::Kind::give_up:
      core_->give_up(now, command.application, Reason::not_ready);
      return drain_actions(now);
    case Command::Kind::bell_back:
      return take_bell_back(command.client);
    case Command::Kind::look:
      return;
    case Command::Kind::drain:
      ending_.draining = true;
      ++ending_.closing;  // close_ended() tells when nothing is in flight any more
      for (const auto c : clients_.live) clients_[c].drain_mark = clients_[c].port->mark();
      return;
    case Command::Kind::stop:
      ending_.stopped = true;
      return;
  }
}

void SchedulerLoop::add_client(const Command& command, std::int64_t now) noexcept {
  Client& client = clients_[command.client];
  client = {};
  client.stream.fill(core::kNone);
  client.port = command.port;
  clients_.live.push_back(command.client);
  happened(EventKind::client_connected, now, static_cast<std::uint64_t>(command.pid), command.client, command.uid);
  client.apart = command.apart;
  client.refused = ending_.draining;
  if (!client.apart) watch_bell(command.client);
}

void SchedulerLoop::take_bell_back(std::uint32_t index) noexcept {
  Client& client = clients_[index];
  if (client.port == nullptr || client.leaving || !client.apart) return;
  client.apart = false;
  watch_bell(index);
}

void SchedulerLoop::add_worker(const Command& command, std::int64_t now) noexcept {
  used_partitions_ = std::max(used_partitions_, command.partition + 1);
  partitions_[command.partition] = {};
  partitions_[command.partition].port = command.worker;
  watch_worker(command.partition);
  happened(EventKind::worker_ready, now, static_cast<std::uint64_t>(command.pid), command.partition);
  core_->partition_ready(now, command.partition);
  drain_actions(now);
}

void SchedulerLoop::open_stream(const Command& command, std::int64_t now) noexcept {
  Client& client = clients_[command.client];
  GrantedStream granted = command.granted;  // asked for before another plan came, perhaps
  granted.application = heir_of(granted.application);
  const auto free = std::ranges::find(streams_.all, false, &Stream::open);
  const core::StreamId core_stream =
      free == streams_.all.end() ? core::kNone : core_->open_stream(now, config_of(granted));
  drain_actions(now);
  if (core_stream == core::kNone)
    return control_.notify({.kind = SchedulerEvent::Kind::stream_refused,
                            .client = command.client,
                            .stream = command.stream,
                            .pool = command.pool});
  const auto s = static_cast<std::uint32_t>(free - streams_.all.begin());
  free->open = true;
  free->closing = false;
  free->unserved = closed(granted.application);
  free->client = command.client;
  free->index = command.stream;
  free->core = core_stream;
  free->granted = granted;
  free->missed = false;
  free->offered = 0;
  free->offered_ns = now;
  streams_.of_core[core_stream] = s;
  free->slots_of = command.pool;
  free->color = free->granted.settings.color();
  client.stream[command.stream] = s;
  streams_.open.push_back(s);
  // The control thread has checked the limits attach() looks at.
  (void)client.port->attach(command.stream, std::unique_ptr<shm::StreamPool>(command.pool));
  if (free->granted.settings.waits_for_grants != 0) tell_turn(s, now);
  metrics_.event(EventKind::stream_opened, now, free->granted.pool, 0, command.client);
  control_.notify({.kind = SchedulerEvent::Kind::stream_opened, .client = command.client, .stream = command.stream});
}

void SchedulerLoop::close_stream(std::uint32_t s, Reason reason, std::int64_t now) noexcept {
  if (s == core::kNone || !streams_[s].open || streams_[s].closing) return;
  streams_[s].closing = true;
  streams_[s].mark = clients_[streams_[s].client].port->mark();
  ++ending_.closing;
  core_->close_stream(now, streams_[s].core, reason);
  streams_.of_core[streams_[s].core] = core::kNone;
  drain_actions(now);
}

void SchedulerLoop::remove_client(std::uint32_t index, std::int64_t now) noexcept {
  Client& client = clients_[index];
  unwatch_bell(client);
  client.leaving = true;
  client.port->orphan();
  ++ending_.closing;
  happened(EventKind::client_gone, now, 0, index);
}

void SchedulerLoop::worker_lost(std::uint32_t p, std::int64_t pid, std::int64_t now) noexcept {
  Partition& partition = partitions_[p];
  // What it finished before it died is finished.
  std::array<worker::ReportCell, worker::kReportRing> cells;
  const std::uint32_t count = partition.port == nullptr || partition.broken ? 0 : partition.port->take(cells);
  for (std::uint32_t i = 0; i < count && !partition.broken; ++i) partition.broken = !report(p, cells[i], now);
  for (auto& batch : batches_)  // also one that could not be pushed
    if (batch.live && batch.partition() == p) release(batch);
  let_sequel_go(partition);
  (void)decoded(partition, partition.units.count);
  unwatch_worker(p);
  partition = {};
  partitions_[p].last_ended_ns = 0;
  metrics_.of(RecordKind::partition, p).set(shm::PartitionCounter::queued, 0);
  metrics_.of(RecordKind::partition, p).set(shm::PartitionCounter::running_since_ns, 0);
  happened(EventKind::worker_lost, now, static_cast<std::uint64_t>(pid), p);
  const bool excused = core_->partition_lost(now, p);
  drain_actions(now);
  control_.notify({.kind = SchedulerEvent::Kind::worker_released, .partition = p, .excused = excused});
}

std::uint32_t SchedulerLoop::close_ended(std::int64_t now) noexcept {
  const std::uint32_t closed = close_streams_of_leaving(now);
  end_closed_streams(now);
  end_left_clients();
  if (ending_.draining && !ending_.drained_told && drained()) {
    ending_.drained_told = true;
    --ending_.closing;
    control_.notify({.kind = SchedulerEvent::Kind::drained});
  }
  return closed;
}

// What clients had submitted before the drain began is served, however much of it still lay in their rings.
bool SchedulerLoop::drained() noexcept {
  bool all_taken = true;
  for (const auto c : clients_.live) {
    Client& client = clients_[c];
    client.refused = client.refused || client.leaving || client.port->passed(client.drain_mark);
    all_taken = all_taken && client.refused;
  }
  return all_taken && core_->idle() && metrics_.in_flight() == 0;
}

std::uint32_t SchedulerLoop::close_streams_of_leaving(std::int64_t now) noexcept {
  std::uint32_t closed = 0;
  for (const auto s : streams_.open) {
    if (closed == kClosesPerTurn) break;
    if (streams_[s].closing || !clients_[streams_[s].client].leaving) continue;
    close_stream(s, Reason::client_gone, now);
    ++closed;
  }
  return closed;
}

// Those whose frames are all answered, and whose client can have submitted no more.
void SchedulerLoop::end_closed_streams(std::int64_t now) noexcept {
  for (std::size_t i = 0; i < streams_.open.size();) {
    Stream& stream = streams_[streams_.open[i]];
    Client& client = clients_[stream.client];
    if (!stream.closing || client.port->busy(stream.index) != 0 || !client.port->passed(stream.mark)) {
      ++i;
      continue;
    }
    shm::StreamPool* pool = client.port->detach(stream.index).release();
    client.stream[stream.index] = core::kNone;
    stream.open = false;
    --ending_.closing;
    streams_.open[i] = streams_.open.back();
    streams_.open.pop_back();
    metrics_.event(EventKind::stream_closed, now, stream.granted.pool, 0);
    control_.notify(
        {.kind = SchedulerEvent::Kind::stream_closed, .client = stream.client, .stream = stream.index, .pool = pool});
  }
}

void SchedulerLoop::end_left_clients() noexcept {
  for (std::size_t i = 0; i < clients_.live.size();) {
    Client& client = clients_[clients_.live[i]];
    const bool empty = std::ranges::all_of(client.stream, [](auto s) { return s == core::kNone; });
    if (!client.leaving || !empty || !client.port->drained()) {
      ++i;
      continue;
    }
    --ending_.closing;
    client.port = nullptr;
    control_.notify({.kind = SchedulerEvent::Kind::client_drained, .client = clients_.live[i]});
    clients_.live[i] = clients_.live.back();
    clients_.live.pop_back();
  }
}

}  // namespace leat::daemon
