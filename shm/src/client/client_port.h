// The daemon's side of one client: its segments, its rings, its slots.
//
// Everything the client can write is hostile. take() copies each descriptor once, validates the copy against this
// port's own private tables, and returns only validated values. The first violation ends the port: nothing more is
// taken from it or pushed to it, violation() names the cause, and the daemon closes the connection. Violations of one
// client touch no other.
//
// Threads: create(), the *_for_client() descriptors and the destructor belong on the control thread (they map and fault
// memory); everything else on the scheduler thread, one call at a time. Streams' pools are made by the control thread
// and handed over with attach(). No call on the scheduler thread allocates, frees or locks: what is known of slots lies
// in a table made with the port. None makes a system call but those on the bell.
//
// Memory the client cannot take away: of what it can write, the scheduler thread touches the uplink alone, and that
// only once it is secured: sealed, when the client had mapped it, against holes, and every page of it there. Frames the
// daemon never touches.
//
// Life: create -> secured() -> (attach .. detach)* -> orphan() when the connection ends -> destroyed once drained().
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "leat/outcome.h"
#include "leat/result.hpp"
#include "shm/src/protocol/descriptors.h"
#include "shm/src/rings/doorbell.h"
#include "shm/src/rings/ring.h"
#include "shm/src/segments/segment.h"
#include "shm/src/segments/stream_pool.h"

namespace leat::shm {

// LEAT_VIOLATIONS(X): X(name, value, text). The daemon's counters record has one cause per value.
#define LEAT_VIOLATIONS(X)                                                                     \
  X(none, 0, "none")                                                                           \
  X(bad_kind, 1, "a descriptor of unknown kind")                                               \
  X(bad_stream, 2, "a descriptor for a stream that is not open")                               \
  X(bad_slot, 3, "a slot number out of range")                                                 \
  X(bad_generation, 4, "a generation that is not the slot's: a replay or a guess")             \
  X(slot_busy, 5, "a slot submitted while it is still in use")                                 \
  X(slot_state, 6, "a slot word that is not in the state the protocol requires")               \
  X(bad_memory, 7, "a memory kind the stream does not have")                                   \
  X(bad_size, 8, "a size larger than the slot, or none where one is needed")                   \
  X(bad_time, 9, "a negative or absurd capture time or deadline")                              \
  X(bad_items, 10, "no items or too many")                                                     \
  X(bad_reserved, 11, "a reserved field that is not zero")                                     \
  X(bad_index, 12, "an impossible consumer index of the completion ring")                      \
  X(flood, 13, "more answers outstanding than there are slots")                                \
  X(control_message, 14, "a malformed control message")                                        \
  X(control_order, 15, "a control message out of order")                                       \
  X(control_flood, 16, "control messages faster than they can be served, or replies not read") \
  X(unsealed, 17, "shared memory that it keeps from being sealed")                             \
  X(descriptors, 18, "a descriptor sent where none is expected")                               \
  X(dear_wakes, 19, "waiting at its sockets in a way that makes waking it take long")          \
  X(slow_release, 20, "something of its own that takes long to seal or to let go of")          \
  X(bad_color, 21, "a color range or matrix that does not exist")

enum class Violation : std::uint8_t {
#define X(name, value, text) name = value,
  LEAT_VIOLATIONS(X)
#undef X
};
std::string_view name_of(Violation violation) noexcept;
std::string_view text_of(Violation violation) noexcept;

// A validated copy of one descriptor.
struct Taken {
  SubmissionKind kind = SubmissionKind::submit;
  std::uint32_t stream = 0;  // attached
  std::uint32_t slot = 0;    // < its pool's slots
  std::uint32_t generation = 0;
  std::uint64_t cookie = 0;
  std::int64_t capture_ns = 0;   // 0 < capture_ns <= now
  std::int64_t deadline_ns = 0;  // 0: capture + SLO
  std::uint32_t key = 0;
  std::uint32_t items = 1;  // 1..kMaxItems
  std::uint64_t bytes = 0;  // used in the slot
  bool gap = false;         // of a bitstream: access units before it are missing
  bool damaged = false;     // as its client says
  Color color;              // known values; unspecified: the stream's
  // observe: key, items, generation and deadline_ns as in SubmissionDescriptor, not looked at; the rest is 0.
};

struct PortAnswer {
  std::uint32_t stream = 0;
  std::uint32_t slot = 0;
  Outcome outcome = Outcome::completed;
  Reason reason = Reason::none;
  bool has_result = false;
  Color color;  // that the frame was served with
  std::uint32_t where = UINT32_MAX;
  std::int64_t deadline_ns = 0;
  std::int64_t answered_ns = 0;
  std::int64_t dispatched_ns = 0;  // 0: never
};

class ClientPort {
 public:
  static Result<std::unique_ptr<ClientPort>> create();
  ClientPort(const ClientPort&) = delete;
  ClientPort& operator=(const ClientPort&) = delete;
  ~ClientPort();

  // ---- control thread: what Welcome carries, in this order; each call makes a new descriptor, the bell once ----
  Result<Fd> uplink_for_client() const;
  Result<Fd> downlink_for_client() const;
  Fd bell_for_client() noexcept;
  static constexpr std::uint64_t kBytes = uplink_layout().bytes + downlink_layout().bytes;  // of the two link segments
  // The client says that it has mapped them. secure() may wait while the client punches a hole, so it is for a thread
  // nobody waits for; secured() says that every page is there to stay.
  Status secure();
  bool secured() const noexcept { return secured_; }

  // ---- the bell: any thread, also beside another's calls. Each makes a system call that never blocks, but takes the
  // longer the more of the client's threads wait at their end of it ----
  void ring() const noexcept { bell_.ring(); }
  Drained drain_bell() const noexcept { return bell_.drain(); }
  void hang_up() const noexcept { bell_.hang_up(); }   // both ends see it at once
  int bell_fd() const noexcept { return bell_.fd(); }  // readable when the client rings, hung up when it is gone

  // ---- streams ----
  // `index` < kMaxStreamsPerClient, chosen by the control thread, not attached now.
  // False: the client would have more than kMaxSlotsPerClient slots, or the index is taken; the pool is destroyed.
  [[nodiscard]] bool attach(std::uint32_t index, std::unique_ptr<StreamPool> pool) noexcept;
  bool attached(std::uint32_t index) const noexcept;
  StreamPool* pool(std::uint32_t index) noexcept;
  // Requests of the stream taken and not answered, and slots held.
  std::uint32_t busy(std::uint32_t index) const noexcept;
  // Precondition: busy(index) == 0. Submissions for a detached stream are violations, so a stream that closes stays
  // attached until whatever its client pushed before it asked has been taken: passed(the mark() of that moment). That
  // comes after at most one ring's length of submissions, however many are pushed meanwhile. The caller destroys the
  // pool on the control thread.
  std::unique_ptr<StreamPool> detach(std::uint32_t index) noexcept;
  std::uint32_t mark() const noexcept { return submissions_.popped(); }
  bool passed(std::uint32_t mark) const noexcept {
    return submissions_.popped() - mark >= kSubmissionRing || !has_submissions();
  }

  // ---- submissions ----
  // Looks at up to out.size() descriptors, *looked of them, and returns how many were worth anything: a cancel is only
  // if its request is unanswered.
  [[nodiscard]] std::uint32_t take(std::int64_t now_ns, std::span<Taken> out, std::uint32_t* looked = nullptr) noexcept;
  [[nodiscard]] bool has_submissions() const noexcept;  // one cache line looked at
  [[nodiscard]] Violation violation() const noexcept { return violation_; }
  void violate(Violation cause) noexcept;  // the daemon found one elsewhere (a control message)

  // ---- slots and answers ----
  // A worker begins, ends reading a slot. An answer given while a slot is held is kept back until the last unhold, so
  // that the client cannot overwrite a frame somebody reads.
  void hold(std::uint32_t stream, std::uint32_t slot) noexcept;
  void unhold(std::uint32_t stream, std::uint32_t slot) noexcept;
  // Exactly once per submit taken. Visible to a polling client at once; a sleeping one is woken by ring().
  void answer(const PortAnswer& answer) noexcept;
  // A stream's schedule is new. It wakes nobody: a coordinated stream's client looks when it has taken a frame, and for
  // one that waits for grants awaits_turn() is to be asked afterwards.
  void schedule(std::uint32_t stream, const Schedule& schedule) noexcept;
  // Of a stream that waits for grants, by its client's word: it has a frame that was not wanted; how many it had.
  [[nodiscard]] bool offers(std::uint32_t stream) const noexcept;
  [[nodiscard]] std::uint64_t offered(std::uint32_t stream) const noexcept;
  [[nodiscard]] std::int64_t newest_ns(std::uint32_t stream) const noexcept;  // when that frame was taken; 0: not yet
  // And it waits for what schedule() has just told it: urge(), and wants_ring() is to be asked.
  [[nodiscard]] bool awaits_turn(std::uint32_t stream) const noexcept;
  void urge() noexcept { urgent_ = true; }
  // Once per batch of answers. True: the client sleeps, something was pushed that it may wait for, and the caller is to
  // ring() now. A superseded answer is none: the newer submission's comes after it.
  [[nodiscard]] bool wants_ring() noexcept;

  // ---- sleep: may_sleep() of doorbell.h, with announce_sleep() and has_submissions() of all ports ----
  void announce_sleep() noexcept;
  void announce_awake() noexcept;

  // ---- end ----
  // The connection is gone or to be ended: nothing is taken or pushed any more; answers are still accepted and
  // forgotten.
  void orphan() noexcept;
  [[nodiscard]] bool drained() const noexcept;  // no request unanswered, so no slot held: may be destroyed

 private:
  friend struct PortTestAccess;  // hostile_test.cpp
  ClientPort() = default;
  struct Slot {
    std::uint32_t generation = 0;  // of the request being served, or the least acceptable one
    std::uint16_t holds = 0;
    bool busy = false;      // taken, its completion not pushed
    bool answered = false;  // answer kept back until holds == 0
    bool damaged = false;   // as its client says
    std::uint64_t cookie = 0;
    std::int64_t capture_ns = 0;
    PortAnswer answer;
  };
  struct Stream {
    std::unique_ptr<StreamPool> pool;  // none: not attached
    FrameSlots slots;
    std::uint32_t busy = 0;
    std::array<std::uint16_t, kMaxSlotsPerStream> slot{};  // where its slots' records lie
  };
  // Of all streams' slots.
  struct Records {
    std::array<Slot, kMaxSlotsPerClient> all;
    std::array<std::uint16_t, kMaxSlotsPerClient> free;  // the first free_count of it
    std::uint32_t free_count = 0;
  };
  Slot& record(const Stream& stream, std::uint32_t slot) noexcept { return records_.all[stream.slot[slot]]; }
  OfferCell& offer_cell(std::uint32_t stream) const noexcept;
  bool admit(const SubmissionDescriptor& d, std::int64_t now_ns, Taken* out) noexcept;
  Violation check(const SubmissionDescriptor& d) const noexcept;
  void finish(Stream& stream, Slot& slot) noexcept;

  Segment uplink_, downlink_;
  bool secured_ = false;
  BellSocket bell_;
  Fd client_bell_;
  RingConsumer<SubmissionDescriptor> submissions_;
  RingProducer<CompletionDescriptor> completions_;
  SleepWord* sleep_ = nullptr;  // ours, in the downlink
  Waker client_waker_;
  std::array<Stream, kMaxStreamsPerClient> streams_;
  Records records_;
  std::uint32_t busy_total_ = 0;
  Violation violation_ = Violation::none;
  bool orphaned_ = false;
  bool urgent_ = false;  // something was pushed since the last wants_ring() that is worth a wake
};

}  // namespace leat::shm
