#include "shm/src/client/client_errors.h"

#include <cstdlib>
#include <ctime>
#include <utility>

#include "shm/src/protocol/listener.h"
#include "shm/src/rings/clock.h"

namespace leat::shm {

namespace {
thread_local std::string t_text;
thread_local const char* t_last = "no error";
}  // namespace

leat_error fail(leat_error code, std::string text) {
  t_text = std::move(text);
  t_last = t_text.c_str();
  return code;
}

leat_error fail_static(leat_error code) noexcept {
  t_last = leat_error_text(code);
  return code;
}

const char* last_error() noexcept { return t_last; }

}  // namespace leat::shm

uint32_t leat_abi_version(void) { return LEAT_ABI_VERSION; }

const char* leat_error_name(leat_error error) {
  switch (error) {
#define X(name, value, text) \
  case LEAT_ERROR_##name:    \
    return #name;
    LEAT_ERRORS(X)
#undef X
  }
  return "unknown";
}

const char* leat_error_text(leat_error error) {
  switch (error) {
#define X(name, value, text) \
  case LEAT_ERROR_##name:    \
    return text;
    LEAT_ERRORS(X)
#undef X
  }
  return "unknown error";
}

const char* leat_last_error(void) { return leat::shm::last_error(); }

// The views below end in a NUL: they are made of string literals.
const char* leat_outcome_name(uint8_t outcome) { return leat::name_of(static_cast<leat::Outcome>(outcome)).data(); }
const char* leat_reason_name(uint8_t reason) { return leat::name_of(static_cast<leat::Reason>(reason)).data(); }
const char* leat_reason_text(uint8_t reason) { return leat::text_of(static_cast<leat::Reason>(reason)).data(); }

int64_t leat_now_ns(void) { return leat::shm::monotonic_ns(); }

const char* leat_default_socket(void) {
  static const std::string path = [] {
    if (const char* named = std::getenv("LEAT_SOCKET"); named && *named) return std::string(named);
    if (const char* dir = std::getenv("XDG_RUNTIME_DIR"); dir && *dir) return std::string(dir) + "/leat.sock";
    return std::string(leat::shm::kSystemSocket);
  }();
  return path.c_str();
}
