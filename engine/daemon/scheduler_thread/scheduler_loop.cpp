#include "engine/daemon/scheduler_thread/scheduler_loop.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>

#include "engine/daemon/scheduler_thread/goes_first.h"
#include "engine/worker/link/affinity.h"
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
constexpr std::uint32_t kSampleBlocksPerTurn = 16;
constexpr std::int64_t kEstimatesNs = 1'000'000'000;  // PARD's period

}  // namespace

Result<std::unique_ptr<SchedulerLoop>> SchedulerLoop::create(const core::Topology& topology, const core::Policy& policy,
                                                             LoopOptions options, CountersBoard& board,
                                                             const shm::Doorbell& notices_bell, shm::Doorbell bell) {
  std::unique_ptr<SchedulerLoop> loop(new SchedulerLoop(topology, policy, std::move(options), board, notices_bell));
  loop->bell_ = std::move(bell);
  if (auto status = loop->open_poll(); !status) return Error{status.error()};
  return loop;
}

SchedulerLoop::SchedulerLoop(const core::Topology& topology, const core::Policy& policy, LoopOptions options,
                             CountersBoard& board, const shm::Doorbell& notices_bell)
    : core_(std::make_unique<core::Scheduler>(topology, policy, options.limits)),
      options_(std::move(options)),
      board_(board),
      notices_bell_(notices_bell),
      streams_(options_.limits.streams),
      stream_of_core_(options_.limits.streams, core::kNone),
      clients_(options_.clients),
      batches_(options_.limits.batches),
      partitions_(topology.partitions.size()),
      features_(options_.edges, options_.limits.tasks),
      meter_(board) {
  for (auto& c : clients_) c.stream.fill(core::kNone);
  if (std::any_of(options_.sizes.begin(), options_.sizes.end(), [](const auto& m) { return !m.sizes.empty(); }))
    core_->measure_tasks(*this);
  open_streams_.reserve(streams_.size());
  live_clients_.reserve(clients_.size());
}

SchedulerLoop::~SchedulerLoop() = default;

// ---- the loop ----

void SchedulerLoop::run() {
  if (!options_.cores.empty()) (void)pin_thread(options_.cores);
  take_short_slices();
  if (options_.ahead) go_first();
  shm::Waiter waiter(options_.wait);
  shm::Record daemon = board_.daemon();
  std::int64_t now = shm::monotonic_ns();
  meter_.begin(now);
  while (!stopped_) {
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
  if (next_plan_ != nullptr || earlier_plans_ != 0) swap_plans(now);
  if (closing_ != 0) done += settle(now);
  if (done != 0) {
    flush(now);
    if (options_.samples) pass_samples(now);
  }
  if (noticed_) {
    noticed_ = false;
    notices_bell_.ring();
  }
  return done;
}

void SchedulerLoop::flush(std::int64_t now) noexcept {
  std::uint64_t wakes = 0;
  const auto& modules = core_->counters().modules;
  for (std::uint32_t m = 0; m < modules.size(); ++m) {
    shm::Record module = board_.of(RecordKind::module, m);
    module.set(shm::ModuleCounter::queued, modules[m].queued);
    module.set(shm::ModuleCounter::left_out, modules[m].left_out);
  }
  for (std::uint32_t e = 0; e < options_.edges.size(); ++e)
    board_.of(RecordKind::edge, e).set(shm::EdgeCounter::slots_in_use, features_.in_use(e));
  for (auto& p : partitions_) {
    if (!p.dirty) continue;
    p.dirty = false;
    if (p.port == nullptr || p.broken) continue;
    wakes += p.port->flush();
    if (p.port->dear()) give_up(static_cast<std::uint32_t>(&p - partitions_.data()));
  }
  for (const auto c : live_clients_) {
    Client& client = clients_[c];
    if (!client.dirty) continue;
    client.dirty = false;
    if (client.port->wants_ring()) wakes += wake(c);
    tell_violation(c, now);  // found while answering: a torn slot word, an impossible index
    board_.of(RecordKind::client, c).set(shm::ClientCounter::completions, client.completions);
  }
  if (wakes != 0) board_.daemon().add(DaemonCounter::wakes_sent, wakes);
}

// The estimates are made by the control thread, about once a second while there is work, from what the core leaves
// behind.
void SchedulerLoop::pass_samples(std::int64_t now) noexcept {
  std::array<core::Sample, 64> taken;
  for (std::uint32_t block = 0; block < kSampleBlocksPerTurn; ++block) {
    const std::size_t count = core_->take_samples(taken);
    for (std::size_t i = 0; i < count; ++i)
      if (!samples_.push(taken[i])) break;  // full: the window has more than enough
    if (count < taken.size()) break;
  }
  if (now < next_samples_ns_) return;
  next_samples_ns_ = core::kNever;
  notify({.kind = Notice::Kind::samples});
}

// ---- submissions ----

std::uint32_t SchedulerLoop::take_submissions(std::int64_t now) noexcept {
  std::uint32_t looked = 0;
  const auto all = static_cast<std::uint32_t>(live_clients_.size());
  if (next_client_ >= all) next_client_ = 0;
  for (std::uint32_t i = 0; i < all && looked < kLooksPerTurn; ++i) {
    const std::uint32_t c = live_clients_[next_client_];
    next_client_ = next_client_ + 1 < all ? next_client_ + 1 : 0;
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
    board_.of(RecordKind::client, index).set(shm::ClientCounter::submissions, client.submissions += count);
  if (count < looked && client.port->violation() == shm::Violation::none)
    board_.of(RecordKind::client, index).set(shm::ClientCounter::late_cancels, client.late_cancels += looked - count);
  tell_violation(index, now);
  return looked;
}

// Once: the control thread ends the connection and counts the cause.
void SchedulerLoop::tell_violation(std::uint32_t index, std::int64_t now) noexcept {
  Client& client = clients_[index];
  const shm::Violation cause = client.port->violation();
  if (cause == shm::Violation::none || client.told) return;
  client.told = true;
  board_.event(EventKind::violation, now, UINT32_MAX, 0, index, static_cast<std::uint64_t>(cause));
  notify({.kind = Notice::Kind::client_violated, .client = index, .violation = cause});
}

void SchedulerLoop::submit(Client& client, const shm::Taken& taken, std::int64_t now) noexcept {
  const std::uint32_t s = client.stream[taken.stream];
  Stream& stream = streams_[s];
  Slot& slot = stream.slots[taken.slot];
  const std::uint64_t token = std::uint64_t{s} << kSlotBits | taken.slot;
  if (taken.kind == shm::SubmissionKind::observe) return observe(stream, taken, now);
  if (taken.kind == shm::SubmissionKind::cancel) {
    board_.event(EventKind::cancelled, now, stream.record, token);
    core_->cancel(now, slot.handle);
    drain_actions(now);
    return;
  }
  const std::int64_t latest = taken.capture_ns + stream.slo_ns;
  slot = {.submitted_ns = now,
          .capture_ns = taken.capture_ns,
          .deadline_ns = taken.deadline_ns == 0 ? latest : std::min(taken.deadline_ns, latest)};
  board_.submitted(stream.record, stream.frame_bytes, now - taken.capture_ns);
  board_.event(EventKind::submitted, now, stream.record, token, taken.slot);
  if (draining_ || stream.closing) {  // closing: the core's stream may be another's by now
    core::Action refused;
    refused.token = token;
    refused.outcome = Outcome::rejected;
    refused.reason = stream.closing ? Reason::stream_closed : Reason::not_ready;
    answer(refused, now);
    return;
  }
  core::Submission submission;
  submission.stream = stream.core;
  submission.token = token;
  submission.capture_ns = taken.capture_ns;
  submission.deadline_ns = taken.deadline_ns;
  submission.items = taken.items;
  submission.key = taken.key;
  // Decides branches taken by chance: a mix of what names the frame, so that a recording replays alike.
  submission.branch_draw = (token ^ static_cast<std::uint64_t>(taken.capture_ns)) * 0x9e37'79b9'7f4a'7c15ull;
  slot.handle = core_->submit(now, submission);
  drain_actions(now);
}

// A frame's own size is its stream's; a detection's is read where the worker that found it wrote it, which its report
// made visible (shm/src/rings/ring.h).
std::uint32_t SchedulerLoop::units(std::uint64_t token, core::ModuleId module, std::uint32_t item) const noexcept {
  const ModuleSizes& sizes = options_.sizes[module];
  if (sizes.sizes.empty()) return 1;
  const Stream& stream = streams_[token >> kSlotBits];
  const shm::PoolSpec& frames = stream.slots_of->spec();
  const auto slot = static_cast<std::uint32_t>(token & ((1u << kSlotBits) - 1));
  const std::uint64_t room = std::max<std::uint64_t>(frames.result_bytes, sizeof(leat_result));
  return sizes.units_of(frames.width, frames.height, stream.slots_of->result(slot), room, item);
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
      tell_schedule(action.stream);
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
  if (action.where != core::kNone) out.where = action.where - options_.first_module[stream.application];
  out.deadline_ns = slot.deadline_ns;
  out.answered_ns = now;
  client.port->answer(out);
  client.dirty = true;
  ++client.completions;
  board_.answered(stream.record, action.outcome, action.reason, now - slot.capture_ns, now);
  board_.within_share(stream.record, core_->counters().streams[stream.core].within_share,
                      core_->counters().total.within_share);
  board_.event(EventKind::answered, now, stream.record, action.token, static_cast<std::uint64_t>(action.outcome),
               static_cast<std::uint64_t>(action.reason), static_cast<std::uint64_t>(now - slot.capture_ns));
  if (action.where != core::kNone) {
    shm::Record module = board_.of(RecordKind::module, action.where);
    if (action.outcome == Outcome::dropped) module.add(shm::ModuleCounter::dropped);
    if (action.outcome == Outcome::failed) module.add(shm::ModuleCounter::failed);
  }
}

// ---- commands ----

std::uint32_t SchedulerLoop::take_commands(std::int64_t now) noexcept {
  std::uint32_t done = 0, closes = 0;
  Command command;
  while (done < kCommandsPerTurn && closes < kClosesPerTurn && commands_.pop(command)) {
    obey(command, now);
    ++done;
    closes += command.kind == Command::Kind::close_stream;
  }
  return done;
}

void SchedulerLoop::obey(const Command& command, std::int64_t now) noexcept {
  switch (command.kind) {
    case Command::Kind::add_client: {
      Client& client = clients_[command.client];
      client = {};
      client.stream.fill(core::kNone);
      client.port = command.port;
      live_clients_.push_back(command.client);
      board_.event(EventKind::client_connected, now, UINT32_MAX, 0, command.client);
      client.apart = command.apart;
      if (client.apart) return;
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.u64 = command.client;
      client.bell_watched = epoll_ctl(poll_.get(), EPOLL_CTL_ADD, client.port->bell_fd(), &event) == 0;
      return;
    }
    case Command::Kind::remove_client:
      return remove_client(command.client, now);
    case Command::Kind::open_stream:
      return open_stream(command, now);
    case Command::Kind::close_stream:
      return close_stream(clients_[command.client].stream[command.stream], Reason::stream_closed, now);
    case Command::Kind::worker_ready:
      partitions_[command.partition] = {};
      partitions_[command.partition].port = command.worker;
      watch_worker(command.partition);
      board_.event(EventKind::worker_ready, now, UINT32_MAX, 0, command.partition);
      core_->partition_ready(now, command.partition);
      return drain_actions(now);
    case Command::Kind::worker_lost:
      return worker_lost(command.partition, now);
    case Command::Kind::features_lost:
      return features_.spoil(command.edge);
    case Command::Kind::set_estimates:
      core_->set_estimates(now, *command.estimates);
      next_samples_ns_ = now + kEstimatesNs;
      return drain_actions(now);
    case Command::Kind::replace_plan:
      return take_plan(command.plan);
    case Command::Kind::look:
      return;
    case Command::Kind::drain:
      draining_ = true;
      ++closing_;  // settle() tells when nothing is in flight any more
      return;
    case Command::Kind::stop:
      stopped_ = true;
      return;
  }
}

void SchedulerLoop::open_stream(const Command& command, std::int64_t now) noexcept {
  Client& client = clients_[command.client];
  const auto free = std::find_if(streams_.begin(), streams_.end(), [](const Stream& s) { return !s.open; });
  const core::StreamId core_stream =
      free == streams_.end() ? core::kNone : core_->open_stream(now, command.open.config);
  drain_actions(now);
  if (core_stream == core::kNone)
    return notify({.kind = Notice::Kind::stream_refused,
                   .client = command.client,
                   .stream = command.stream,
                   .pool = command.pool});
  const auto s = static_cast<std::uint32_t>(free - streams_.begin());
  free->open = true;
  free->closing = false;
  free->client = command.client;
  free->index = command.stream;
  free->core = core_stream;
  free->application = command.open.config.application;
  free->pool = command.open.pool;
  free->pool_generation = command.open.pool_generation;
  free->record = command.open.record;
  free->frame_bytes = command.open.frame_bytes;
  free->slo_ns = command.open.slo_ns;
  free->sla_drop_ppm = command.open.sla_drop_ppm;
  free->task_group = static_cast<std::uint32_t>(command.open.config.terms.group);  // the session is above it
  stream_of_core_[core_stream] = s;
  free->slots_of = command.pool;
  client.stream[command.stream] = s;
  open_streams_.push_back(s);
  // The control thread has checked the limits attach() looks at.
  (void)client.port->attach(command.stream, std::unique_ptr<shm::StreamPool>(command.pool));
  board_.event(EventKind::stream_opened, now, free->record, 0, command.client);
  notify({.kind = Notice::Kind::stream_opened, .client = command.client, .stream = command.stream});
}

void SchedulerLoop::close_stream(std::uint32_t s, Reason reason, std::int64_t now) noexcept {
  if (s == core::kNone || !streams_[s].open || streams_[s].closing) return;
  streams_[s].closing = true;
  streams_[s].mark = clients_[streams_[s].client].port->mark();
  ++closing_;
  core_->close_stream(now, streams_[s].core, reason);
  stream_of_core_[streams_[s].core] = core::kNone;
  drain_actions(now);
}

void SchedulerLoop::remove_client(std::uint32_t index, std::int64_t now) noexcept {
  Client& client = clients_[index];
  unwatch_bell(client);
  client.leaving = true;
  client.port->orphan();
  ++closing_;
  board_.event(EventKind::client_gone, now, UINT32_MAX, 0, index);
}

void SchedulerLoop::worker_lost(std::uint32_t p, std::int64_t now) noexcept {
  Partition& partition = partitions_[p];
  // What it finished before it died is finished.
  std::array<worker::ReportCell, worker::kReportRing> cells;
  const std::uint32_t count = partition.port == nullptr || partition.broken ? 0 : partition.port->take(cells);
  for (std::uint32_t i = 0; i < count && !partition.broken; ++i) partition.broken = !report(p, cells[i], now);
  for (auto& batch : batches_)  // also one that could not be pushed
    if (batch.live && batch.partition() == p) release(batch);
  unwatch_worker(p);
  partition = {};
  partitions_[p].last_ended_ns = 0;
  board_.of(RecordKind::partition, p).set(shm::PartitionCounter::queued, 0);
  board_.event(EventKind::worker_lost, now, UINT32_MAX, 0, p);
  const bool excused = core_->partition_lost(now, p);
  drain_actions(now);
  notify({.kind = Notice::Kind::worker_released, .partition = p, .excused = excused});
}

// Of two that wait the later one counts.
void SchedulerLoop::take_plan(core::ActivePlan* plan) noexcept {
  if (next_plan_ != nullptr) notify({.kind = Notice::Kind::plan_retired, .plan = next_plan_.release()});
  next_plan_.reset(plan);
}

void SchedulerLoop::swap_plans(std::int64_t now) noexcept {
  if (next_plan_ != nullptr && core_->replace(now, next_plan_, true)) {
    ++earlier_plans_;
    drain_actions(now);
  }
  if (earlier_plans_ == 0) return;
  if (core::ReadyPlanPtr retired = core_->take_retired(); retired != nullptr) {
    --earlier_plans_;
    notify({.kind = Notice::Kind::plan_retired, .plan = retired.release()});
  }
}

std::uint32_t SchedulerLoop::settle(std::int64_t now) noexcept {
  std::uint32_t closed = 0;
  for (const auto s : open_streams_) {
    if (closed == kClosesPerTurn) break;
    if (streams_[s].closing || !clients_[streams_[s].client].leaving) continue;
    close_stream(s, Reason::client_gone, now);
    ++closed;
  }
  for (std::size_t i = 0; i < open_streams_.size();) {
    Stream& stream = streams_[open_streams_[i]];
    Client& client = clients_[stream.client];
    if (!stream.closing || client.port->busy(stream.index) != 0 || !client.port->passed(stream.mark)) {
      ++i;
      continue;
    }
    shm::StreamPool* pool = client.port->detach(stream.index).release();
    client.stream[stream.index] = core::kNone;
    stream.open = false;
    --closing_;
    open_streams_[i] = open_streams_.back();
    open_streams_.pop_back();
    board_.event(EventKind::stream_closed, now, stream.record, 0);
    notify({.kind = Notice::Kind::stream_closed, .client = stream.client, .stream = stream.index, .pool = pool});
  }
  for (std::size_t i = 0; i < live_clients_.size();) {
    Client& client = clients_[live_clients_[i]];
    const bool empty = std::all_of(client.stream.begin(), client.stream.end(), [](auto s) { return s == core::kNone; });
    if (!client.leaving || !empty || !client.port->drained()) {
      ++i;
      continue;
    }
    --closing_;
    client.port = nullptr;
    notify({.kind = Notice::Kind::client_drained, .client = live_clients_[i]});
    live_clients_[i] = live_clients_.back();
    live_clients_.pop_back();
  }
  if (draining_ && !drained_told_ && core_->idle() && board_.in_flight() == 0) {
    drained_told_ = true;
    --closing_;
    notify({.kind = Notice::Kind::drained});
  }
  return closed;
}

}  // namespace leat::daemon
