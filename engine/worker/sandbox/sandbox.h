// The box of a worker: what its process may no longer ask of the kernel once it is ready. It runs models and a large
// runtime that others wrote, on frames that others sent; from "ready" on it needs its memory, its threads, its
// wake-ups, the files it reads and the devices it has open, and nothing else.
//
// The rules are a list of what is refused (sandbox.cpp holds the whole table), not of what is allowed. A list of what
// is allowed would have to name whatever the C library, ONNX Runtime, a CUDA driver and the models' own operators call
// today, and would end a sound worker the day one of them calls something newer: it would be switched off. What gives a
// process authority it did not have is known and changes slowly: reaching somebody (sockets), leaving something behind
// (files, IPC names), becoming or starting another program, touching other processes (their memory, their signals,
// where and when they run), and changing the machine. Ways around the filter itself (io_uring, other system call
// tables) are on the list as well. What a worker gives up before it loads anything stands in confine.h.
//
// A refused call fails with EPERM, so that the batch that made it fails and the worker lives; calls that the C library
// has an older substitute for (clone3, openat2) fail with ENOSYS, because the filter cannot see their arguments.
// What stays open: reading files that the worker's user may read, and memory and processor time, which are the batch
// limit's and the operator's business. A user of its own (`[workers] user`) narrows the first.
//
// Thread rule: enclose() once, from any thread; it holds for all of the process's threads, those to come included.
#pragma once

#include <cstdint>
#include <string_view>

#include "leat/result.hpp"

namespace leat::worker {

// LEAT_SANDBOXES(X): X(name, value, text)
#define LEAT_SANDBOXES(X)                                                                                       \
  X(on, 0, "no new sockets, no files opened for writing, no new programs, no hold on other processes")          \
  X(devices, 1, "no new sockets, no new programs, no hold on other processes; files may be opened for writing") \
  X(off, 2, "workers may do whatever their user may")

enum class Sandbox : std::uint8_t {
#define X(name, value, text) name = value,
  LEAT_SANDBOXES(X)
#undef X
};
constexpr std::string_view name_of(Sandbox sandbox) noexcept {
  switch (sandbox) {
#define X(name, value, text) \
  case Sandbox::name:        \
    return #name;
    LEAT_SANDBOXES(X)
#undef X
  }
  return "unknown";
}
constexpr std::string_view text_of(Sandbox sandbox) noexcept {  // what is in force, half a line
  switch (sandbox) {
#define X(name, value, text) \
  case Sandbox::name:        \
    return text;
    LEAT_SANDBOXES(X)
#undef X
  }
  return "unknown";
}

// Never undone. An error (a kernel without seccomp filters, a container that forbids them): nothing is in force.
Status enclose(Sandbox sandbox);

}  // namespace leat::worker
