// A stream as leatd grants it: carried whole from the message it was asked for with, by the command that opens it, to
// the scheduler thread's table. Values.
#pragma once

#include <cstdint>

#include "engine/core/scheduler.h"
#include "shm/src/protocol/stream_settings.h"

namespace leat::daemon {

struct GrantedStream {
  shm::StreamSettings settings;  // as asked for
  std::uint32_t application = 0;
  std::int64_t slo_ns = 0;                      // never 0
  std::uint32_t pool = 0, pool_generation = 0;  // pool: its counters record too
  std::uint64_t frame_bytes = 0;
  struct Owner {
    std::uint32_t user = 0;
    std::uint32_t record = 0;  // of his counters
    std::uint32_t share_permille = 1000;
    double coordinated_share = 1;  // the largest part of a partition for coordinated streams
    std::uint64_t session = 0;     // its serial: nobody can join another session's group
  } owner;
};

// Of the coordinated streams of one session that share what is asked for; 0: it is by itself.
[[nodiscard]] std::uint64_t group_of(const shm::StreamSettings& settings, std::uint64_t session) noexcept;
[[nodiscard]] core::StreamConfig config_of(const GrantedStream& stream) noexcept;

}  // namespace leat::daemon
