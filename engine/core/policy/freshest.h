// Who goes first where deadlines do not decide: a picture that its stream's next one will replace before its deadline
// is lost by that, not by being late, and the earliest deadline is the one that is about to be lost anyway.
//
// So among such tasks the one goes first that is worth most: that brings its stream furthest on and is youngest
// (ledger/served_up_to.h, Task::turn_ns). Tasks that nothing replaces (fifo streams, or the deadline comes first) keep
// their places: as long as each of them would be in time behind one batch more and those before it, they are compared
// by how far behind their stream is and how long they wait; else deadlines decide.
#pragma once

#include "engine/core/policy/scheduler_interface.h"

namespace leat::core {

struct Pace {
  TimeNs start_ns = 0;  // when the batch begins
  TimeNs run_ns = 0;    // what it takes, to the end of its requests
  TimeNs each_ns = 0;   // for one item more of those that wait, all partitions together
};

// The task of that level of the queue that goes first; kNone: deadlines decide. Looks at no more than 256 tasks.
[[nodiscard]] TaskId freshest(const StateView& view, const TaskQueue& queue, std::uint8_t level,
                              const Pace& pace) noexcept;

}  // namespace leat::core
