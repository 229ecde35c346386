#include "engine/daemon/clients/lanes.h"

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

#include "shm/src/rings/clock.h"

namespace leat::daemon {
namespace {

constexpr int kNicer = 5;  // all this is less urgent than frames
constexpr int kSignal = SIGUSR2;
constexpr unsigned kIdleThreads = 2;  // one to do the work, one to look after it
constexpr auto kLastMoment = std::chrono::milliseconds(200);

struct Lane {
  std::deque<std::shared_ptr<LaneTask>> urgent, others;
  std::shared_ptr<LaneTask> running;  // none: nothing is under way
  pthread_t thread{};
  std::int64_t began_ns = 0, hurried_ns = 0;
  bool late = false, told = false;

  bool waits() const noexcept { return !running && (!urgent.empty() || !others.empty()); }
  std::int64_t next_look_ns() const noexcept {
    if (!late) return began_ns + Lanes::kLateNs;
    return std::min(running->hurried ? hurried_ns + Lanes::kHurryNs : INT64_MAX,
                    told ? INT64_MAX : began_ns + Lanes::kOverdueNs);
  }
};

}  // namespace

struct Lanes::Shared : std::enable_shared_from_this<Lanes::Shared> {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::uint32_t, Lane> lanes;  // [user]
  std::uint32_t last_user = 0;
  unsigned threads = 0, idle = 0;
  bool watched = false, ending = false;

  // All of them under the lock.
  void start_thread();
  void serve(std::unique_lock<std::mutex>& lock);
  void rest(std::unique_lock<std::mutex>& lock, std::int64_t now);
  void work(std::unique_lock<std::mutex>& lock, std::uint32_t user, std::int64_t now);
  void look_after(std::int64_t now);
  std::map<std::uint32_t, Lane>::iterator next();
};

void Lanes::Shared::start_thread() {
  if (threads == kMostThreads) return;
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

void Lanes::Shared::serve(std::unique_lock<std::mutex>& lock) {
  while (!ending) {
    const std::int64_t now = shm::monotonic_ns();
    look_after(now);
    if (const auto lane = next(); lane != lanes.end())
      work(lock, lane->first, now);
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
void Lanes::Shared::rest(std::unique_lock<std::mutex>& lock, std::int64_t now) {
  std::int64_t look = INT64_MAX;
  for (const auto& [user, lane] : lanes)
    if (lane.running) look = std::min(look, lane.next_look_ns());
  if (look == INT64_MAX || watched) return changed.wait(lock);
  watched = true;
  (void)changed.wait_for(lock, std::chrono::nanoseconds(std::max<std::int64_t>(look - now, 0)));
  watched = false;
}

void Lanes::Shared::work(std::unique_lock<std::mutex>& lock, std::uint32_t user, std::int64_t now) {
  Lane& lane = lanes[user];
  auto& queue = lane.urgent.empty() ? lane.others : lane.urgent;
  last_user = user;
  lane.running = std::move(queue.front());
  queue.pop_front();
  lane.thread = pthread_self();
  lane.began_ns = lane.hurried_ns = now;
  lane.late = lane.told = false;
  if (--idle == 0) start_thread();
  if (!watched) changed.notify_one();
  lock.unlock();
  const bool over = lane.running->step();
  lock.lock();
  ++idle;
  const std::shared_ptr<LaneTask> task = std::move(lane.running);
  lane.running = nullptr;
  if (!over) (task->urgent ? lane.urgent : lane.others).push_back(task);  // behind the user's other tasks
  if (!lane.waits()) lanes.erase(user);
  if (lanes.empty()) changed.notify_all();  // for the destructor
}

void Lanes::Shared::look_after(std::int64_t now) {
  for (auto& [user, lane] : lanes) {
    if (!lane.running || now < lane.next_look_ns()) continue;
    lane.late = true;
    if (lane.running->hurried && now >= lane.hurried_ns + kHurryNs) {
      lane.hurried_ns = now;
      (void)pthread_kill(lane.thread, kSignal);
    }
    if (!lane.told && now >= lane.began_ns + kOverdueNs) {
      lane.told = true;
      lane.running->overdue();
    }
  }
}

std::map<std::uint32_t, Lane>::iterator Lanes::Shared::next() {
  if (std::any_of(lanes.begin(), lanes.end(), [](const auto& l) { return l.second.running && !l.second.late; }))
    return lanes.end();
  const auto from = lanes.upper_bound(last_user);
  const auto waits = [](const auto& l) { return l.second.waits(); };
  const auto found = std::find_if(from, lanes.end(), waits);
  if (found != lanes.end()) return found;
  const auto again = std::find_if(lanes.begin(), from, waits);
  return again == from ? lanes.end() : again;
}

Lanes::Lanes() : shared_(std::make_shared<Shared>()) {
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

Lanes::~Lanes() {
  std::unique_lock lock(shared_->mutex);
  (void)shared_->changed.wait_for(lock, kLastMoment, [&] { return shared_->lanes.empty(); });
  shared_->ending = true;
  shared_->changed.notify_all();
  if (shared_->changed.wait_for(lock, kLastMoment, [&] { return shared_->threads == 0; }) && shared_->lanes.empty())
    return;
  static auto* const left = new std::vector<std::shared_ptr<Shared>>;
  left->push_back(shared_);
}

void Lanes::ask(std::uint32_t user, std::shared_ptr<LaneTask> task) {
  const std::lock_guard lock(shared_->mutex);
  Lane& lane = shared_->lanes[user];
  (task->urgent ? lane.urgent : lane.others).push_back(std::move(task));
  if (shared_->threads == 0) shared_->start_thread();
  shared_->changed.notify_one();
}

}  // namespace leat::daemon
