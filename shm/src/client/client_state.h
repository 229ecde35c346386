// What stands behind the client library's handles (leat.h): shared by the files that implement it, and nobody else's.
#pragma once

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "leat/leat.h"
#include "shm/src/client/bell_watch.h"
#include "shm/src/client/grant_view.h"
#include "shm/src/protocol/descriptors.h"
#include "shm/src/rings/doorbell.h"
#include "shm/src/rings/frame_clock.h"
#include "shm/src/rings/ring.h"
#include "shm/src/rings/wait_policy.h"
#include "shm/src/segments/stream_pool.h"

struct leat_stream {
  leat_client* client = nullptr;
  std::uint32_t index = 0;
  std::int64_t slo_ns = 0;
  leat::shm::StreamView view;
  leat::shm::Color color;  // of frames that say nothing
  struct Answered {
    std::int64_t dispatched_ns = 0;
    leat::shm::Color color;
  };
  std::vector<Answered> answered;               // by slot, of its latest answer
  std::vector<std::vector<std::string>> names;  // by head
  // Submitting thread.
  leat::shm::SchedulePage* schedule = nullptr;  // in the downlink; nullptr: not coordinated
  leat::shm::FrameClock clock;
  bool waits_for_grants = false;
  leat::shm::GrantView grants;
};

struct leat_client {
  // Control exchanges; the hot paths touch none of these.
  struct Control {
    std::mutex mutex;
    leat::shm::Fd socket;
    std::uint32_t request = 1;
    std::int64_t timeout_ns = 0;
    std::string path;
    pid_t process = ::getpid();  // that connected
  } control;

  leat::shm::Mapping uplink, downlink;
  leat::shm::BellSocket bell;
  leat::shm::SleepWord* sleep = nullptr;
  leat::shm::BellWatch watch;
  std::array<std::unique_ptr<leat_stream>, leat::shm::kMaxStreamsPerClient> streams;
  std::atomic<bool> disconnected{false};  // relaxed: a hint that saves system calls, nothing is published with it

  // Submitting thread.
  leat::shm::RingProducer<leat::shm::SubmissionDescriptor> submissions;
  leat::shm::Waker daemon_waker;
  bool unflushed = false;

  // Answering thread.
  leat::shm::RingConsumer<leat::shm::CompletionDescriptor> completions;
  leat::shm::WaitPolicy wait;
  bool fd_used = false;
  std::deque<leat::shm::CompletionDescriptor> kept;  // answers of other streams found while one was closing
};
