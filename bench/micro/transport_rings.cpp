#include "bench/micro/transport_rings.h"

#include <sched.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <boost/lockfree/spsc_queue.hpp>
#include <memory>
#include <new>

#include "bench/study.h"
#include "shm/src/protocol/descriptors.h"
#include "shm/src/rings/ring.h"
#include "tools/base/text/quantile.h"

namespace leat::bench {
namespace {

using shm::SubmissionDescriptor;

constexpr std::uint32_t kCapacity = 1024;
constexpr std::uint32_t kTrips = 2000;        // round trips a round: short, so that many rounds pass undisturbed
constexpr std::uint64_t kMessages = 1 << 16;  // messages a throughput round
constexpr std::uint32_t kBatch = 32;

using BoostQueue = boost::lockfree::spsc_queue<SubmissionDescriptor, boost::lockfree::capacity<kCapacity>>;

enum class Phase : std::uint32_t { none, floor, one_line, trips, batches, single, boost };

struct alignas(64) Line {
  std::atomic<std::uint32_t> value;
};

struct RingMemory {
  SubmissionDescriptor* cells;
  shm::IndexLine* index;
};

// Everything two processes share. The child sleeps on `bell` between phases, so that it disturbs nothing.
struct Pair {
  explicit Pair(Shared& memory)
      : phase(memory.take<Line>()),
        ready(memory.take<Line>()),
        there_line(memory.take<Line>()),
        back_line(memory.take<Line>()),
        done(memory.take<Line>()),
        preempted(memory.take<Line>()) {
    for (RingMemory* r : {&there, &back})
      *r = {memory.take<SubmissionDescriptor>(kCapacity), memory.take<shm::IndexLine>()};
    queue = new (memory.take<BoostQueue>()) BoostQueue;
  }
  Line *phase, *ready, *there_line, *back_line, *done;
  Line* preempted;  // how often the far end lost its core in the phase
  RingMemory there, back;
  BoostQueue* queue;
};

// One end of the pair: a producer on one ring, a consumer on the other.
struct End {
  End(const RingMemory& out, const RingMemory& in)
      : producer(out.cells, kCapacity, out.index), consumer(in.cells, kCapacity, in.index) {}
  shm::RingProducer<SubmissionDescriptor> producer;
  shm::RingConsumer<SubmissionDescriptor> consumer;
};

// How often somebody else was given our core: a round in which that happened measures the somebody else.
std::uint32_t preemptions() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint32_t>(usage.ru_nivcsw);
}

// Between two looks, in every wait: two ends that share a core's pipelines would take them from one another.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void await(const Line& line, std::uint32_t value) {
  while (line.value.load(std::memory_order_acquire) != value) relax();
}

// The least that can carry a message each way: a line that one end writes and the other reads, and one back. `there`
// and `back` may be one line, which both ends write then: it shows what a line costs that changes hands whole.
void far_floor(Line& there, Line& back) {
  for (std::uint32_t i = 0; i < kTrips; ++i) {
    await(there, 2 * i + 1);
    back.value.store(2 * i + 2, std::memory_order_release);
  }
}
double near_floor(Line& there, Line& back) {
  const std::int64_t start = shm::monotonic_ns();
  for (std::uint32_t i = 0; i < kTrips; ++i) {
    there.value.store(2 * i + 1, std::memory_order_release);
    await(back, 2 * i + 2);
  }
  const double rtt = static_cast<double>(shm::monotonic_ns() - start) / kTrips;
  there.value.store(0, std::memory_order_relaxed);
  back.value.store(0, std::memory_order_relaxed);
  return rtt;
}

void far_trips(End& e) {
  SubmissionDescriptor d;
  for (std::uint32_t i = 0; i < kTrips; ++i) {
    while (!e.consumer.pop(d)) relax();
    while (!e.producer.push(d)) relax();
  }
}
double near_trips(End& e) {
  SubmissionDescriptor d;
  const std::int64_t start = shm::monotonic_ns();
  for (std::uint32_t i = 0; i < kTrips; ++i) {
    d.cookie = i;
    while (!e.producer.push(d)) relax();
    while (!e.consumer.pop(d)) relax();
  }
  return static_cast<double>(shm::monotonic_ns() - start) / kTrips;
}

// The consumer waits for a batch to be complete before it touches the lines, as ring.h advises.
std::uint64_t far_batches(End& e) {
  SubmissionDescriptor got[kBatch];
  std::uint64_t sum = 0;
  for (std::uint64_t n = 0; n < kMessages;) {
    while (!e.consumer.at_least(kBatch)) relax();
    const std::uint32_t count = e.consumer.pop(got);
    for (std::uint32_t i = 0; i < count; ++i) sum += got[i].cookie;
    n += count;
  }
  return sum;
}
void near_batches(End& e) {
  SubmissionDescriptor batch[kBatch];
  for (std::uint64_t n = 0; n < kMessages; n += kBatch) {
    for (std::uint32_t i = 0; i < kBatch; ++i) batch[i].cookie = n + i;
    for (std::uint32_t pushed = 0; pushed < kBatch;) {
      const std::uint32_t now = e.producer.push(std::span<const SubmissionDescriptor>(batch).subspan(pushed));
      if (now == 0) relax();
      pushed += now;
    }
  }
}

std::uint64_t far_single(End& e) {
  SubmissionDescriptor d;
  std::uint64_t sum = 0;
  for (std::uint64_t n = 0; n < kMessages; ++n) {
    while (!e.consumer.pop(d)) {
    }
    sum += d.cookie;
  }
  return sum;
}
void near_single(End& e) {
  SubmissionDescriptor d;
  for (std::uint64_t n = 0; n < kMessages; ++n) {
    d.cookie = n;
    while (!e.producer.push(d)) {
    }
  }
}

std::uint64_t far_boost(BoostQueue& q) {
  SubmissionDescriptor d;
  std::uint64_t sum = 0;
  for (std::uint64_t n = 0; n < kMessages; ++n) {
    while (!q.pop(d)) {
    }
    sum += d.cookie;
  }
  return sum;
}
void near_boost(BoostQueue& q) {
  SubmissionDescriptor d;
  for (std::uint64_t n = 0; n < kMessages; ++n) {
    d.cookie = n;
    while (!q.push(d)) {
    }
  }
}

constexpr std::uint64_t kSum = kMessages * (kMessages - 1) / 2;
static_assert(kMessages % kBatch == 0);

void run_far(Pair& p, const shm::Doorbell& bell) {
  End e(p.back, p.there);
  for (std::uint32_t turn = 1;; ++turn) {
    std::uint64_t rung;
    while (::read(bell.fd(), &rung, sizeof rung) != sizeof rung) {
    }
    const auto phase = static_cast<Phase>(p.phase->value.load(std::memory_order_acquire));
    std::uint64_t sum = kSum;
    const std::uint32_t before = preemptions();
    p.ready->value.store(turn, std::memory_order_release);
    switch (phase) {
      case Phase::none:
        return;
      case Phase::floor:
        far_floor(*p.there_line, *p.back_line);
        break;
      case Phase::one_line:
        far_floor(*p.there_line, *p.there_line);
        break;
      case Phase::trips:
        far_trips(e);
        break;
      case Phase::batches:
        sum = far_batches(e);
        break;
      case Phase::single:
        sum = far_single(e);
        break;
      case Phase::boost:
        sum = far_boost(*p.queue);
        break;
    }
    if (sum != kSum) std::abort();  // a lost or doubled message: no figure is worth anything then
    p.preempted->value.store(preemptions() - before, std::memory_order_relaxed);  // published by `done`
    p.done->value.store(turn, std::memory_order_release);
  }
}

// The near end: starts a phase in both processes.
class Near {
 public:
  Near(Pair& p, const shm::Doorbell& bell) : p_(p), bell_(bell), e_(p.there, p.back) {}
  double floor() { return trips(Phase::floor); }
  double one_line() { return trips(Phase::one_line); }
  double rtt() { return trips(Phase::trips); }
  // Since the last call neither end was preempted.
  bool undisturbed() { return std::exchange(disturbed_, false) == false; }
  double throughput(Phase phase) {
    begin(phase);
    const std::int64_t start = shm::monotonic_ns();
    if (phase == Phase::batches) near_batches(e_);
    if (phase == Phase::single) near_single(e_);
    if (phase == Phase::boost) near_boost(*p_.queue);
    finish();
    return static_cast<double>(kMessages) * 1e9 / static_cast<double>(shm::monotonic_ns() - start);
  }

 private:
  double trips(Phase phase) {
    begin(phase);
    const double rtt = phase == Phase::trips   ? near_trips(e_)
                       : phase == Phase::floor ? near_floor(*p_.there_line, *p_.back_line)
                                               : near_floor(*p_.there_line, *p_.there_line);
    finish();
    return rtt;
  }
  void begin(Phase phase) {
    ++turn_;
    p_.phase->value.store(static_cast<std::uint32_t>(phase), std::memory_order_release);
    bell_.ring();
    while (p_.ready->value.load(std::memory_order_acquire) != turn_) sched_yield();
    before_ = preemptions();
  }
  void finish() {
    while (p_.done->value.load(std::memory_order_acquire) != turn_) relax();
    disturbed_ |= preemptions() != before_ || p_.preempted->value.load(std::memory_order_relaxed) != 0;
  }
  Pair& p_;
  const shm::Doorbell& bell_;
  End e_;
  std::uint32_t turn_ = 0, before_ = 0;
  bool disturbed_ = false;
};

// A round counts when the floor before and after it agree and both ends kept their cores.
bool sound(double before, double after, Near& near) {
  const bool undisturbed = near.undisturbed();
  return undisturbed && std::max(before, after) <= 1.25 * std::min(before, after);
}

}  // namespace

RingFigures measure_rings(const Cores& cores, double seconds) {
  Shared memory(1 << 20);
  Pair pair(memory);
  const shm::Doorbell bell(shm::Fd(eventfd(0, EFD_CLOEXEC)));
  const auto child = start_pinned(cores.far, [&] { run_far(pair, bell); });
  pin(cores.near);
  Near near(pair, bell);

  RingFigures f;
  std::vector<double> before, after, lines, ratio, batches, single, boost, over, single_over;
  const std::int64_t start = shm::monotonic_ns(), half = static_cast<std::int64_t>(seconds * 0.5e9);
  do {
    const double a = near.floor(), rtt = near.rtt(), b = near.floor(), line = near.one_line();
    if (!sound(a, b, near)) {
      ++f.dropped;
      continue;
    }
    before.push_back(a);
    after.push_back(b);
    lines.push_back(line);
    ratio.push_back(rtt / ((a + b) / 2));
  } while (shm::monotonic_ns() < start + half);
  do {
    const double a = near.floor(), ours = near.throughput(Phase::batches), theirs = near.throughput(Phase::boost),
                 one = near.throughput(Phase::single), b = near.floor();
    f.messages += 3 * kMessages;
    if (!sound(a, b, near)) {
      ++f.dropped;
      continue;
    }
    batches.push_back(ours);
    boost.push_back(theirs);
    single.push_back(one);
    over.push_back(ours / theirs);
    single_over.push_back(one / theirs);
  } while (shm::monotonic_ns() < start + 2 * half);
  f.floor_rtt_ns[0] = quantile(before, 0.5);
  f.floor_rtt_ns[1] = quantile(after, 0.5);
  f.one_line_rtt_ns = quantile(lines, 0.5);
  f.rtt_over_floor = figure(ratio);
  f.throughput = figure(batches);
  f.throughput_single = figure(single);
  f.throughput_boost = figure(boost);
  f.throughput_over_boost = figure(over);
  f.single_over_boost = figure(single_over);
  return f;
}

}  // namespace leat::bench
