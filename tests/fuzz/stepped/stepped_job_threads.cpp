// JobThreads without threads, linked in the place of engine/daemon/clients/jobs/job_threads.cpp: what is asked for is
// done when the harness says so, what is urgent first, a step at a time. There is one JobThreads at a time.
#include "tests/fuzz/stepped/stepped_job_threads.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace leat::fuzz {
namespace {

std::deque<std::shared_ptr<daemon::Job>>& waiting() {
  static std::deque<std::shared_ptr<daemon::Job>> jobs;
  return jobs;
}

}  // namespace

std::size_t waiting_jobs() { return waiting().size(); }

void run_jobs(std::uint32_t steps) {
  for (std::uint32_t i = 0; i < steps && !waiting().empty(); ++i) {
    const auto urgent = std::ranges::find_if(waiting(), [](const auto& job) { return job->urgent; });
    const auto next = urgent == waiting().end() ? waiting().begin() : urgent;
    const std::shared_ptr<daemon::Job> job = std::move(*next);
    waiting().erase(next);
    if (!job->step()) waiting().push_back(job);
  }
}

}  // namespace leat::fuzz

namespace leat::daemon {

struct JobThreads::Shared {};

JobThreads::JobThreads() = default;
JobThreads::~JobThreads() { fuzz::waiting().clear(); }
void JobThreads::ask(std::uint32_t, std::shared_ptr<Job> job) { fuzz::waiting().push_back(std::move(job)); }

}  // namespace leat::daemon
