// The memory of streams' pools, brought, sealed and given back on a thread of its own: how much it is each client
// chooses, so neither the control thread nor another client may wait for it.
//
// Work is done in steps of a few milliseconds. Users take turns, a step each, whatever each has asked for, and so do
// the jobs of one user; what a client connects with and what it gives back come before what it opens. What is asked for
// comes back by next(), once, also when it failed or was cancelled. There is at most one job a stream and one a
// session, so the queue is as bounded as those tables are.
//
// Thread rule: everything on the control thread, which watches fd().
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "leat/result.hpp"
#include "shm/src/client_port.h"
#include "shm/src/doorbell.h"
#include "shm/src/stream_pool.h"

namespace leat::daemon {

struct PoolJob {
  enum class Work : std::uint8_t {
    build,         // spec -> pool
    secure,        // pool: its client has mapped it (StreamPool::secure)
    secure_links,  // port: likewise (ClientPort::secure); it outlives the job
    discard        // pool -> nothing
  };
  Work work = Work::build;
  std::uint32_t user = 0;     // who takes turns with others
  std::uint64_t session = 0;  // its serial
  std::uint32_t stream = 0;
  shm::PoolSpec spec;
  std::vector<leat_part> directory;  // of its results
  std::unique_ptr<shm::StreamPool> pool;
  shm::ClientPort* port = nullptr;
  std::string error;  // when it comes back; empty: done
};

class PoolBuilder {
 public:
  static Result<std::unique_ptr<PoolBuilder>> create();
  ~PoolBuilder();  // after the step under way

  void ask(PoolJob job);
  // Those of a session that has ended come back with an error at their next step; what is to be discarded still is.
  void cancel(std::uint64_t session);
  [[nodiscard]] bool next(PoolJob& out);
  int fd() const noexcept { return bell_.fd(); }  // readable when there is something; next() until there is not

 private:
  struct Entry {
    PoolJob job;
    bool begun = false, cancelled = false;
  };
  PoolBuilder() = default;
  void run();
  static bool step(Entry& entry);  // true: over

  shm::Doorbell bell_;
  std::mutex mutex_;
  std::condition_variable asked_;
  std::map<std::uint32_t, std::deque<std::shared_ptr<Entry>>> queues_;  // [user]
  std::uint32_t last_user_ = 0;
  std::deque<PoolJob> done_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace leat::daemon
