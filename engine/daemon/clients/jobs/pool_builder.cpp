#include "engine/daemon/clients/jobs/pool_builder.h"

#include <sys/socket.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <utility>

#include "engine/daemon/metrics/slow_calls.h"
#include "shm/src/protocol/control_protocol.h"

namespace leat::daemon {
namespace {

using Work = PoolJob::Work;

constexpr std::uint64_t kStepBytes = 4 << 20;  // half a millisecond; 10 where the machine below must give it first
constexpr std::uint32_t kMaxInQueue = 4096;    // packets; sooner a socket's buffer is full

bool brings_memory(Work work) { return work == Work::build || work == Work::secure || work == Work::secure_links; }

}  // namespace

// Where the threads put what is done; it outlives the builder if a thread is lost.
struct PoolBuilder::Desk {
  shm::Doorbell bell;
  std::mutex mutex;
  std::deque<PoolJob> done;
  std::vector<std::shared_ptr<Entry>> asked;
};

struct PoolBuilder::Entry final : Job, std::enable_shared_from_this<Entry> {
  Entry(std::shared_ptr<Desk> its_desk, PoolJob its_job) : desk(std::move(its_desk)), job(std::move(its_job)) {
    urgent = job.work != Work::build && job.work != Work::secure;
    hurried = job.work == Work::close || job.work == Work::hang_up;
    work = job.work;
    user = job.user;
    session = job.session;
  }
  bool step() override;
  void overdue() override;
  bool go_on();

  std::shared_ptr<Desk> desk;
  PoolJob job;  // of the job's thread, until it is over
  Work work = Work::build;
  std::uint32_t user = 0;
  std::uint64_t session = 0;
  bool begun = false;
  bool cancelled = false;  // under the desk's lock
};

bool PoolBuilder::Entry::step() {
  bool stop;
  {
    const std::lock_guard lock(desk->mutex);
    stop = cancelled;
  }
  if (stop) job.error = "its client has gone";
  if (!stop && !go_on()) return false;
  if (work != Work::link) job.port.reset();  // it may be the last to let go of it, so not who takes the job back
  const std::lock_guard lock(desk->mutex);
  std::erase_if(desk->asked, [&](const auto& e) { return e.get() == this; });
  desk->done.push_back(std::move(job));
  desk->bell.ring();
  return true;
}

void PoolBuilder::Entry::overdue() {
  PoolJob word;
  word.work = Work::overdue;
  word.user = user;
  word.session = session;
  const std::lock_guard lock(desk->mutex);
  desk->done.push_back(std::move(word));
  desk->bell.ring();
}

bool PoolBuilder::Entry::go_on() {
  const auto failed = [&](const auto& result) {
    if (!result.ok()) job.error = result.error();
    return !result.ok();
  };
  const bool first = !std::exchange(begun, true);
  const std::int64_t from = own_cpu_ns();
  switch (work) {
    case Work::discard:
      job.pool.reset();
      return true;
    case Work::close:
      job.fds.clear();
      return true;
    case Work::hang_up:
      if (job.port) job.port->hang_up();
      for (const shm::Fd& fd : job.fds) {
        (void)::shutdown(fd.get(), SHUT_RDWR);
        shm::throw_away(fd.get(),
                        kMaxInQueue);  // in it may lie its own end, held by nobody who could read or close it
      }
      job.fds.clear();
      return true;
    case Work::ring:
      job.port->ring();
      job.own_ns = own_cpu_ns() - from;
      return true;
    case Work::drain:
      job.drained = job.port->drain_bell();
      job.own_ns = own_cpu_ns() - from;
      return true;
    case Work::link: {
      auto port = shm::ClientPort::create();
      if (failed(port)) return true;
      job.port = std::move(*port);
      auto up = job.port->uplink_for_client();
      auto down = job.port->downlink_for_client();
      if (failed(up) || failed(down)) return true;
      job.fds.push_back(std::move(*up));
      job.fds.push_back(std::move(*down));
      job.fds.push_back(job.port->bell_for_client());
      return true;
    }
    case Work::secure_links:
      (void)failed(job.port->secure());
      return true;
    case Work::build:
      if (first) {
        auto pool = shm::StreamPool::begin(job.spec, job.directory);
        if (failed(pool)) return true;
        job.pool = std::make_unique<shm::StreamPool>(std::move(*pool));
      }
      break;
    case Work::secure:
      if (first && failed(job.pool->secure())) return true;
      break;
    case Work::overdue:
      return true;
  }
  const auto whole = job.pool->grow(kStepBytes);
  return failed(whole) || *whole;
}

Result<std::unique_ptr<PoolBuilder>> PoolBuilder::create() {
  std::unique_ptr<PoolBuilder> builder(new PoolBuilder);
  auto bell = shm::Doorbell::create();
  if (!bell.ok()) return Error{bell.error()};
  builder->desk_ = std::make_shared<Desk>();
  builder->desk_->bell = std::move(*bell);
  return builder;
}

PoolBuilder::~PoolBuilder() = default;

int PoolBuilder::fd() const noexcept { return desk_->bell.fd(); }

void PoolBuilder::ask(PoolJob job) {
  const std::uint32_t user = job.user;
  auto entry = std::make_shared<Entry>(desk_, std::move(job));
  {
    const std::lock_guard lock(desk_->mutex);
    desk_->asked.push_back(entry);
  }
  job_threads_.ask(user, std::move(entry));
}

void PoolBuilder::cancel(std::uint64_t session) {
  const std::lock_guard lock(desk_->mutex);
  for (auto& entry : desk_->asked)
    if (entry->session == session && brings_memory(entry->work)) entry->cancelled = true;
}

bool PoolBuilder::next(PoolJob& out) {
  const std::lock_guard lock(desk_->mutex);
  if (desk_->done.empty()) {
    desk_->bell.drain();  // not before: who leaves some is woken again
    return false;
  }
  out = std::move(desk_->done.front());
  desk_->done.pop_front();
  return true;
}

}  // namespace leat::daemon
