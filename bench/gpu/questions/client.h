// A process that uses the GPU on request: an MPS client, a bystander, a load, a victim. The parent's side. Every call
// throws ProbeFailed with the client's own words when it fails. Not thread-safe.
#pragma once

#include <string>
#include <vector>

#include "bench/gpu/ask.h"
#include "bench/gpu/processes.h"

namespace leat::probe {

// In a client's environment: cudaDeviceSchedule... flags, set before its context.
inline constexpr const char* kScheduleVariable = "LEAT_PROBE_SCHEDULE";

class Client {
 public:
  // Starts the process and waits until it has a context (or says why not).
  explicit Client(const Environment& environment);
  // Asks it to leave, and kills it when it does not: a client that is killed may cost an MPS server's others something.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  [[nodiscard]] int sms() const noexcept { return sms_; }               // as the runtime reports them
  [[nodiscard]] double start_ms() const noexcept { return start_ms_; }  // making the context
  [[nodiscard]] pid_t pid() const noexcept { return child_.pid(); }

  int devices();  // that CUDA shows
  int census();   // SMs that ran blocks
  // Microseconds per run: "convolution" (the fixed one, batch 64), "copy" (128 MiB on the SMs), "upload" (32 MiB
  // pinned), "wake_by_stream" and "wake_by_event" (clocks.cpp).
  std::vector<double> measure(const std::string& work, int repeats);
  void begin_load();  // runs the fixed convolution again and again
  void end_load();
  // An error's name after a write to a bad address; the process's context is then lost.
  std::string fault();
  // Pins a memfd's mapping and reads it by a kernel (groups.h, register_and_read): empty, or the error's text.
  std::string register_host(const std::string& way, std::size_t bytes);
  // Runs and verifies a kernel: empty, or the error's text. Ends within the limit even when the client hangs.
  std::string check();
  void kill() {
    ended_ = true;
    child_.kill();
  }

 private:
  std::string ask(const std::string& kind, const std::string& body, std::chrono::seconds limit);
  Child child_;
  int sms_ = 0;
  double start_ms_ = 0;
  bool ended_ = false;
};

}  // namespace leat::probe
