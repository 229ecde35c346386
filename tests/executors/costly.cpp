// An executor whose frames cost what their first byte asks for (costly.h), however many come together: no setting of a
// processor heals that.
#include "tests/executors/costly.h"

#include <time.h>

#include <cerrno>
#include <cstring>

#include "leat/executor.h"

namespace {

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

int run(leat_session*, std::uint32_t batch, const leat_tensor* inputs, std::uint32_t, leat_tensor* outputs,
        std::uint32_t, char*, size_t) {
  std::memset(outputs[0].data, 0, batch * std::size_t{8});
  std::int64_t ns = leat::test::kCheapNs;
  for (std::uint32_t i = 0; i < batch; ++i)
    if (*static_cast<const unsigned char*>(inputs[i].data) == leat::test::kCostly) ns += leat::test::kCostlyNs;
  timespec left{0, ns};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
  return 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const leat_executor* leat_executor_entry(void) {
  static constexpr leat_executor kExecutor = {LEAT_EXECUTOR_ABI, "costly", open_session, close_session, describe, run};
  return &kExecutor;
}
