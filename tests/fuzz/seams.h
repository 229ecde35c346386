// What leatd's threads ask the system for, in a harness's hands: the time, who has connected, and which thread gives a
// descriptor back. seams.cpp defines a few functions of the C library for the whole program; outside a run of an input
// they do what the library's do.
//
// Thread rule: the harness's own thread; others may only close and receive.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <mutex>
#include <string>

#include "shm/src/listener.h"

namespace leat::fuzz {

// CLOCK_MONOTONIC of the whole program; 0: the system's.
void set_time(std::int64_t now_ns);
std::int64_t real_time_ns();

// The harness's end of a connection: its address says who SO_PEERCRED says it is.
shm::Fd connection_of(const std::string& path, uid_t user, pid_t process);

// While it lives, leatd's threads run: other threads that close or receive wait until it is over. So whatever is given
// back meanwhile was given back by leatd's thread itself.
class OwnThreadOnly {
 public:
  OwnThreadOnly();
  ~OwnThreadOnly();
  OwnThreadOnly(const OwnThreadOnly&) = delete;
  OwnThreadOnly& operator=(const OwnThreadOnly&) = delete;
};

}  // namespace leat::fuzz
