// A test's case in a process of its own, over the stand-in driver, whose state is read once a process.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "cuda/device/stand_in_host.h"
#include "cuda/fake/state.h"
#include "engine/exec/device_plugin.h"

namespace leat {

// 0: all was as it should be. before: the device is opened. What pieces of work are said to take is counted there, so
// that what is chosen by time is chosen whatever else the host does.
inline int in_own_process(const std::function<bool(fake::Host&, exec::Device&)>& act,
                          const std::function<void(fake::Host&)>& before = {}) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto host = stand_in_host();
    if (host == nullptr) ::_exit(2);
    host->state().counts_time = 1;
    if (before) before(*host);
    auto device = exec::Device::open(LEAT_DEVICE_PLUGIN, "");
    if (!device.ok()) std::fprintf(stderr, "%s\n", device.error().c_str());
    const bool good = device.ok() && act(*host, **device);
    host.reset();
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#define NEED(condition)                                                               \
  do {                                                                                \
    if (!(condition)) return std::fprintf(stderr, "not so: %s\n", #condition), false; \
  } while (false)

}  // namespace leat
