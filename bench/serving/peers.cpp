#include "bench/serving/peers.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>

#include "bench/study.h"
#include "tools/base/text/quantile.h"

namespace leat::bench {

Cores choose_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> usable;
  for (int c = 0; c < CPU_SETSIZE && usable.size() < 2; ++c)
    if (CPU_ISSET(c, &set)) usable.push_back(c);
  return usable.empty() ? Cores{} : Cores{usable.front(), usable.back()};
}

void prefer() { static_cast<void>(setpriority(PRIO_PROCESS, 0, -20)); }

void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(0, sizeof set, &set);
}

Unpinned::Unpinned() {
  CPU_ZERO(&before_);
  sched_getaffinity(0, sizeof before_, &before_);
  cpu_set_t all;
  CPU_ZERO(&all);
  for (int c = 0; c < CPU_SETSIZE; ++c) CPU_SET(c, &all);
  sched_setaffinity(0, sizeof all, &all);  // the kernel takes away what may not be used
}
Unpinned::~Unpinned() { sched_setaffinity(0, sizeof before_, &before_); }

subprocess::Process start_pinned(int core, const std::function<void()>& run) {
  std::fflush(nullptr);
  auto process = subprocess::Process::start([&] {
    pin(core);
    run();
  });
  if (!process.ok()) {
    std::fprintf(stderr, "transport: %s\n", process.error().c_str());
    std::exit(2);
  }
  return std::move(*process);
}

Shared::Shared(std::uint64_t bytes) : bytes_(bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (at == MAP_FAILED) {
    std::perror("transport: no memory to share");
    std::exit(2);
  }
  data_ = static_cast<std::byte*>(at);
}
Shared::~Shared() { munmap(data_, bytes_); }

Figure figure(std::vector<double> samples) {
  return {quantile(samples, 0.5), quantile(samples, 0.1), quantile(samples, 0.9), samples.size()};
}

}  // namespace leat::bench
