// An executor whose batches take so much of the processor's time (burning.h), whatever processor it is: where others
// have the core as well it takes longer by the clock.
#include "tests/executors/burning.h"

#include <time.h>

#include <cstring>

#include "leat/executor.h"

namespace {

std::int64_t used_ns() {
  timespec t{};
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * std::int64_t{1'000'000'000} + t.tv_nsec;
}

int open_session(const leat_session_options*, leat_session** out, char*, size_t) {
  static int session;
  *out = reinterpret_cast<leat_session*>(&session);
  return 0;
}

void close_session(leat_session*) {}

int describe(leat_session*, std::uint32_t batch, leat_tensor* inputs, std::uint32_t* input_count, leat_tensor* outputs,
             std::uint32_t* output_count, char*, size_t) {
  inputs[0] = {};
  inputs[0].shape[0] = batch;
  inputs[0].rank = 2;
  inputs[0].dtype = LEAT_U8;
  outputs[0] = inputs[0];
  outputs[0].shape[1] = 8;
  outputs[0].bytes = batch * std::uint64_t{8};
  *input_count = *output_count = 1;
  return 0;
}

int run(leat_session*, std::uint32_t batch, const leat_tensor*, std::uint32_t, leat_tensor* outputs, std::uint32_t,
        char*, size_t) {
  std::memset(outputs[0].data, 0, batch * std::size_t{8});
  const std::int64_t end = used_ns() + leat::test::kBurnBatchNs + batch * leat::test::kBurnFrameNs;
  while (used_ns() < end) {
  }
  return 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const leat_executor* leat_executor_entry(void) {
  static constexpr leat_executor kExecutor = {LEAT_EXECUTOR_ABI, "burning", open_session, close_session, describe, run};
  return &kExecutor;
}
