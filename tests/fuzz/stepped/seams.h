// What leatd's threads ask the system for, in a harness's hands: the time and who has connected. seams.cpp defines a
// few functions of the C library for the whole program; outside a run of an input they do what the library's do.
//
// Thread rule: one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "shm/src/protocol/listener.h"

namespace leat::fuzz {

// CLOCK_MONOTONIC, and the thread's CPU clock, of the whole program; 0: the system's.
void set_time(std::int64_t now_ns);
std::int64_t real_time_ns();

// The harness's end of a connection: its address says who SO_PEERCRED says it is.
shm::Fd connection_of(const std::string& path, uid_t user, pid_t process);

}  // namespace leat::fuzz
