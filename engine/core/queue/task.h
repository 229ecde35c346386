// One task: one sub-request at one module. Lives in a fixed table; everything that links tasks is an index into it.
#pragma once

#include <cstdint>

#include "engine/core/types.h"

namespace leat::core {

using TaskId = std::uint32_t;

// booked: reserved or between two stages; in no queue and in no batch that was sent. loose: nowhere, while a plan is
// replaced. held: until its planned batch begins (coordination.h). gated: until another of its kind is over (gate.h).
enum class TaskState : std::uint8_t { free, queued, booked, placed, loose, held, gated };

// Two cache lines: the queues' first, and what a batch on its way needs second.
struct alignas(64) Task {
  TimeNs deadline_ns = 0;    // its request's
  std::uint64_t serial = 0;  // breaks ties; grows with every enqueue, so equal deadlines keep arrival order
  TimeNs give_up_ns = 0;     // worthless after this: the deadline, or capture + max_age; kNever for never_drop
  // Links of DeadlineQueue.
  TaskId left = kNone, right = kNone, before = kNone, after = kNone;
  // Links of ArrivalList.
  TaskId older = kNone, newer = kNone;
  TimeNs turn_ns = 0;  // its stream's next picture is likely to take its place: what it is worth, and the time at which
                       // it begins (policy/freshest.h), 1 or more; 0: it waits for its own deadline

  alignas(64) std::uint32_t request = kNone;
  TaskId next_in_batch = kNone;
  TaskId next_of_request = kNone, previous_of_request = kNone;
  std::uint32_t queue = kNone;
  std::uint32_t batch = kNone;  // placed in it
  TimeNs queued_ns = 0;         // t_r: when it reached its module
  TimeNs taken_ns = 0;          // t_b: when it was put into a batch
  ModuleId module = 0;
  std::uint32_t items = 1;  // what it takes of a batch: its rows, or more where rows differ (TaskSizes)
  std::uint32_t rows = 1;
  std::uint16_t item = 0;
  std::uint8_t level = 0;  // class, and above all classes whether it is within its user's share (class_of)
  std::uint8_t retries = 0;
  TaskState state = TaskState::free;
};

}  // namespace leat::core
