// What benchmarks with several processes share: pinned ones, memory between them, and figures with their spread.
#pragma once

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "leat/result.hpp"
#include "shm/src/rings/clock.h"
#include "shm/src/rings/doorbell.h"
#include "shm/src/segments/segment.h"
#include "shm/src/segments/segment_layout.h"
#include "tools/base/subprocess/process.h"

namespace leat::bench {

// Where the two ends run. With one core everything shares it and the figures say so.
struct Cores {
  int near = 0;  // this process: client, and the relay's worker
  int far = 0;   // the peer: the other end of a pair, the scheduler
};
Cores choose_cores();
void prefer();  // ahead of other programs, where that is allowed; children inherit it
void pin(int core);
// As long as it lives this thread may run on every core of the host, and so may the programs it starts meanwhile.
class Unpinned {
 public:
  Unpinned();
  ~Unpinned();
  Unpinned(const Unpinned&) = delete;
  Unpinned& operator=(const Unpinned&) = delete;

 private:
  cpu_set_t before_;
};

// A copy of this process that runs the function on that core; killed with the object, and with this process.
subprocess::Process start_pinned(int core, const std::function<void()>& run);

// Memory shared with children forked later; zeroed.
class Shared {
 public:
  explicit Shared(std::uint64_t bytes);
  ~Shared();
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  template <class T>
  T* take(std::size_t count = 1) {  // line-aligned
    used_ = shm::round_up(used_, shm::kLine);
    T* at = reinterpret_cast<T*>(data_ + used_);
    used_ += count * sizeof(T);
    if (used_ > bytes_) std::abort();
    return at;
  }

 private:
  std::byte* data_;
  std::uint64_t bytes_, used_ = 0;
};

// Of several rounds: the median, and the tenth and ninetieth percentile beside it.
struct Figure {
  double median = 0, low = 0, high = 0;
  std::size_t rounds = 0;
};
Figure figure(std::vector<double> samples);

}  // namespace leat::bench
