// What this process has of the GPUs that are not there, for the parts of the stand-in libcuda.so.1.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda/driver/api.h"
#include "cuda/fake/state.h"
#include "cuda/fake/stream.h"
#include "cuda/fake/visible.h"

// Our own declarations stand in for the driver's header, and so does the calling convention of C.
#define LEAT_EXPORT extern "C" __attribute__((visibility("default")))

namespace leat::fake {

using Ranges = std::map<cuda::Address, std::size_t>;

struct Memory {
  int fd = -1;
  std::uint64_t bytes = 0;
};
struct Event {
  fake::Stream* stream = nullptr;
  std::uint64_t ticket = 0;
  bool blocking = false;
  // Written when the stream comes to it; shared with that, since the event may be gone by then.
  std::shared_ptr<std::atomic<std::int64_t>> at_ns = std::make_shared<std::atomic<std::int64_t>>(0);
};
struct Graph {
  std::vector<std::function<void()>> work;
};

struct Process {
  std::mutex mutex;
  bool initialised = false;
  std::vector<Visible> visible;
  bool mps = false;
  int retained = 0;
  std::atomic<std::uint32_t> context{0};  // its number: each that is made anew has another; 0: there is none
  unsigned context_gpu = 0;
  std::uint32_t epoch = 0;
  Client* client = nullptr;
  User* user = nullptr;
  std::map<cuda::Handle, Memory> memory;
  cuda::Handle next_handle = 1;
  Ranges registered, pinned;  // host memory
  Ranges reserved;            // addresses of device memory
};
Process& process();
inline Host& host() { return Host::mine(); }
inline const Visible& current() { return process().visible[0]; }

bool lost();
bool settled_and_lost();               // whoever is told so takes what the streams use away
cuda::Status fault();                  // what is said of a lost context
void end_if_lost();                    // as a library's destructors that throw
void make_current(bool there);         // the process's context, or none, for this thread
bool has_current();                    // this thread has one, and it is the process's still
bool is_pageable(cuda::Address from);  // host memory that a driver would have to read before a copy of it may return

#define LEAT_UNLESS_LOST()                                                        \
  if (!::leat::fake::process().initialised) return ::leat::cuda::kNotInitialized; \
  if (::leat::fake::settled_and_lost()) return ::leat::fake::fault()

// Of the calls that CUDA's reference lists CUDA_ERROR_INVALID_CONTEXT for: a context is current for one thread.
#define LEAT_NEEDS_CONTEXT() \
  if (!::leat::fake::has_current()) return ::leat::cuda::kInvalidContext
#define LEAT_UNLESS_LOST_IN_CONTEXT() \
  LEAT_UNLESS_LOST();                 \
  LEAT_NEEDS_CONTEXT()

}  // namespace leat::fake
