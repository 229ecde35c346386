#include "shm/src/client/client_port.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "leat/leat.h"

namespace leat::shm {

std::string_view name_of(Violation violation) noexcept {
  switch (violation) {
#define X(name, value, text) \
  case Violation::name:      \
    return #name;
    LEAT_VIOLATIONS(X)
#undef X
  }
  return "unknown";
}
std::string_view text_of(Violation violation) noexcept {
  switch (violation) {
#define X(name, value, text) \
  case Violation::name:      \
    return text;
    LEAT_VIOLATIONS(X)
#undef X
  }
  return "unknown";
}

namespace {

constexpr LinkLayout kUp = uplink_layout();
constexpr LinkLayout kDown = downlink_layout();
constexpr std::int64_t kLatestTime = INT64_MAX / 4;  // later points in time could overflow sums with spans

// Our own invariants, on in release builds: a daemon that breaks them must not go on.
void require(bool holds) noexcept {
  if (!holds) std::abort();
}

}  // namespace

ClientPort::~ClientPort() = default;

Result<std::unique_ptr<ClientPort>> ClientPort::create() {
  Result<Segment> up = Segment::create("leat:uplink", kUp.bytes, Seal::later);
  if (!up) return Error{up.error()};
  Result<Segment> down = Segment::create("leat:downlink", kDown.bytes, Seal::future_write);
  if (!down) return Error{down.error()};
  Result<BellSocket::Pair> bells = BellSocket::create();
  if (!bells) return Error{bells.error()};

  std::unique_ptr<ClientPort> p(new ClientPort);
  p->uplink_ = std::move(up).value();
  p->downlink_ = std::move(down).value();
  p->bell_ = std::move(bells->daemon);
  p->client_bell_ = std::move(bells->client);
  const Mapping& u = p->uplink_.memory();
  const Mapping& d = p->downlink_.memory();
  for (std::uint16_t& r : p->records_.free) r = static_cast<std::uint16_t>(p->records_.free_count++);
  p->submissions_ = {u.at<SubmissionDescriptor>(kUp.cells_offset), kUp.capacity, d.at<IndexLine>(kDown.index_offset)};
  p->completions_ = {d.at<CompletionDescriptor>(kDown.cells_offset), kDown.capacity, u.at<IndexLine>(kUp.index_offset)};
  p->sleep_ = d.at<SleepWord>(kDown.sleep_offset);
  p->client_waker_ = Waker(u.at<SleepWord>(kUp.sleep_offset));
  u.at<SegmentHeader>(0)->publish(SegmentKind::uplink, kUp.bytes);
  d.at<SegmentHeader>(0)->publish(SegmentKind::downlink, kDown.bytes);
  return p;
}

Result<Fd> ClientPort::uplink_for_client() const { return duplicate(uplink_.fd()); }
Result<Fd> ClientPort::downlink_for_client() const { return downlink_.share_read_only(); }
Fd ClientPort::bell_for_client() noexcept { return std::move(client_bell_); }

Status ClientPort::secure() {
  if (auto status = uplink_.secure(); !status) return status;
  if (auto status = uplink_.allocate(0, uplink_.bytes()); !status) return status;
  uplink_.fault_in();
  secured_ = true;
  return Done{};
}

bool ClientPort::attach(std::uint32_t index, std::unique_ptr<StreamPool> pool) noexcept {
  const std::uint32_t slots = pool->spec().slots;
  if (index >= kMaxStreamsPerClient || streams_[index].pool ||
      slots > std::min(records_.free_count, kMaxSlotsPerStream))
    return false;
  Stream& stream = streams_[index];
  stream.slots = FrameSlots(uplink_.memory().at<SlotWord>(kUp.stream_words(index)), slots, index);
  stream.slots.reset();
  for (std::uint32_t i = 0; i < slots; ++i) {
    stream.slot[i] = records_.free[--records_.free_count];
    record(stream, i) = {};
  }
  stream.pool = std::move(pool);
  OfferCell& cell = offer_cell(index);
  atomic_ref(cell.asks).store(0, std::memory_order_relaxed);
  atomic_ref(cell.awaits).store(0, std::memory_order_relaxed);
  atomic_ref(cell.offered).store(0, std::memory_order_relaxed);
  atomic_ref(cell.newest_ns).store(0, std::memory_order_relaxed);
  schedule(index, {});
  return true;
}

bool ClientPort::attached(std::uint32_t index) const noexcept {
  return index < kMaxStreamsPerClient && streams_[index].pool;
}
StreamPool* ClientPort::pool(std::uint32_t index) noexcept {
  return attached(index) ? streams_[index].pool.get() : nullptr;
}
std::uint32_t ClientPort::busy(std::uint32_t index) const noexcept {
  return attached(index) ? streams_[index].busy : 0;
}

std::unique_ptr<StreamPool> ClientPort::detach(std::uint32_t index) noexcept {
  require(attached(index) && streams_[index].busy == 0);
  Stream& stream = streams_[index];
  for (std::uint32_t i = 0; i < stream.slots.count(); ++i) records_.free[records_.free_count++] = stream.slot[i];
  return std::move(stream.pool);
}

std::uint32_t ClientPort::take(std::int64_t now_ns, std::span<Taken> out, std::uint32_t* looked) noexcept {
  std::uint32_t count = 0, seen = 0;
  SubmissionDescriptor d;
  for (; seen < out.size() && violation_ == Violation::none && !orphaned_ && submissions_.pop(d); ++seen)
    if (admit(d, now_ns, &out[count])) ++count;
  if (looked != nullptr) *looked = seen;
  return count;
}

bool ClientPort::has_submissions() const noexcept {
  return violation_ == Violation::none && !orphaned_ && !submissions_.empty();
}

void ClientPort::violate(Violation cause) noexcept {
  if (violation_ == Violation::none) violation_ = cause;
}

// Everything a descriptor can say wrongly, except what only moving its slot can tell. `d` is our copy.
Violation ClientPort::check(const SubmissionDescriptor& d) const noexcept {
  if (d.kind != SubmissionKind::submit && d.kind != SubmissionKind::cancel && d.kind != SubmissionKind::observe)
    return Violation::bad_kind;
  if (!attached(d.stream)) return Violation::bad_stream;
  if (d.kind == SubmissionKind::observe) {  // it speaks of no slot
    const std::uint64_t unused =
        d.reserved | d.gap | d.damaged | d.color.range | d.color.matrix | d.cookie | d.bytes | d.slot | d.memory;
    return unused == 0 && d.capture_ns == 0 ? Violation::none : Violation::bad_reserved;
  }
  const Stream& stream = streams_[d.stream];
  if (d.slot >= stream.slots.count()) return Violation::bad_slot;
  if (d.reserved != 0) return Violation::bad_reserved;
  if (d.kind == SubmissionKind::cancel) return Violation::none;
  const Slot& slot = records_.all[stream.slot[d.slot]];
  if (slot.busy) return Violation::slot_busy;
  // Generations only grow (an abandoned slot skips one); half the range behind is "older".
  if (d.generation - slot.generation > UINT32_MAX / 2) return Violation::bad_generation;
  if (d.memory != stream.pool->spec().memory) return Violation::bad_memory;
  if (d.items == 0 || d.items > kMaxItems) return Violation::bad_items;
  const bool bitstream = stream.pool->spec().bitstream();
  if (bitstream && d.items != 1) return Violation::bad_items;
  if (d.gap > (bitstream ? 1u : 0u) || d.damaged > 1) return Violation::bad_reserved;
  if (!color_known(d.color.range, d.color.matrix)) return Violation::bad_color;
  if (d.bytes > stream.pool->layout().frame_bytes || (bitstream && d.bytes == 0)) return Violation::bad_size;
  if (d.capture_ns <= 0 || d.capture_ns > kLatestTime || d.deadline_ns < 0 || d.deadline_ns > kLatestTime)
    return Violation::bad_time;
  return Violation::none;
}

// True: *out is a validated copy. False: a violation, or a cancel that came after its answer.
bool ClientPort::admit(const SubmissionDescriptor& d, std::int64_t now_ns, Taken* out) noexcept {
  if (const Violation cause = check(d); cause != Violation::none) {
    violate(cause);
    return false;
  }
  if (d.kind == SubmissionKind::observe) {
    *out = {.kind = d.kind,
            .stream = d.stream,
            .generation = d.generation,
            .deadline_ns = d.deadline_ns,
            .key = d.key,
            .items = d.items};
    return true;
  }
  Stream& stream = streams_[d.stream];
  Slot& slot = record(stream, d.slot);
  if (d.kind == SubmissionKind::cancel) {
    if (!slot.busy || slot.answered || slot.generation != d.generation) return false;
  } else {
    if (completions_.room(busy_total_ + 1) < busy_total_ + 1) {  // the answer must find room
      violate(completions_.corrupt() ? Violation::bad_index : Violation::flood);
      return false;
    }
    if (!stream.slots.take(d.slot, d.generation)) {
      violate(Violation::slot_state);
      return false;
    }
    stream.pool->clear_parts(d.slot);
    slot.busy = true;
    slot.answered = false;
    slot.generation = d.generation;
    slot.cookie = d.cookie;
    slot.capture_ns = d.capture_ns;  // goes back as the client said it
    slot.damaged = d.damaged != 0;
    ++stream.busy;
    ++busy_total_;
  }
  *out = {d.kind,        d.stream,
          d.slot,        d.generation,
          slot.cookie,   std::min(slot.capture_ns, now_ns),
          d.deadline_ns, d.key,
          d.items,       d.bytes != 0 ? d.bytes : stream.pool->layout().frame_bytes,
          d.gap != 0,    d.damaged != 0,
          d.color};
  return true;
}

void ClientPort::hold(std::uint32_t stream, std::uint32_t slot) noexcept {
  require(attached(stream) && slot < streams_[stream].slots.count() && record(streams_[stream], slot).busy);
  ++record(streams_[stream], slot).holds;
}

void ClientPort::unhold(std::uint32_t stream, std::uint32_t slot) noexcept {
  require(attached(stream) && slot < streams_[stream].slots.count());
  Stream& s = streams_[stream];
  Slot& held = record(s, slot);
  require(held.holds > 0);
  if (--held.holds == 0 && held.answered) finish(s, held);
}

void ClientPort::answer(const PortAnswer& answer) noexcept {
  require(attached(answer.stream) && answer.slot < streams_[answer.stream].slots.count());
  Stream& stream = streams_[answer.stream];
  Slot& slot = record(stream, answer.slot);
  require(slot.busy && !slot.answered);
  slot.answered = true;
  slot.answer = answer;
  if (slot.holds == 0) finish(stream, slot);
}

void ClientPort::schedule(std::uint32_t stream, const Schedule& schedule) noexcept {
  require(attached(stream));
  downlink_.memory().at<SchedulePage>(kDown.schedule(stream))->write(schedule);
}

OfferCell& ClientPort::offer_cell(std::uint32_t stream) const noexcept {
  require(attached(stream));
  return *uplink_.memory().at<OfferCell>(kUp.offer(stream));
}
bool ClientPort::offers(std::uint32_t stream) const noexcept {
  return atomic_ref(offer_cell(stream).asks).load(std::memory_order_relaxed) != 0;
}
std::uint64_t ClientPort::offered(std::uint32_t stream) const noexcept {
  return atomic_ref(offer_cell(stream).offered).load(std::memory_order_relaxed);
}
std::int64_t ClientPort::newest_ns(std::uint32_t stream) const noexcept {
  return atomic_ref(offer_cell(stream).newest_ns).load(std::memory_order_relaxed);
}
bool ClientPort::awaits_turn(std::uint32_t stream) const noexcept { return leat::shm::awaits_turn(offer_cell(stream)); }

// Hands the slot back and pushes its completion; the one place where a request stops being busy.
void ClientPort::finish(Stream& stream, Slot& slot) noexcept {
  const PortAnswer& a = slot.answer;
  const std::uint32_t generation = slot.generation;
  slot.busy = false;
  slot.answered = false;
  slot.generation = generation + 1;
  --stream.busy;
  --busy_total_;
  if (orphaned_ || violation_ != Violation::none) return;
  if (!stream.slots.release(a.slot, generation)) return violate(Violation::slot_state);
  CompletionDescriptor d;
  d.outcome = static_cast<std::uint8_t>(a.outcome);
  d.reason = static_cast<std::uint8_t>(a.reason);
  d.stream = static_cast<std::uint16_t>(a.stream);
  d.cookie = slot.cookie;
  d.capture_ns = slot.capture_ns;
  d.deadline_ns = a.deadline_ns;
  d.answered_ns = a.answered_ns;
  d.dispatched_ns = a.dispatched_ns;
  d.slot = a.slot;
  d.generation = generation;
  d.where = a.where;
  d.has_result = a.has_result ? 1 : 0;
  d.flags = slot.damaged ? LEAT_ANSWER_DAMAGED : 0;
  d.color = a.color;
  if (!completions_.push(d)) violate(completions_.corrupt() ? Violation::bad_index : Violation::flood);
  urgent_ = urgent_ || a.reason != Reason::superseded;
}

bool ClientPort::wants_ring() noexcept {
  return std::exchange(urgent_, false) && !orphaned_ && client_waker_.should_ring();
}

void ClientPort::announce_sleep() noexcept {
  submissions_.publish();
  leat::shm::announce_sleep(*sleep_);
}
void ClientPort::announce_awake() noexcept { leat::shm::announce_awake(*sleep_); }

void ClientPort::orphan() noexcept { orphaned_ = true; }

bool ClientPort::drained() const noexcept { return busy_total_ == 0; }

}  // namespace leat::shm
