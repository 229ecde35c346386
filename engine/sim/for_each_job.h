// Independent runs of the simulator, side by side on threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace leat::sim {

// work(0) ... work(jobs - 1), each once, on so many threads, this one among them. `work` may run in several at a time.
template <class Work>
void for_each_job(std::size_t jobs, std::size_t threads, const Work& work) {
  std::atomic<std::size_t> next{0};
  const auto run = [&] {
    // A counter only; join() publishes what the jobs wrote.
    for (std::size_t job = next.fetch_add(1, std::memory_order_relaxed); job < jobs;
         job = next.fetch_add(1, std::memory_order_relaxed))
      work(job);
  };
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < std::min(threads, jobs); ++i) others.emplace_back(run);
  run();
  for (std::thread& t : others) t.join();
}

}  // namespace leat::sim
