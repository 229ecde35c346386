// Streams that wait for grants: their clients are told when a picture of theirs is wanted, so that none is produced
// which would not be used.
//
// While there is room, every stream is open: each picture is wanted when it is there. A component closes where a
// request that comes would, by the pace at which requests are done, still wait when its stream's next picture takes its
// place, or its deadline has come; and where one was given up so. Streams of a closed component take turns: of those
// that have a picture, and no request that waits, whoever has the highest level and the picture that is worth most
// (ledger/served_up_to.h) is granted one as soon as fewer requests are in hand than twice what its partitions take, and
// one more: while each works on one batch, another waits for it. So a stream is mostly asked when its picture has just
// come, and the picture is young when it runs. When there is room and nobody has a picture, the component opens again.
//
// In hand is what was granted and is not answered, and what was granted and has not come: that by the part of it that
// can be expected soon, by how long the stream's pictures took to come before. So a client that is slow, or takes
// grants and uses none, holds hardly anything; and a grant that is not used expires. Levels are those of tasks
// (priority and fair share): what is below one does not count against it, and levels above one that is closed stay
// open. Streams that do not wait compete as ever; where they have requests in flight, those that wait may have as many
// for each stream, so that they are not at a disadvantage.
//
// No allocation after construction. One thread, the scheduler's.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/core/ledger/ledger.h"
#include "engine/core/load/paying_batches.h"
#include "engine/core/machine/machine.h"
#include "engine/core/model/model.h"
#include "engine/core/queue/deadline_queue.h"
#include "engine/core/scheduler.h"
#include "engine/core/snapshot.h"

namespace leat::core {

class Grants {
 public:
  explicit Grants(const Limits& limits, std::size_t applications)
      : lines_(applications), seats_(limits.streams), turns_(limits.streams) {
    for (StreamId s = 0; s < turns_.size(); ++s) turns_[s].serial = s;
    changed_.reserve(limits.streams);
  }

  // ---- streams ----
  // Of whatever kind. slo_ns: as granted; cost_ns: what the plan expects a request to take of its component's time.
  void open(StreamId stream, const StreamConfig& config, ComponentId component, TimeNs slo_ns, TimeNs cost_ns) noexcept;
  void close(StreamId stream) noexcept;
  [[nodiscard]] bool none() const noexcept { return waiting_ == 0; }  // nobody waits for grants
  [[nodiscard]] bool has(StreamId stream) const noexcept { return seats_[stream].waits; }
  struct Told {
    bool open = true;           // every picture is wanted
    std::uint64_t granted = 0;  // turns so far: each more is one picture
  };
  [[nodiscard]] Told told(StreamId stream) const noexcept {
    return {.open = seats_[stream].open, .granted = seats_[stream].granted};
  }

  // No other picture of the stream is asked for while one waits: it is in turns, or all beside it ask too, so that
  // the first loss closes the component before there are more.
  [[nodiscard]] bool none_replaces(StreamId stream) const noexcept {
    const Seat& seat = seats_[stream];
    return seat.waits && (!seat.open || lines_[seat.line].others == 0);
  }

  // ---- the plan ----
  // Which components there are, and what their partitions take; also when a partition comes or goes, or other batches
  // pay.
  void measure(const Model& model, const PayingBatches& paying, const Machine& machine) noexcept;
  // Another plan is in force: streams and what is in flight are counted anew.
  void replaced(const Model& model, const PayingBatches& paying, const Machine& machine, const Ledger& ledger) noexcept;

  // ---- requests ----
  void submitted(TimeNs now, StreamId stream, TimeNs capture_ns) noexcept;  // whatever becomes of it
  // It was accepted at that level; the result is to be kept with it.
  [[nodiscard]] std::uint8_t accepted(TimeNs now, StreamId stream, std::uint8_t level) noexcept;
  // It is answered; `kept` is what accepted() said. ran: to its end. lost: given up unstarted, for want of room.
  enum class End : std::uint8_t { ran, lost, other };
  void answered(TimeNs now, StreamId stream, std::uint8_t kept, End end) noexcept;

  // ---- turns ----
  // At the end of each event. What is known of streams is asked where somebody's turn may come.
  class Asked {
   public:
    [[nodiscard]] virtual std::uint8_t level_of(StreamId stream) const noexcept = 0;  // that a request now would have
    [[nodiscard]] virtual bool has_waiting(StreamId stream) const noexcept = 0;       // one of its requests waits
    // When the picture that is there was taken. None: none is there.
    [[nodiscard]] virtual std::optional<TimeNs> picture_ns(StreamId stream) const noexcept = 0;
    // What one of that time would be worth now (ledger/served_up_to.h); later ones are worth more.
    [[nodiscard]] virtual TimeNs worth_ns(StreamId stream, TimeNs capture_ns) const noexcept = 0;

   protected:
    ~Asked() = default;
  };
  void decide(TimeNs now, const Asked& asked) noexcept;
  // Streams of whom told() is new since the last call. Valid until the next decide().
  [[nodiscard]] std::span<const StreamId> changed() const noexcept { return changed_; }
  void told_all() noexcept;
  [[nodiscard]] TimeNs next_timer() const noexcept {
    return none() || expiries_.empty() ? kNever : turns_[expiries_.front()].deadline_ns;
  }
  void audit(const Ledger& ledger) const;
  void visit_state(Snapshot& state) {
    state(lines_, changed_, waiting_, dirty_);
    state.changed(seats_);
    state(expiries_);
    state.some(turns_, [this](std::uint32_t s) { return seats_[s].granted_now; });
  }

  static constexpr std::uint8_t kNotCounted = 255;  // of accepted()

 private:
  static constexpr std::uint32_t kWhole = 256;  // in hand: a request, or a grant whose picture comes at once
  struct Seat {                                 // of a stream
    bool waits = false, open = true, live = false;
    bool granted_now = false, expired = false;  // of its last grant: not used yet, and not in time
    bool counts = false;                        // the request that has just come was asked for
    bool listed = false;                        // in changed_
    std::uint8_t level = 0;                     // of its last grant
    ComponentId line = kNone;
    std::uint32_t weight = kWhole;  // of its last grant, while that is not used
    std::uint64_t granted = 0;
    TimeNs granted_ns = 0;
    TimeNs lag_ns = 0;      // from grants to their pictures; smoothed
    TimeNs period_ns = 0;   // from picture to picture; 0: not known
    TimeNs capture_ns = 0;  // of the last one
    TimeNs slo_ns = kNever;
  };
  struct Turn {              // of a stream, in expiries_ while its last grant is not used
    TimeNs deadline_ns = 0;  // when it expires
    std::uint64_t serial = 0;
    TaskId left = kNone, right = kNone, before = kNone, after = kNone;
  };
  struct Line {                                   // of a component
    std::uint32_t taken = 1;                      // requests that its partitions work on
    std::uint32_t slots = 1;                      // in hand, so that they are kept busy
    std::uint32_t streams = 0;                    // that wait
    std::uint32_t others = 0;                     // streams that do not
    std::uint32_t foreign = 0;                    // requests in flight that were not granted
    std::array<std::uint32_t, kLevels> flying{};  // granted requests in flight, by level
    std::array<std::uint32_t, kLevels> held{};    // of grants not used, by level: their weights
    int closed = -1;                              // streams of that level and below take turns
    TimeNs closed_ns = 0;
    TimeNs pace_ns = 0;  // from one request done to the next, while there is enough to do; 0: not known
    TimeNs done_ns = 0;  // the last one
    bool busy = false;   // there has been enough to do since
    bool shut = false;   // closed rose: who is told is still to be looked at
    bool dirty = false;  // decide() has something to look at
  };
  [[nodiscard]] static std::uint64_t in_hand(const Line& line, int level) noexcept;  // there and above, in kWhole
  [[nodiscard]] static std::uint64_t room(const Line& line) noexcept;                // for them, in kWhole
  [[nodiscard]] static std::uint32_t flying(const Line& line, int level) noexcept;
  [[nodiscard]] StreamId next(TimeNs now, ComponentId line, const Asked& asked, std::uint8_t* level) const noexcept;
  void take_turns(TimeNs now, ComponentId line, const Asked& asked) noexcept;
  void grant(TimeNs now, StreamId stream, std::uint8_t level) noexcept;
  void drop_grant(StreamId stream) noexcept;
  void expire(TimeNs now) noexcept;
  void shut(TimeNs now, Line& line, int level) noexcept;
  void set_open(StreamId stream, bool open) noexcept;
  void look(Line& line) noexcept { dirty_ = line.dirty = true; }
  void tell(StreamId stream) noexcept;

  std::vector<Line> lines_;  // by ComponentId
  std::vector<Seat> seats_;  // by StreamId
  std::vector<StreamId> changed_;
  std::uint32_t waiting_ = 0;
  bool dirty_ = false;
  std::vector<Turn> turns_;  // by StreamId
  DeadlineQueue expiries_;   // of those
};

}  // namespace leat::core
