#include "engine/daemon/clients/jobs/job_threads.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "engine/daemon/clients/jobs/held_time.h"
#include "shm/src/rings/clock.h"

namespace leat::daemon {
namespace {

constexpr int kNicer = 5;  // all this is less urgent than frames
constexpr int kSignal = SIGUSR2;
constexpr unsigned kIdleThreads = 2;  // one to do the work, one to look after it
constexpr auto kLastMoment = std::chrono::milliseconds(200);

struct UserJobs {
  std::deque<std::shared_ptr<Job>> urgent, others;
  std::shared_ptr<Job> running;  // none: nothing is under way
  pthread_t thread{};
  std::int64_t began_ns = 0, hurried_ns = 0;
  HeldTime held;
  bool late = false, told = false;

  bool waits() const noexcept { return !running && (!urgent.empty() || !others.empty()); }
  std::int64_t next_look_ns() const noexcept {
    if (!late) return began_ns + JobThreads::kLateNs;
    return std::min(running->hurried ? hurried_ns + JobThreads::kHurryNs : INT64_MAX,
                    told ? INT64_MAX : held.next_look_ns());
  }
};

}  // namespace

struct JobThreads::Shared : std::enable_shared_from_this<JobThreads::Shared> {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::uint32_t, UserJobs> users;  // [user]
  std::uint32_t last_user = 0;
  unsigned threads = 0, idle = 0;
  bool watched = false, ending = false;

  // All of them under the lock.
  void start_thread();
  void serve(std::unique_lock<std::mutex>& lock);
  void rest(std::unique_lock<std::mutex>& lock, std::int64_t now);
  void work(std::unique_lock<std::mutex>& lock, std::uint32_t user, std::int64_t now);
  void look_after(std::int64_t now);
  std::map<std::uint32_t, UserJobs>::iterator next();
};

void JobThreads::Shared::start_thread() {
  if (threads == kMaxThreads) return;
  try {
    std::thread([self = shared_from_this()] {
      const auto id = static_cast<id_t>(gettid());
      // Beside the process, not beside whoever starts it, which may be a thread of this kind.
      (void)setpriority(PRIO_PROCESS, id, getpriority(PRIO_PROCESS, static_cast<id_t>(getpid())) + kNicer);
      std::unique_lock lock(self->mutex);
      self->serve(lock);
    }).detach();
  } catch (const std::system_error&) {  // those who are there go on, and try again
    return;
  }
  ++threads;
  ++idle;
}

void JobThreads::Shared::serve(std::unique_lock<std::mutex>& lock) {
  while (!ending) {
    const std::int64_t now = shm::monotonic_ns();
    look_after(now);
    if (const auto jobs = next(); jobs != users.end())
      work(lock, jobs->first, now);
    else if (idle > kIdleThreads)
      break;
    else
      rest(lock, now);
  }
  --idle;
  --threads;
  changed.notify_all();
}

// One of those who rest looks after the steps under way.
void JobThreads::Shared::rest(std::unique_lock<std::mutex>& lock, std::int64_t now) {
  std::int64_t look = INT64_MAX;
  for (const auto& [user, jobs] : users)
    if (jobs.running) look = std::min(look, jobs.next_look_ns());
  if (look == INT64_MAX || watched) return changed.wait(lock);
  watched = true;
  (void)changed.wait_for(lock, std::chrono::nanoseconds(std::max<std::int64_t>(look - now, 0)));
  watched = false;
}

void JobThreads::Shared::work(std::unique_lock<std::mutex>& lock, std::uint32_t user, std::int64_t now) {
  UserJobs& jobs = users[user];
  auto& queue = jobs.urgent.empty() ? jobs.others : jobs.urgent;
  last_user = user;
  jobs.running = std::move(queue.front());
  queue.pop_front();
  jobs.thread = pthread_self();
  jobs.began_ns = jobs.hurried_ns = now;
  jobs.held.begin(now);
  jobs.late = jobs.told = false;
  if (--idle == 0) start_thread();
  if (!watched) changed.notify_one();
  lock.unlock();
  const bool over = jobs.running->step();
  lock.lock();
  ++idle;
  const std::shared_ptr<Job> job = std::move(jobs.running);
  jobs.running = nullptr;
  if (!over) (job->urgent ? jobs.urgent : jobs.others).push_back(job);  // behind the user's other jobs
  if (!jobs.waits()) users.erase(user);
  if (users.empty()) changed.notify_all();  // for the destructor
}

void JobThreads::Shared::look_after(std::int64_t now) {
  for (auto& [user, jobs] : users) {
    if (!jobs.running || now < jobs.next_look_ns()) continue;
    jobs.late = true;
    if (jobs.running->hurried && now >= jobs.hurried_ns + kHurryNs) {
      jobs.hurried_ns = now;
      (void)pthread_kill(jobs.thread, kSignal);
    }
    if (!jobs.told && now >= jobs.held.next_look_ns() && jobs.held.look(now) >= kOverdueNs) {
      jobs.told = true;
      jobs.running->overdue();
    }
  }
}

std::map<std::uint32_t, UserJobs>::iterator JobThreads::Shared::next() {
  if (std::any_of(users.begin(), users.end(), [](const auto& l) { return l.second.running && !l.second.late; }))
    return users.end();
  const auto from = users.upper_bound(last_user);
  const auto waits = [](const auto& l) { return l.second.waits(); };
  const auto found = std::find_if(from, users.end(), waits);
  if (found != users.end()) return found;
  const auto again = std::find_if(users.begin(), from, waits);
  return again == from ? users.end() : again;
}

JobThreads::JobThreads() : shared_(std::make_shared<Shared>()) {
  struct sigaction nothing {};
  nothing.sa_handler = [](int) {};
  (void)sigaction(kSignal, &nothing, nullptr);
  const std::lock_guard lock(shared_->mutex);
  while (shared_->threads < kIdleThreads) {
    const unsigned before = shared_->threads;
    shared_->start_thread();
    if (shared_->threads == before) return;  // they are tried again when something is asked
  }
}

JobThreads::~JobThreads() {
  std::unique_lock lock(shared_->mutex);
  (void)shared_->changed.wait_for(lock, kLastMoment, [&] { return shared_->users.empty(); });
  shared_->ending = true;
  shared_->changed.notify_all();
  if (shared_->changed.wait_for(lock, kLastMoment, [&] { return shared_->threads == 0; }) && shared_->users.empty())
    return;
  static auto* const left = new std::vector<std::shared_ptr<Shared>>;
  left->push_back(shared_);
}

void JobThreads::ask(std::uint32_t user, std::shared_ptr<Job> job) {
  const std::lock_guard lock(shared_->mutex);
  UserJobs& jobs = shared_->users[user];
  (job->urgent ? jobs.urgent : jobs.others).push_back(std::move(job));
  if (shared_->threads == 0) shared_->start_thread();
  shared_->changed.notify_one();
}

}  // namespace leat::daemon
