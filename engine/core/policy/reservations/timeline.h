// When a resource (a partition, one direction of a link) is reserved: PPipe's resource table (section 5.4, Algorithm
// 2). A set of disjoint busy intervals, in order; touching intervals are one. Gaps between reservations are usable,
// unless the table only appends, as the authors' simulator keeps it.
//
// Capacity is fixed at construction; a full table refuses a reservation. Invariants: begin < end, sorted, disjoint; an
// empty interval changes nothing. Thread rule: one thread. O(n) to look up and to change, n being what is reserved
// ahead (tens).
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

#include "engine/core/snapshot.h"
#include "engine/core/types.h"

namespace leat::core {

class Timeline {
 public:
  struct Interval {
    TimeNs begin, end;
  };

  explicit Timeline(std::size_t capacity = 64, bool append_only = false)
      : busy_(std::bit_ceil(std::max<std::size_t>(capacity, 1))), capacity_(capacity), append_only_(append_only) {}

  // Forgets what has ended by `now`. Call before the look-ups of one decision; keeps the table short.
  void expire(TimeNs now) noexcept {
    while (size_ > 0 && at(0).end <= now) {
      head_ = place(1);
      --size_;
    }
  }

  // Earliest t' >= t with [t', t' + length) free, and behind all that is reserved where the table only appends.
  [[nodiscard]] TimeNs earliest(TimeNs t, TimeNs length) const noexcept {
    if (append_only_) return size_ > 0 ? std::max(t, at(size_ - 1).end) : t;
    const Interval* const ring = busy_.data();
    for (std::size_t i = first_ending_after(t) + head_; i < size_ + head_; ++i) {
      const Interval busy = ring[i & mask_];
      if (busy.begin - t >= length) return t;
      t = std::max(t, busy.end);
    }
    return t;
  }

  // Earliest t' >= t free on both: a transfer needs the sender's uplink and the receiver's downlink at once.
  [[nodiscard]] static TimeNs earliest_on_both(const Timeline& a, const Timeline& b, TimeNs t, TimeNs length) noexcept {
    for (;;) {
      const TimeNs on_a = a.earliest(t, length);
      t = b.earliest(on_a, length);
      if (t == on_a) return t;
    }
  }

  // Room for at least `changes` more reservations or releases, whatever they are.
  [[nodiscard]] bool room(std::size_t changes) const noexcept { return size_ + changes <= capacity_; }

  // Marks [begin, end) busy, whatever of it was busy before. False: the table is full and nothing changed.
  [[nodiscard]] bool reserve(TimeNs begin, TimeNs end) noexcept {
    if (begin >= end) return true;
    const std::size_t first = first_ending_at_or_after(begin);
    std::size_t last = first;
    while (last < size_ && at(last).begin <= end) {
      begin = std::min(begin, at(last).begin);
      end = std::max(end, at(last).end);
      ++last;
    }
    if (last == first) {
      if (size_ == capacity_) return false;
      open_gap(first);
    } else {
      close_gap(first + 1, last);
    }
    at(first) = {begin, end};
    return true;
  }

  // Marks [begin, end) free (feedback correction: it ended early, moved, or its batch was cancelled).
  // False: cutting one interval in two needs room that is not there; nothing changed, and the table stays pessimistic.
  [[nodiscard]] bool release(TimeNs begin, TimeNs end) noexcept {
    if (begin >= end) return true;
    std::size_t i = first_ending_after(begin);
    if (i < size_ && at(i).begin < begin && at(i).end > end) {
      if (size_ == capacity_) return false;
      open_gap(i);
      at(i) = {at(i + 1).begin, begin};
      at(i + 1).begin = end;
      return true;
    }
    if (i < size_ && at(i).begin < begin) at(i++).end = begin;
    std::size_t last = i;
    while (last < size_ && at(last).end <= end) ++last;
    close_gap(i, last);
    if (i < size_ && at(i).begin < end) at(i).begin = end;
    return true;
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] const Interval& operator[](std::size_t i) const noexcept { return at(i); }
  void visit_state(Snapshot& state) {
    state(head_, size_);
    if (size_ > capacity_ || head_ > mask_) return state.fail();
    for (std::size_t i = 0; i < size_; ++i) state(at(i));
  }

 private:
  static constexpr std::size_t kScan = 6;  // so few are looked at one by one

  [[nodiscard]] std::size_t place(std::size_t i) const noexcept { return (head_ + i) & mask_; }
  [[nodiscard]] const Interval& at(std::size_t i) const noexcept { return busy_[place(i)]; }
  [[nodiscard]] Interval& at(std::size_t i) noexcept { return busy_[place(i)]; }

  [[nodiscard]] std::size_t first_ending_after(TimeNs t) const noexcept {
    const Interval* const ring = busy_.data();
    std::size_t i = head_, behind = head_ + size_;
    while (behind - i > kScan) {
      const std::size_t middle = i + (behind - i) / 2;
      if (ring[middle & mask_].end <= t) {
        i = middle + 1;
      } else {
        behind = middle;
      }
    }
    while (i < behind && ring[i & mask_].end <= t) ++i;  // most tables are short and expired at the front
    return i - head_;
  }
  [[nodiscard]] std::size_t first_ending_at_or_after(TimeNs t) const noexcept {
    std::size_t i = size_;
    while (i > 0 && at(i - 1).end >= t) --i;
    return i;
  }
  void open_gap(std::size_t i) noexcept {
    for (std::size_t k = size_++; k > i; --k) at(k) = at(k - 1);
  }
  void close_gap(std::size_t from, std::size_t to) noexcept {  // removes [from, to)
    if (from == to) return;
    for (std::size_t k = to; k < size_; ++k) at(from + k - to) = at(k);
    size_ -= to - from;
  }

  std::vector<Interval> busy_;  // a ring; its size is a power of two
  std::size_t capacity_, mask_ = busy_.size() - 1, head_ = 0, size_ = 0;
  bool append_only_ = false;
};

}  // namespace leat::core
