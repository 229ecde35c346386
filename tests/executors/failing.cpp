// An executor that never opens a session: its option `open` says how it fails. What a broken model or runtime does to a
// worker before it is ready (tests/serving/bad_config/bad_config_test.cpp).
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "leat/executor.h"

namespace {

int open_session(const leat_session_options* options, leat_session**, char* error, std::size_t error_bytes) {
  const std::string_view extra = options->extra != nullptr ? options->extra : "";
  if (extra.find("open=crash") != std::string_view::npos) (void)std::raise(SIGSEGV);
  if (extra.find("open=exit") != std::string_view::npos) std::_Exit(7);
  if (extra.find("open=hang") != std::string_view::npos)
    for (;;) (void)pause();
  std::snprintf(error, error_bytes, "the failing executor refuses");
  return 1;
}

// Nothing of these is ever called: there is no session.
void close_session(leat_session*) {}
int describe(leat_session*, std::uint32_t, leat_tensor*, std::uint32_t*, leat_tensor*, std::uint32_t*, char*,
             std::size_t) {
  return 1;
}
int run(leat_session*, std::uint32_t, const leat_tensor*, std::uint32_t, leat_tensor*, std::uint32_t, char*,
        std::size_t) {
  return 1;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const leat_executor* leat_executor_entry(void) {
  static constexpr leat_executor kExecutor = {LEAT_EXECUTOR_ABI, "failing", open_session, close_session, describe, run};
  return &kExecutor;
}
