// Saves the flight recorder (the events of the counters segment) to a file, through io_uring where the kernel allows
// it. Control thread. The file: 64-byte shm::Event records, oldest first.
#pragma once

#include <string>

#include "engine/daemon/scheduler_thread/counters_board.h"
#include "leat/result.hpp"

namespace leat::daemon {

Status save_recording(CountersBoard& board, const std::string& path);

}  // namespace leat::daemon
