// The pool builder without its thread, linked in the place of engine/daemon/pool_builder.cpp: what is asked for is done
// when the control thread looks for it, as soon as the harness lets it (let_pools_work), in the order asked.
#include "tests/fuzz/stepped_pools.h"

#include <algorithm>
#include <utility>

namespace leat::fuzz {
namespace {
std::uint32_t g_allowed = 0;
}
void let_pools_work(std::uint32_t jobs) { g_allowed = jobs; }

namespace {

void work(daemon::PoolJob& job) {
  using Work = daemon::PoolJob::Work;
  const auto note = [&](const auto& result) {
    if (!result.ok()) job.error = result.error();
  };
  switch (job.work) {
    case Work::discard:
      return job.pool.reset();
    case Work::secure_links:
      return note(job.port->secure());
    case Work::build: {
      auto pool = shm::StreamPool::begin(job.spec, job.directory);
      note(pool);
      if (pool.ok()) job.pool = std::make_unique<shm::StreamPool>(std::move(*pool));
      break;
    }
    case Work::secure:
      note(job.pool->secure());
      break;
  }
  if (job.error.empty()) note(job.pool->grow(UINT64_MAX));
}

}  // namespace
}  // namespace leat::fuzz

namespace leat::daemon {

Result<std::unique_ptr<PoolBuilder>> PoolBuilder::create() {
  std::unique_ptr<PoolBuilder> builder(new PoolBuilder);
  auto bell = shm::Doorbell::create();
  if (!bell.ok()) return Error{bell.error()};
  builder->bell_ = std::move(*bell);
  return builder;
}

PoolBuilder::~PoolBuilder() = default;

void PoolBuilder::ask(PoolJob job) {
  auto entry = std::make_shared<Entry>();
  entry->job = std::move(job);
  queues_[0].push_back(std::move(entry));
  bell_.ring();
}

void PoolBuilder::cancel(std::uint64_t session) {
  for (auto& entry : queues_[0])
    if (entry->job.session == session && entry->job.work != PoolJob::Work::discard) entry->cancelled = true;
}

bool PoolBuilder::next(PoolJob& out) {
  auto& queue = queues_[0];
  if (queue.empty() || fuzz::g_allowed == 0) {
    if (queue.empty()) bell_.drain();
    return false;
  }
  --fuzz::g_allowed;
  Entry& entry = *queue.front();
  if (entry.cancelled)
    entry.job.error = "its client has gone";
  else
    fuzz::work(entry.job);
  out = std::move(entry.job);
  queue.pop_front();
  return true;
}

}  // namespace leat::daemon
