// Work that takes as long as a client decides, done where nobody waits for it: jobs in a queue of their user's, and
// threads that may be lost in one.
//
// Jobs are done in steps. Users take turns, a step each, and one step at a time runs in the ordinary way. One that is
// under way for longer than kLateNs has lost its thread: another goes on with the other users' jobs, and his wait. So
// a user can lose one thread at a time, and all together kMaxThreads less the one or two that the others need; a
// thread that comes back from its step after all stays or ends, as they are needed. A job that can be hurried is: its
// thread is sent a signal (SIGUSR2, which does nothing else), which ends what waits inside the kernel and can be ended,
// such as the closing of a socket that lingers.
//
// Thread rule: create, ask and destroy on one thread. Steps run on threads of its own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

namespace leat::daemon {

class Job {
 public:
  virtual ~Job() = default;
  virtual bool step() = 0;  // true: over
  // Once, if a step has held its thread for kOverdueNs (held_time.h), while it does. Under the threads' lock: it must
  // not ask them.
  virtual void overdue() {}
  bool urgent = false;   // before the user's jobs that are not, in the order in which they were asked for
  bool hurried = false;  // a signal does no harm in it
};

class JobThreads {
 public:
  static constexpr std::int64_t kLateNs = 5'000'000, kHurryNs = 5'000'000;
  // Of time that is the host's doing some is seen as the step's: bringing large pages waits until the kernel's own
  // threads have been on every core, and on a busy host honest steps were seen to be held for more than a second.
  static constexpr std::int64_t kOverdueNs = 5'000'000'000;
  static constexpr unsigned kMaxThreads = 18;

  JobThreads();
  // Waits a moment for what is under way. What is left then is left to the end of the process: to let go of it here
  // could take as long as in its queue.
  ~JobThreads();
  JobThreads(const JobThreads&) = delete;
  JobThreads& operator=(const JobThreads&) = delete;

  void ask(std::uint32_t user, std::shared_ptr<Job> job);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace leat::daemon
