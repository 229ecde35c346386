// Each place that waits for a device's stream, left out once: the stand-in obeys all waits but one, and what then
// happens must not be what happens otherwise. A scenario ends a process of its own: 0 all was as it should be, 1
// something was not, 2 it waited another number of times, 3 there is no encoder for it; a signal says as much as 1,
// since unmapped memory was touched. Every wait of an action is listed: a new one fails the count.
// INSTANTIATE_TEST_SUITE_P(..., LeftOut, testing::Values(Wait{...})).
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "cuda/fake/state.h"
#include "engine/exec/device_plugin.h"

namespace leat {

inline constexpr std::uint32_t kWaitDelayUs = 20'000;
inline constexpr int kObeyAll = -1, kNoEncoder = 3;
inline constexpr int kAttempts = 20;

struct StandIn {
  void (*forget_wait)(int);
  int (*waits)();
};
// In the scenario's own process.
inline StandIn stand_in() {
  void* const library = ::dlopen(LEAT_FAKE_CUDA, RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) std::abort();
  return {reinterpret_cast<void (*)(int)>(::dlsym(library, "leat_stand_in_forget_wait")),
          reinterpret_cast<int (*)()>(::dlsym(library, "leat_stand_in_waits"))};
}

inline void need(bool good) {
  if (!good) ::_exit(1);
}

class Scenario {
 public:
  explicit Scenario(std::uint32_t source = LEAT_PICTURE_UPLOADED) : driver(stand_in()) {
    host_ = fake::Host::create(path_, {"A100-40"});
    ::setenv("LEAT_FAKE_GPUS", path_.c_str(), 1);
    const auto found = exec::find_device(LEAT_DEVICE_PLUGIN);
    need(found.ok());
    api = *found;
    if (source == LEAT_PICTURE_MEASURED) return;  // opening is the action
    d = open(source);
    host_->state().longest_delay_us = kWaitDelayUs;
  }
  leat_device* open(std::uint32_t source) const {
    const leat_device_options options{nullptr, source};
    leat_device* out = nullptr;
    need(api->open(&options, &out, nullptr, 0) == LEAT_DEVICE_OK);
    ::unlink(path_.c_str());  // the stand-in has it open; whatever ends the scenario leaves no file
    return out;
  }
  leat_device_memory memory(std::uint64_t bytes) const {
    leat_device_memory m{};
    need(api->allocate(d, bytes, 1, &m, nullptr, 0) == LEAT_DEVICE_OK);
    return m;
  }
  void pins_no_read_only() const { host_->state().pins_no_read_only = 1; }
  void delays(std::uint32_t us) const { host_->state().longest_delay_us = us; }
  // From here on waits are counted, and this one is not obeyed.
  void mutate(int wait) const { driver.forget_wait(wait); }
  void end(int waits) const {
    if (driver.waits() != waits) ::_exit(2);
    driver.forget_wait(kObeyAll);
  }

  StandIn driver;
  const leat_device_api* api = nullptr;
  leat_device* d = nullptr;

 private:
  std::string path_ = std::filesystem::temp_directory_path() / ("leat-waits-" + std::to_string(::getpid()));
  std::unique_ptr<fake::Host> host_;
};

// 0: as it should be.
inline int ended_with(void (*scenario)(int), int forgotten) {
  const pid_t child = ::fork();
  if (child == 0) {
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (forgotten != kObeyAll) (void)::dup2(nowhere, STDERR_FILENO);  // a sanitizer's report of what was meant
    scenario(forgotten);
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct Wait {
  const char* name;
  void (*scenario)(int);
  int index;  // among the action's waits
};
class LeftOut : public testing::TestWithParam<Wait> {};
TEST_P(LeftOut, IsNoticed) {
  const int obeyed = ended_with(GetParam().scenario, kObeyAll);
  if (obeyed == kNoEncoder) GTEST_SKIP() << "libavcodec has no encoder for it";
  EXPECT_EQ(obeyed, 0);
  // A busy machine may hold up this thread for longer than the work takes; hardly each time.
  int attempts = 1;
  while (ended_with(GetParam().scenario, GetParam().index) == 0 && ++attempts <= kAttempts) {
  }
  EXPECT_LE(attempts, kAttempts) << "nobody missed this wait";
}

}  // namespace leat
