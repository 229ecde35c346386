#include "engine/daemon/pool_builder.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace leat::daemon {
namespace {

constexpr std::uint64_t kStepBytes = 4 << 20;  // 1 to 4 ms
constexpr int kNicer = 5;                      // opening a stream is less urgent than frames

}  // namespace

Result<std::unique_ptr<PoolBuilder>> PoolBuilder::create() {
  std::unique_ptr<PoolBuilder> builder(new PoolBuilder);
  auto bell = shm::Doorbell::create();
  if (!bell.ok()) return Error{bell.error()};
  builder->bell_ = std::move(*bell);
  builder->thread_ = std::thread([b = builder.get()] { b->run(); });
  return builder;
}

PoolBuilder::~PoolBuilder() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  asked_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void PoolBuilder::ask(PoolJob job) {
  const std::lock_guard lock(mutex_);
  auto entry = std::make_shared<Entry>();
  entry->job = std::move(job);
  auto& queue = queues_[entry->job.user];
  const bool first = entry->job.work == PoolJob::Work::secure_links || entry->job.work == PoolJob::Work::discard;
  queue.insert(first ? queue.begin() : queue.end(), std::move(entry));
  asked_.notify_one();
}

void PoolBuilder::cancel(std::uint64_t session) {
  const std::lock_guard lock(mutex_);
  for (auto& [user, queue] : queues_)
    for (auto& entry : queue)
      if (entry->job.session == session && entry->job.work != PoolJob::Work::discard) entry->cancelled = true;
}

bool PoolBuilder::next(PoolJob& out) {
  const std::lock_guard lock(mutex_);
  if (done_.empty()) {
    bell_.drain();  // not before: who leaves some is woken again
    return false;
  }
  out = std::move(done_.front());
  done_.pop_front();
  return true;
}

void PoolBuilder::run() {
  const auto self = static_cast<id_t>(gettid());
  (void)setpriority(PRIO_PROCESS, self, getpriority(PRIO_PROCESS, self) + kNicer);
  std::unique_lock lock(mutex_);
  while (true) {
    asked_.wait(lock, [&] { return ending_ || !queues_.empty(); });
    if (ending_) return;
    auto turn = queues_.upper_bound(last_user_);
    if (turn == queues_.end()) turn = queues_.begin();
    const std::uint32_t user = last_user_ = turn->first;
    const std::shared_ptr<Entry> entry = std::move(turn->second.front());
    turn->second.pop_front();
    turn->second.push_back(entry);  // behind the others until it is over; cancel() finds it there
    const bool cancelled = entry->cancelled;
    lock.unlock();
    if (cancelled) entry->job.error = "its client has gone";
    const bool over = cancelled || step(*entry);
    lock.lock();
    if (!over) continue;
    auto& queue = queues_[user];
    queue.erase(std::find(queue.begin(), queue.end(), entry));
    if (queue.empty()) queues_.erase(user);
    done_.push_back(std::move(entry->job));
    bell_.ring();
  }
}

bool PoolBuilder::step(Entry& entry) {
  PoolJob& job = entry.job;
  const auto failed = [&](const auto& result) {
    if (!result.ok()) job.error = result.error();
    return !result.ok();
  };
  const bool first = !std::exchange(entry.begun, true);
  switch (job.work) {
    case PoolJob::Work::discard:
      job.pool.reset();
      return true;
    case PoolJob::Work::secure_links:
      (void)failed(job.port->secure());
      return true;
    case PoolJob::Work::build:
      if (first) {
        auto pool = shm::StreamPool::begin(job.spec, job.directory);
        if (failed(pool)) return true;
        job.pool = std::make_unique<shm::StreamPool>(std::move(*pool));
      }
      break;
    case PoolJob::Work::secure:
      if (first && failed(job.pool->secure())) return true;
      break;
  }
  const auto whole = job.pool->grow(kStepBytes);
  return failed(whole) || *whole;
}

}  // namespace leat::daemon
