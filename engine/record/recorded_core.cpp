#include "engine/record/recorded_core.h"

#include <algorithm>
#include <cstring>

namespace leat::record {
namespace {

using core::TimeNs;

// Every entry's kind, time and a few small numbers.
constexpr std::size_t kHead = 96;

constexpr std::byte first_byte(Kind kind, std::uint8_t flags) noexcept {
  return static_cast<std::byte>(static_cast<std::uint8_t>(kind) | flags);
}

constexpr std::uint64_t step(std::uint64_t hash, std::uint64_t word) noexcept {
  hash = (hash ^ word) * 0x9fb2'1c65'1e98'df25ull;
  return hash ^ hash >> 32;
}

// A core that is made with a later plan, to go on from a state, is to have tables of the same sizes.
core::Limits of_every_plan(core::Limits limits, const core::Topology& first) {
  limits.partitions = std::max(limits.partitions, static_cast<std::uint32_t>(first.partitions.size()));
  return limits;
}

constexpr std::size_t kPiece = 8192;  // of a state, at most

}  // namespace

std::uint64_t mixed(std::uint64_t h, const core::Action& a, const core::Scheduler& core) noexcept {
  h = step(h, static_cast<std::uint64_t>(a.kind));
  switch (a.kind) {
    case core::ActionKind::dispatch:
      h = step(h, std::uint64_t{a.batch.index} << 32 | a.batch.generation);
      h = step(h, std::uint64_t{a.route} << 32 | a.module);
      h = step(h, std::uint64_t{a.then} << 32 | a.first_stage << 2 | (a.alone ? 2u : 0u) | (a.went_on ? 1u : 0u));
      h = step(step(h, static_cast<std::uint64_t>(a.start_ns)), static_cast<std::uint64_t>(a.expected_end_ns));
      for (const core::PartitionId p : a.path) h = step(h, p);
      for (const core::TaskRef& t : a.tasks)
        h = step(step(h, t.token), std::uint64_t{t.item} << 32 | t.items << 16 | t.units);
      return h;
    case core::ActionKind::answer:
      h = step(step(h, a.token), std::uint64_t{a.stream} << 32 | a.where);
      return step(h, static_cast<std::uint64_t>(a.outcome) << 32 | static_cast<std::uint64_t>(a.reason));
    case core::ActionKind::transfer:
      h = step(step(h, a.token), static_cast<std::uint64_t>(a.start_ns));
      return step(step(h, std::uint64_t{a.from} << 32 | a.to), std::uint64_t{a.route} << 32 | a.first_stage);
    case core::ActionKind::schedule: {
      const core::StreamSchedule told = core.schedule(a.stream);
      h = step(step(h, a.stream), told.granted << 1 | (told.open ? 1u : 0u));
      h = step(h, static_cast<std::uint64_t>(told.view.standing) << 32 | told.count);
      for (std::uint32_t i = 0; i < told.count; ++i)
        h = step(h, static_cast<std::uint64_t>(told.frames[i].at_ns) << 1 | (told.frames[i].probe ? 1u : 0u));
      return h;
    }
  }
  return h;
}

RecordedCore::RecordedCore(const core::Topology& topology, const core::Policy& policy, const core::Limits& limits,
                           Names names)
    : limits_(of_every_plan(limits, topology)),
      core_(topology, policy, limits_),
      plan_(encode({.topology = topology, .limits = limits_, .policy = policy, .names = std::move(names)})),
      streams_(limits.streams),
      open_(limits.streams),
      known_(limits_) {}
RecordedCore::~RecordedCore() = default;

// ---- where entries go ----

void RecordedCore::record(Ring* ring, TimeNs now) noexcept {
  if (ring_ != nullptr) put_check();
  ring_ = ring;
  if (ring_ == nullptr) return;
  last_ns_ = now;
  hash_ = 0;
  unchecked_ = 0;
  ring_->interrupt();
  state_bytes_ = ring_->segments() * ring_->segment_bytes() / kMaxStateShare;
  state_ = std::make_unique_for_overwrite<std::byte[]>(state_bytes_);
  last_state_bytes_ = 0;
  begin_segment();
  wants_state_ = begun_;
  segments_ = 0;
  if (begun_ || ring_ == nullptr) return;
  std::byte* at = room(kHead);
  if (at == nullptr) return;
  *at++ = first_byte(Kind::begin,
                     static_cast<std::uint8_t>((sizes_ != nullptr ? kFirst : 0) | (offers_ != nullptr ? kSecond : 0)));
  ring_->wrote(at);
}

// What cannot be written at all ends the record: a plan larger than a segment.
std::byte* RecordedCore::room(std::size_t most) const noexcept {
  std::byte* at = ring_->room(most);
  if (at != nullptr) return at;
  begin_segment();
  at = ring_ == nullptr ? nullptr : ring_->room(most);
  if (at == nullptr) ring_ = nullptr;
  return at;
}

void RecordedCore::begin_segment() const noexcept {
  ring_->begin_segment(last_ns_);
  std::size_t streams = 0;
  for (const std::uint8_t open : open_) streams += open;
  std::byte* at = ring_->room(plan_.size() + kHead + streams * 2 * kHead);
  if (at == nullptr) {
    ring_ = nullptr;
    return;
  }
  *at++ = first_byte(Kind::plan, 0);
  put_varint(at, plan_.size());
  std::memcpy(at, plan_.data(), plan_.size());
  at += plan_.size();
  for (std::uint32_t s = 0; s < open_.size(); ++s) {
    if (open_[s] == 0) continue;
    *at++ = first_byte(Kind::stream, 0);
    put_varint(at, s);
    put_stream(at, streams_[s]);
  }
  ring_->wrote(at);
  ++segments_;
  wants_state_ = wants_state_ || (segments_ >= std::max<std::uint64_t>(1, ring_->segments() / kStatesPerRing) &&
                                  segments_ * ring_->segment_bytes() >= kMaxStateShare * last_state_bytes_);
}

// The whole state, where an event is about to come: from here on the record can be replayed. Where there is no room for
// it, the next segments get none either, until as many have gone by again.
void RecordedCore::put_state() const noexcept {
  if (!core_.settled()) return;  // soon
  wants_state_ = false;
  segments_ = 0;
  core::Snapshot own = core::Snapshot::writing({state_.get(), state_bytes_});
  own(known_);
  const std::size_t at = own.ok() ? state_bytes_ - own.left() : state_bytes_;
  const std::size_t of_core = core_.save({state_.get() + at, state_bytes_ - at});
  if (of_core == 0) return;
  const std::span<const std::byte> all(state_.get(), at + of_core);
  last_state_bytes_ = all.size();
  if (unchecked_ > 0) put_check();
  const std::size_t piece = std::min<std::size_t>(kPiece, ring_ == nullptr ? 0 : ring_->segment_bytes() / 4);
  for (std::size_t done = 0; done < all.size() && ring_ != nullptr;) {
    const std::span<const std::byte> next = all.subspan(done, std::min(piece, all.size() - done));
    std::byte* to = room(kHead + next.size());
    if (to == nullptr) return;
    const bool first = done == 0;
    done += next.size();
    *to++ =
        first_byte(Kind::state, static_cast<std::uint8_t>((first ? kFirst : 0) | (done == all.size() ? kSecond : 0)));
    if (first) {
      put_raw(to, hash_of(all));
      put_byte(to, static_cast<std::uint8_t>((sizes_ != nullptr ? 1 : 0) | (offers_ != nullptr ? 2 : 0)));
    }
    put_varint(to, next.size());
    std::memcpy(to, next.data(), next.size());
    ring_->wrote(to + next.size());
  }
  wants_state_ = false;  // segments have begun within it
  segments_ = 0;
}

// An event's first byte and time; `more` bytes may follow beside a head's. nullptr: nothing is recorded.
std::byte* RecordedCore::event(Kind kind, std::uint8_t flags, TimeNs now, std::size_t more) const noexcept {
  asked_ = 0;
  if (wants_state_) [[unlikely]] {
    put_state();
    if (ring_ == nullptr) return nullptr;
  }
  std::byte* at = room(kHead + more);
  if (at == nullptr) return nullptr;
  if (now <= last_ns_) {
    *at++ = first_byte(kind, flags | kSameTime);
    return at;
  }
  *at++ = first_byte(kind, flags);
  put_varint(at, static_cast<std::uint64_t>(now - last_ns_));
  last_ns_ = now;
  return at;
}

void RecordedCore::put_stream(std::byte*& at, const core::StreamConfig& c) const noexcept {
  put_varint(at, c.application);
  for (const TimeNs ns : {c.slo_ns, c.max_age_ns, c.period_ns, c.terms.period_ns}) put_varint(at, folded(ns));
  put_varint(at, c.depth);
  put_byte(at, static_cast<std::uint8_t>(c.supersede));
  put_byte(at, static_cast<std::uint8_t>(c.priority));
  for (const std::uint32_t n : {c.user, c.user_weight, c.miss_window, c.miss_allowed}) put_varint(at, n);
  put_byte(at, c.waits_for_grants ? 1 : 0);
  for (const double x : {c.terms.sla_drop, c.terms.weight, c.terms.max_share, c.terms.task_weight, c.terms.local})
    put_raw(at, x);
  put_varint(at, c.terms.group);
}

// ---- set-up ----

void RecordedCore::measure_tasks(const core::TaskSizes& sizes) noexcept {
  sizes_ = &sizes;
  core_.measure_tasks(*this);
}
void RecordedCore::watch_offers(const core::Offers& offers) noexcept {
  offers_ = &offers;
  core_.watch_offers(*this);
}

// ---- what the core asks for ----

std::uint32_t RecordedCore::units(std::uint64_t token, core::ModuleId module, std::uint32_t item) const noexcept {
  const std::uint32_t units = sizes_->units(token, module, item);
  if (ring_ == nullptr) return units;
  if (units == 1) {
    ++asked_;
    return units;
  }
  if (std::byte* at = room(kHead)) {
    *at++ = first_byte(Kind::units, 0);
    put_varint(at, asked_);
    put_varint(at, units);
    ring_->wrote(at);
  }
  asked_ = 0;
  return units;
}

std::optional<TimeNs> RecordedCore::picture_ns(core::StreamId stream) const noexcept {
  const std::optional<TimeNs> said = offers_->picture_ns(stream);
  if (ring_ == nullptr) return said;
  const LastPicture now{.there = said.has_value(), .at_ns = said.value_or(0)};
  if (now == known_.pictures[stream]) {
    ++asked_;
    return said;
  }
  known_.pictures[stream] = now;
  if (std::byte* at = room(kHead)) {
    *at++ = first_byte(Kind::picture, now.there ? kFirst : 0);
    put_varint(at, asked_);
    put_varint(at, stream);
    if (now.there) put_varint(at, folded(last_ns_ - now.at_ns));
    ring_->wrote(at);
  }
  asked_ = 0;
  return said;
}

// ---- events ----

core::StreamId RecordedCore::open_stream(TimeNs now, const core::StreamConfig& config) noexcept {
  begun_ = true;
  if (ring_ != nullptr) {
    if (std::byte* at = event(Kind::open_stream, 0, now, 2 * kHead)) {
      put_stream(at, config);
      ring_->wrote(at);
    }
  }
  const core::StreamId stream = core_.open_stream(now, config);
  if (stream == core::kNone) return stream;
  streams_[stream] = config;
  open_[stream] = 1;
  if (ring_ == nullptr) return stream;
  if (std::byte* at = room(kHead)) {  // its number; what it is has just been written
    *at++ = first_byte(Kind::stream, kFirst);
    put_varint(at, stream);
    ring_->wrote(at);
  }
  return stream;
}

void RecordedCore::close_stream(TimeNs now, core::StreamId stream, Reason reason) noexcept {
  begun_ = true;
  if (ring_ != nullptr) {
    if (std::byte* at = event(Kind::close_stream, 0, now, 0)) {
      put_varint(at, stream);
      put_byte(at, static_cast<std::uint8_t>(reason));
      ring_->wrote(at);
    }
  }
  if (stream < open_.size()) open_[stream] = 0;
  core_.close_stream(now, stream, reason);
}

core::RequestHandle RecordedCore::submit(TimeNs now, const core::Submission& s) noexcept {
  begun_ = true;
  if (ring_ != nullptr) {
    const bool more = s.deadline_ns != 0 || s.items != 1 || s.key != 0;
    const bool own_draw = s.branch_draw != branch_draw(s.token, s.capture_ns);
    if (std::byte* at =
            event(Kind::submit, static_cast<std::uint8_t>((more ? kFirst : 0) | (own_draw ? kSecond : 0)), now, 0)) {
      put_varint(at, s.stream);
      put_varint(at, s.token);
      put_varint(at, folded(last_ns_ - s.capture_ns));
      if (more) {
        put_varint(at, s.deadline_ns == 0 ? 0 : folded(s.deadline_ns - s.capture_ns) + 1);
        put_varint(at, s.items);
        put_varint(at, s.key);
      }
      if (own_draw) put_raw(at, s.branch_draw);
      ring_->wrote(at);
    }
  }
  return core_.submit(now, s);
}

void RecordedCore::cancel(TimeNs now, core::RequestHandle request) noexcept {
  begun_ = true;
  if (ring_ != nullptr) {
    if (std::byte* at = event(Kind::cancel, 0, now, 0)) {
      put_varint(at, request.index);
      put_varint(at, request.generation);
      ring_->wrote(at);
    }
  }
  core_.cancel(now, request);
}

bool RecordedCore::observe(TimeNs now, core::StreamId stream, const core::Observation& seen) noexcept {
  begun_ = true;
  if (ring_ != nullptr) {
    if (std::byte* at = event(Kind::observe, seen.far ? kFirst : 0, now, 0)) {
      put_varint(at, stream);
      put_varint(at, seen.stride);
      put_varint(at, folded(seen.period_ns));
      put_raw(at, seen.drop);
      put_raw(at, seen.expected);
      ring_->wrote(at);
    }
  }
  return core_.observe(now, stream, seen);
}

void RecordedCore::put_stage(Kind kind, TimeNs now, core::BatchHandle batch, std::uint32_t stage) const noexcept {
  if (ring_ == nullptr) return;
  const bool stale = !known_.is_last(batch);
  std::byte* at = event(kind, static_cast<std::uint8_t>((stage != 0 ? kFirst : 0) | (stale ? kSecond : 0)), now, 0);
  if (at == nullptr) return;
  put_varint(at, batch.index);
  if (stage != 0) put_varint(at, stage);
  if (stale) put_varint(at, batch.generation);
  ring_->wrote(at);
}

void RecordedCore::stage_started(TimeNs now, core::BatchHandle batch, std::uint32_t stage) noexcept {
  begun_ = true;
  put_stage(Kind::stage_started, now, batch, stage);
  core_.stage_started(now, batch, stage);
}

void RecordedCore::stage_beside(TimeNs now, core::BatchHandle batch, std::uint32_t stage) noexcept {
  begun_ = true;
  put_stage(Kind::stage_beside, now, batch, stage);
  core_.stage_beside(now, batch, stage);
}

bool RecordedCore::stage_finished(TimeNs now, core::BatchHandle batch, std::uint32_t stage,
                                  std::span<const core::TaskResult> results, TimeNs went_on_ns) noexcept {
  begun_ = true;
  if (ring_ != nullptr) {
    const bool stale = !known_.is_last(batch);
    if (std::byte* at =
            event(Kind::stage_finished, static_cast<std::uint8_t>((stage != 0 ? kFirst : 0) | (stale ? kSecond : 0)),
                  now, results.size() * 8)) {
      put_varint(at, batch.index);
      if (stage != 0) put_varint(at, stage);
      if (stale) put_varint(at, batch.generation);
      put_varint(at, went_on_ns == 0 ? 0 : folded(last_ns_ - went_on_ns) + 1);
      const bool plain = std::ranges::all_of(results, [](const core::TaskResult& r) { return r.ok && r.fan_out == 1; });
      put_varint(at, results.size() << 1 | (plain ? 1 : 0));
      for (std::size_t i = 0; !plain && i < results.size(); ++i) {
        put_byte(at, results[i].ok ? 0xff : static_cast<std::uint8_t>(results[i].reason));
        put_varint(at, results[i].fan_out);
      }
      ring_->wrote(at);
    }
  }
  return core_.stage_finished(now, batch, stage, results, went_on_ns);
}

bool RecordedCore::partition_lost(TimeNs now, core::PartitionId partition) noexcept {
  begun_ = true;
  if (ring_ != nullptr) {
    if (std::byte* at = event(Kind::partition_lost, 0, now, 0)) {
      put_varint(at, partition);
      ring_->wrote(at);
    }
  }
  return core_.partition_lost(now, partition);
}

void RecordedCore::partition_ready(TimeNs now, core::PartitionId partition) noexcept {
  begun_ = true;
  if (ring_ != nullptr) {
    if (std::byte* at = event(Kind::partition_ready, 0, now, 0)) {
      put_varint(at, partition);
      ring_->wrote(at);
    }
  }
  core_.partition_ready(now, partition);
}

void RecordedCore::set_estimates(TimeNs now, const core::Estimates& estimates) noexcept {
  begun_ = true;
  if (ring_ != nullptr) {
    if (std::byte* at = event(Kind::estimates, 0, now, estimates.modules.size() * 3 * kMaxVarint)) {
      put_varint(at, estimates.modules.size());
      for (const core::ModuleEstimate& m : estimates.modules)
        for (const TimeNs ns : {m.queue_ns, m.wait_after_ns, m.worst_ns}) put_varint(at, folded(ns));
      ring_->wrote(at);
    }
  }
  core_.set_estimates(now, estimates);
}

void RecordedCore::advance(TimeNs now) noexcept {
  begun_ = true;
  if (ring_ != nullptr) {
    if (std::byte* at = event(Kind::advance, 0, now, 0)) ring_->wrote(at);
  }
  core_.advance(now);
}

PreparedPlan RecordedCore::prepare(const core::Topology& topology, const core::Policy& policy, Names names) const {
  PreparedPlan out{
      .core = core_.prepare(topology, policy),
      .encoded = encode({.topology = topology, .limits = limits_, .policy = policy, .names = std::move(names)}),
      .heirs = {}};
  for (const core::ApplicationSpec& a : topology.applications) out.heirs.push_back(a.heir);
  return out;
}

bool RecordedCore::replace(TimeNs now, PreparedPlan& next, bool measured_anew) noexcept {
  std::string& encoded = next.encoded;
  begun_ = true;
  const TimeNs before_ns = last_ns_;
  std::byte* begin = nullptr;  // of the entry
  if (ring_ != nullptr) {
    if (std::byte* at = event(Kind::replace, measured_anew ? kFirst : 0, now, encoded.size())) {
      begin = ring_->room(0);
      put_varint(at, encoded.size());
      std::memcpy(at, encoded.data(), encoded.size());
      ring_->wrote(at + encoded.size());
    }
  }
  plan_.swap(encoded);
  if (!core_.replace(now, next.core, measured_anew)) {  // it was not the time: nothing has happened
    plan_.swap(encoded);
    if (begin != nullptr) ring_->wrote(begin);
    last_ns_ = before_ns;
    return false;
  }
  for (std::uint32_t s = 0; s < open_.size(); ++s) {
    const std::uint32_t was = streams_[s].application;
    if (open_[s] != 0 && was < next.heirs.size() && next.heirs[was] != core::kNone)
      streams_[s].application = next.heirs[was];
  }
  return true;
}

core::ReadyPlanPtr RecordedCore::take_retired() noexcept {
  core::ReadyPlanPtr retired = core_.take_retired();
  if (retired == nullptr || ring_ == nullptr) return retired;
  if (std::byte* at = room(kHead)) {
    *at++ = first_byte(Kind::take_retired, 0);
    ring_->wrote(at);
  }
  return retired;
}

void RecordedCore::give_up(TimeNs now, std::uint32_t application, Reason reason) noexcept {
  begun_ = true;
  if (ring_ != nullptr) {
    if (std::byte* at = event(Kind::give_up, 0, now, 0)) {
      put_varint(at, application);
      put_byte(at, static_cast<std::uint8_t>(reason));
      ring_->wrote(at);
    }
  }
  core_.give_up(now, application, reason);
}

void RecordedCore::put_note(TimeNs now, const Note& note) noexcept {
  std::byte* at = event(Kind::note, 0, now, 0);
  if (at == nullptr) return;
  put_varint(at, note.kind);
  put_varint(at, std::uint64_t{note.stream} + 1);
  for (const std::uint64_t n : {note.token, note.a, note.b, note.c}) put_varint(at, n);
  ring_->wrote(at);
}

// ---- actions ----

bool RecordedCore::next_action(core::Action& out) noexcept {
  if (!core_.next_action(out)) return false;
  if (out.kind == core::ActionKind::dispatch) known_.sent(out);
  if (ring_ != nullptr) put_action(out);
  return true;
}

void RecordedCore::put_action(const core::Action& a) noexcept {
  const bool plain_tasks =
      std::ranges::all_of(a.tasks, [](const core::TaskRef& t) { return t.item == 0 && t.items == 1 && t.units == 1; });
  const std::size_t each = plain_tasks ? kMaxVarint : kMaxVarint + 15;
  std::byte* at = room(kHead + a.tasks.size() * each);
  if (at == nullptr) return;
  switch (a.kind) {
    case core::ActionKind::dispatch: {
      const bool staged = a.first_stage != 0 || a.path.size() != 1;
      *at++ = first_byte(Kind::dispatch, static_cast<std::uint8_t>((staged ? kFirst : 0) | (a.went_on ? kSecond : 0) |
                                                                   (plain_tasks ? 0 : kThird)));
      put_varint(at, a.batch.index);
      put_varint(at, a.route);
      if (staged) {
        put_varint(at, a.first_stage);
        put_varint(at, a.path.size());
      }
      for (const core::PartitionId p : a.path) put_varint(at, p);
      put_varint(at, a.tasks.size());
      for (const core::TaskRef& t : a.tasks) {
        put_varint(at, t.token);
        if (plain_tasks) continue;
        put_varint(at, t.item);
        put_varint(at, t.items);
        put_varint(at, t.units);
      }
      break;
    }
    case core::ActionKind::answer:
      *at++ = first_byte(Kind::answer, a.where != core::kNone ? kFirst : 0);
      put_varint(at, a.token);
      put_byte(at, static_cast<std::uint8_t>(a.outcome));
      put_byte(at, static_cast<std::uint8_t>(a.reason));
      if (a.where != core::kNone) put_varint(at, a.where);
      break;
    case core::ActionKind::transfer:
      *at++ = first_byte(Kind::transfer, 0);
      put_varint(at, a.token);
      break;
    case core::ActionKind::schedule:
      *at++ = first_byte(Kind::schedule, core_.schedule(a.stream).open ? kFirst : 0);
      put_varint(at, a.stream);
      break;
  }
  ring_->wrote(at);
  hash_ = mixed(hash_, a, core_);
  if (++unchecked_ >= kActionsPerCheck) put_check();
}

void RecordedCore::put_check() const noexcept {
  std::byte* at = room(kHead);
  if (at == nullptr) return;
  *at++ = first_byte(Kind::check, 0);
  put_raw(at, hash_);
  ring_->wrote(at);
  hash_ = 0;
  unchecked_ = 0;
}

}  // namespace leat::record
