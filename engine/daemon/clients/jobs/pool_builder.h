// What leatd and a client share, made, sealed, rung and let go of where nobody waits for it (job_threads.h): the memory
// of streams and links, and sockets. How much memory it is each client chooses; sealing waits for whoever is at work on
// it; waking somebody takes longer the more of his threads wait; and closing the last descriptor of something, or a
// socket with descriptors in it, takes as long as its maker likes. So neither the control thread nor another client
// waits for any of it.
//
// Memory is brought in steps of a few milliseconds. Users take turns, a step each, whatever each has asked for, and so
// do the jobs of one user; what a client connects with and what it gives back come before what it opens. What is asked
// for comes back by next(), once, also when it failed or was cancelled, with `overdue` before it where a step held its
// thread for long (JobThreads::kOverdueNs). There is a bounded number of jobs a session, so the queue is as bounded as
// those are.
//
// Thread rule: everything on the control thread, which watches fd().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/daemon/clients/jobs/job_threads.h"
#include "leat/result.hpp"
#include "shm/src/client/client_port.h"
#include "shm/src/rings/doorbell.h"
#include "shm/src/segments/stream_pool.h"

namespace leat::daemon {

struct PoolJob {
  enum class Work : std::uint8_t {
    build,         // spec -> pool
    secure,        // pool: its client has mapped it (StreamPool::secure)
    link,          // -> port, and fds as Welcome carries them
    secure_links,  // port: likewise (ClientPort::secure)
    ring,          // port's bell -> own_ns
    drain,         // port's bell -> own_ns, drained
    hang_up,       // port's bell, and fds, copies of sockets -> nothing
    discard,       // pool -> nothing
    close,         // port and fds -> nothing
    overdue        // comes back only: a step of this session has held its thread for long, and still does
  };
  Work work = Work::build;
  std::uint32_t user = 0;     // who takes turns with others
  std::uint64_t session = 0;  // its serial
  std::uint32_t stream = 0;
  shm::PoolSpec spec;
  std::vector<leat_part> directory;  // of its results
  std::unique_ptr<shm::StreamPool> pool;
  std::shared_ptr<shm::ClientPort> port;
  std::vector<shm::Fd> fds;
  std::int64_t own_ns = 0;  // CPU time that it took
  shm::Drained drained = shm::Drained::rings;
  std::string error;  // when it comes back; empty: done
};

class PoolBuilder {
 public:
  static Result<std::unique_ptr<PoolBuilder>> create();
  ~PoolBuilder();

  void ask(PoolJob job);
  // Memory for a session that has ended comes back with an error at its next step; everything else is done.
  void cancel(std::uint64_t session);
  [[nodiscard]] bool next(PoolJob& out);
  int fd() const noexcept;  // readable when there is something; next() until there is not

 private:
  struct Desk;
  struct Entry;
  PoolBuilder() = default;
  std::shared_ptr<Desk> desk_;
  JobThreads job_threads_;
};

}  // namespace leat::daemon
