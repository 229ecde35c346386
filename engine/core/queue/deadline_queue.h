// The double-ended priority queue of one queue, and its arrival order beside it. Both are intrusive: links live in the
// tasks, so any number of queues needs no memory of its own and nothing is ever allocated.
//
// DeadlineQueue: a treap over (deadline, serial), threaded in key order, of tasks or of whatever else has what a Task
// has for it (task.h), such as turns (grants/grants.h). front, back and erase of either end are what
// HBF and LBF need; cancel, supersede and sibling purge erase from the middle. Heap priorities are a hash of the serial
// number, so the shape, like everything else, is the same on every machine. Expected O(log n); front() and back() are
// O(1). Invariants: in-order = before/after order = ascending keys; first/last are its ends; every child's hash <= its
// parent's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/core/queue/task.h"

namespace leat::core {

class DeadlineQueue {
 public:
  [[nodiscard]] bool empty() const noexcept { return root_ == kNone; }
  [[nodiscard]] TaskId front() const noexcept { return first_; }  // earliest deadline; kNone: empty
  [[nodiscard]] TaskId back() const noexcept { return last_; }

  template <class Linked>
  void insert(Linked* t, TaskId id) noexcept {
    t[id].left = t[id].right = kNone;
    const std::uint64_t weight = weight_of(t[id]);
    TaskId before = kNone, after = kNone;
    TaskId* link = &root_;
    while (*link != kNone && weight_of(t[*link]) >= weight) step(t, id, link, before, after);
    // Split what hangs here by the key: `lower` gets what is before `id`, `upper` what is after.
    TaskId rest = *link;
    *link = id;
    TaskId *lower = &t[id].left, *upper = &t[id].right;
    while (rest != kNone) {
      if (less(t[rest], t[id])) {
        before = rest;
        *lower = rest;
        lower = &t[rest].right;
        rest = t[rest].right;
      } else {
        after = rest;
        *upper = rest;
        upper = &t[rest].left;
        rest = t[rest].left;
      }
    }
    *lower = *upper = kNone;
    t[id].before = before;
    t[id].after = after;
    (before == kNone ? first_ : t[before].after) = id;
    (after == kNone ? last_ : t[after].before) = id;
  }

  // The first whose deadline is `at` or later; kNone: there is none.
  template <class Linked>
  [[nodiscard]] TaskId first_at_least(const Linked* t, std::int64_t at) const noexcept {
    TaskId found = kNone;
    for (TaskId id = root_; id != kNone;) {
      if (t[id].deadline_ns >= at) {
        found = id;
        id = t[id].left;
      } else {
        id = t[id].right;
      }
    }
    return found;
  }

  // Precondition: id is in this queue.
  template <class Linked>
  void erase(Linked* t, TaskId id) noexcept {
    TaskId* link = &root_;
    while (*link != id) link = less(t[id], t[*link]) ? &t[*link].left : &t[*link].right;
    TaskId left = t[id].left, right = t[id].right;
    while (left != kNone && right != kNone) {
      if (weight_of(t[left]) >= weight_of(t[right])) {
        *link = left;
        link = &t[left].right;
        left = *link;
      } else {
        *link = right;
        link = &t[right].left;
        right = *link;
      }
    }
    *link = left != kNone ? left : right;
    const TaskId before = t[id].before, after = t[id].after;
    (before == kNone ? first_ : t[before].after) = after;
    (after == kNone ? last_ : t[after].before) = before;
  }

  // Number of tasks, or kNone when an invariant is broken. O(n), for tests and Scheduler::check.
  template <class Linked>
  [[nodiscard]] std::size_t audit(const Linked* t) const noexcept {
    std::size_t n = 0;
    TaskId previous = kNone;
    for (TaskId id = first_; id != kNone; previous = id, id = t[id].after, ++n) {
      if (t[id].before != previous || (previous != kNone && !less(t[previous], t[id]))) return kNone;
      for (TaskId child : {t[id].left, t[id].right}) {
        if (child != kNone && weight_of(t[child]) > weight_of(t[id])) return kNone;
      }
    }
    return previous == last_ && (n == 0) == (root_ == kNone) ? n : static_cast<std::size_t>(kNone);
  }

 private:
  template <class Linked>
  static std::uint64_t weight_of(const Linked& a) noexcept {
    return a.serial * 0x9E3779B97F4A7C15u;
  }
  template <class Linked>
  static bool less(const Linked& a, const Linked& b) noexcept {
    return a.deadline_ns != b.deadline_ns ? a.deadline_ns < b.deadline_ns : a.serial < b.serial;
  }
  template <class Linked>
  static void step(Linked* t, TaskId id, TaskId*& link, TaskId& before, TaskId& after) noexcept {
    if (less(t[*link], t[id])) {
      before = *link;
      link = &t[*link].right;
    } else {
      after = *link;
      link = &t[*link].left;
    }
  }

  TaskId root_ = kNone, first_ = kNone, last_ = kNone;
};

// Tasks in the order in which they reached the queue (fcfs, Nexus' window).
class ArrivalList {
 public:
  [[nodiscard]] TaskId front() const noexcept { return first_; }
  void push(Task* t, TaskId id) noexcept {
    t[id].older = last_;
    t[id].newer = kNone;
    (last_ == kNone ? first_ : t[last_].newer) = id;
    last_ = id;
  }
  void erase(Task* t, TaskId id) noexcept {
    (t[id].older == kNone ? first_ : t[t[id].older].newer) = t[id].newer;
    (t[id].newer == kNone ? last_ : t[t[id].newer].older) = t[id].older;
  }

 private:
  TaskId first_ = kNone, last_ = kNone;
};

}  // namespace leat::core
