// What a frame's first byte asks of an executor that has turned against its daemon (turned.cpp): its place in this
// table. LEAT_TURNS(X): X(name, sure). sure: with the sandbox off, and as root, it goes through on every kernel; the
// others need what a kernel or a machine may lack.
#pragma once

#include <cstdint>

namespace leat::test {

#define LEAT_TURNS(X)                                                 \
  X(nothing, 1)                                                       \
  X(storm, 1) /* for a second: flags, rings, lines, all it has */     \
  /* a signal for leatd */                                            \
  X(set_owner, 1)                                                     \
  X(set_owner_ex, 1)                                                  \
  X(set_signal, 1)                                                    \
  X(set_async, 1)                                                     \
  X(file_owner, 1)                                                    \
  X(socket_group, 1)                                                  \
  X(file_async, 1)                                                    \
  X(kill_leatd, 1)                                                    \
  X(kill_its_group, 1)                                                \
  X(kill_its_thread, 1)                                               \
  X(queue_signal, 1)                                                  \
  X(signal_by_pidfd, 1)                                               \
  /* where and when leatd runs */                                     \
  X(scheduler, 1)                                                     \
  X(scheduler_parameter, 1)                                           \
  X(scheduler_attributes, 1)                                          \
  X(affinity, 1)                                                      \
  X(own_affinity, 1)                                                  \
  X(own_scheduler, 1)                                                 \
  X(priority, 1)                                                      \
  X(io_priority, 0)                                                   \
  X(move_its_pages, 0)                                                \
  X(migrate_its_pages, 0)                                             \
  X(limits, 1)                                                        \
  X(core_scheduling, 0)                                               \
  X(out_of_memory, 1)                                                 \
  /* what leatd and the other workers have in memory */               \
  X(memory, 1)                                                        \
  X(maps, 1)                                                          \
  X(environment, 1)                                                   \
  X(descriptors, 1)                                                   \
  X(read_process, 1)                                                  \
  X(take_descriptor, 1)                                               \
  X(compare, 0)                                                       \
  X(trace, 1)                                                         \
  X(command_line, 1) /* which everybody may read, but for Landlock */ \
  X(memory_of_others, 1)                                              \
  /* what it shares with leatd */                                     \
  X(pass_descriptor, 1)                                               \
  X(seal, 1)                                                          \
  X(punch, 1)                                                         \
  X(remove_pages, 1)                                                  \
  X(lease, 1)                                                         \
  X(notify, 0)                                                        \
  X(fault_handler, 0)

enum class Turn : std::uint8_t {
#define X(name, sure) name,
  LEAT_TURNS(X)
#undef X
};

}  // namespace leat::test
