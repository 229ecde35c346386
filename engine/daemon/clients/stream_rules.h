// Whether a stream may be what its client asks for: that its frames are what the application takes, and that its user
// may have it. Where leatd has room for it is client_sessions.cpp. Pure.
#pragma once

#include <string>
#include <vector>

#include "engine/daemon/clients/served_application.h"
#include "engine/daemon/configuration/user_limits.h"
#include "leat/leat.h"
#include "shm/src/counters/counters.h"
#include "shm/src/protocol/control_protocol.h"

namespace leat::daemon {

// What stands against something asked for; error ok: nothing does.
struct Objection {
  leat_error error = LEAT_ERROR_ok;
  shm::Refusal why = shm::Refusal::none;
  std::string text;
};

// How many frame slots a stream gets whose client leaves it open: at most as many as it asks for.
[[nodiscard]] std::uint32_t slots_for(const shm::OpenStream& asked, const ServedApplication& application);

// Empty: the stream's frames are what the application takes. A leading dimension of one item may be there or not.
std::string problem_of_tensors(const shm::PoolSpec& pool, const std::vector<leat_tensor_shape>& wanted);

// Empty: every partition that takes the application's frames decodes the stream's, or they are no bitstream.
std::string problem_of_codec(const shm::PoolSpec& pool, const ServedApplication& application);

// who: the user's name, for the message.
[[nodiscard]] Objection objection_to_settings(const std::string& who, const UserLimits& limits,
                                              const shm::StreamSettings& settings,
                                              const ServedApplication& application);

}  // namespace leat::daemon
