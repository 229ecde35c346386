#include "cuda/fake/process.h"

#include <unistd.h>

#include <cstdlib>

namespace leat::fake {
namespace {

thread_local std::uint32_t current_context = 0;  // its number

bool within(const Ranges& ranges, cuda::Address at) {
  auto next = ranges.upper_bound(at);
  if (next == ranges.begin()) return false;
  --next;
  return at - next->first < next->second;
}

}  // namespace

Process& process() {
  static Process* const kProcess = new Process;  // outlives every stream of the process
  return *kProcess;
}

bool lost() {
  const Process& p = process();
  if (host().state().fault_pid == ::getpid()) return true;
  return p.client != nullptr && host().state().gpus[p.context_gpu].fault_epoch != p.epoch;
}

bool settled_and_lost() {
  if (!lost()) return false;
  fake::Stream::settle();
  return true;
}

cuda::Status fault() {
  const std::uint32_t wanted = host().state().fault_status;
  return wanted != 0 ? static_cast<cuda::Status>(wanted) : cuda::kLaunchFailed;
}

void end_if_lost() {
  if (host().state().abort_in_destructors != 0 && lost()) std::abort();
}

void make_current(bool there) { current_context = there ? process().context.load() : 0; }
bool has_current() { return current_context != 0 && current_context == process().context; }

bool is_pageable(cuda::Address from) {
  Process& p = process();
  const std::lock_guard lock(p.mutex);
  return !within(p.reserved, from) && !within(p.registered, from) && !within(p.pinned, from);
}

}  // namespace leat::fake
