// The worker's end of the channel (channel.h) with its bell. One thread.
#pragma once

#include "engine/worker/link/channel.h"
#include "leat/result.hpp"
#include "shm/src/rings/doorbell.h"
#include "shm/src/segments/segment.h"

namespace leat::worker {

struct ChannelEnd {
  static Result<ChannelEnd> open(shm::Fd segment, shm::Fd bell);

  shm::Mapping memory;
  shm::BellSocket bell;
  shm::RingConsumer<DispatchCell> dispatches;
  shm::RingProducer<ReportCell> reports;
  shm::SleepWord* sleep = nullptr;  // this worker's
  shm::Waker daemon_waker;
};

}  // namespace leat::worker
