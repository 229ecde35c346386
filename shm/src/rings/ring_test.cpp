// ring.h against a naive twin (a deque with a capacity), and its behaviour at the edges.
#include "shm/src/rings/ring.h"

#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "shm/src/protocol/descriptors.h"
#include "shm/src/segments/segment.h"
#include "tools/base/text/sanitized.h"

namespace leat::shm {
namespace {

struct Ring {
  explicit Ring(std::uint32_t capacity)
      : cells(new SubmissionDescriptor[capacity]{}),
        producer(cells.get(), capacity, &index),
        consumer(cells.get(), capacity, &index) {}
  std::unique_ptr<SubmissionDescriptor[]> cells;
  IndexLine index{};
  RingProducer<SubmissionDescriptor> producer;
  RingConsumer<SubmissionDescriptor> consumer;
};

SubmissionDescriptor item(std::uint64_t n) {
  SubmissionDescriptor d;
  d.cookie = n;
  d.reserved = static_cast<std::uint32_t>(~n);
  return d;
}

TEST(Ring, KeepsOrderAndRefusesWhenFull) {
  Ring r(4);
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_TRUE(r.producer.push(item(i)));
  EXPECT_FALSE(r.producer.push(item(4)));
  SubmissionDescriptor d;
  for (std::uint64_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(r.consumer.pop(d));
    EXPECT_EQ(d.cookie, i);
    EXPECT_EQ(d.reserved, static_cast<std::uint32_t>(~i));
  }
  EXPECT_FALSE(r.consumer.pop(d));
  EXPECT_TRUE(r.consumer.empty());
  EXPECT_TRUE(r.producer.push(item(9)));
}

TEST(Ring, ProducerSeesRoomOnlyOncePublished) {
  Ring r(8);
  for (std::uint64_t i = 0; i < 8; ++i) ASSERT_TRUE(r.producer.push(item(i)));
  SubmissionDescriptor d;
  ASSERT_TRUE(r.consumer.pop(d));
  EXPECT_FALSE(r.producer.push(item(8))) << "one taken is less than a quarter: not published yet";
  r.consumer.publish();
  EXPECT_TRUE(r.producer.push(item(8)));
}

TEST(Ring, ImpossibleConsumerIndexIsCorrupt) {
  for (const std::uint32_t bad : {5u, 1000u, UINT32_MAX, 1u << 31}) {
    Ring r(4);
    for (std::uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(r.producer.push(item(i)));
    r.index.value = bad;
    EXPECT_FALSE(r.producer.push(item(4)));
    EXPECT_TRUE(r.producer.corrupt()) << bad;
    r.index.value = 4;
    EXPECT_FALSE(r.producer.push(item(4))) << "corrupt stays corrupt";
  }
  Ring r(4);
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(r.producer.push(item(i)));
  r.index.value = 3;
  ASSERT_TRUE(r.producer.push(item(4)));
  ASSERT_TRUE(r.producer.push(item(5)));
  ASSERT_TRUE(r.producer.push(item(6)));
  r.index.value = 2;  // went back
  EXPECT_FALSE(r.producer.push(item(7)));
  EXPECT_TRUE(r.producer.corrupt());
}

TEST(Ring, GarbageSequenceIsNothingYet) {
  Ring r(4);
  for (const std::uint32_t garbage : {0u, 2u, 77u, UINT32_MAX}) {
    r.cells[0].sequence = garbage;
    SubmissionDescriptor d;
    EXPECT_FALSE(r.consumer.pop(d));
  }
}

TEST(Ring, AgainstTwin) {
  const std::uint64_t seed = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  for (const std::uint32_t capacity : {1u, 2u, 8u, 64u, 1024u}) {
    Ring r(capacity);
    std::deque<std::uint64_t> twin;  // pushed and not popped
    std::uint32_t unpublished = 0;   // popped, and the producer may not know
    std::uint64_t next = 0;
    std::vector<SubmissionDescriptor> buffer(capacity + 3);
    for (int step = 0; step < 20000; ++step) {
      const auto n = static_cast<std::uint32_t>(random() % (capacity + 3));
      switch (random() % 5) {
        case 0: {
          const bool pushed = r.producer.push(item(next));
          if (twin.size() + unpublished < capacity) {
            ASSERT_TRUE(pushed);
          }
          if (twin.size() == capacity) {
            ASSERT_FALSE(pushed);
          }
          if (pushed) twin.push_back(next++);
          break;
        }
        case 1: {
          for (std::uint32_t i = 0; i < n; ++i) buffer[i] = item(next + i);
          const std::uint32_t pushed = r.producer.push(std::span(buffer).first(n));
          ASSERT_LE(pushed, std::min<std::size_t>(n, capacity - twin.size()));
          ASSERT_GE(pushed + twin.size() + unpublished, std::min<std::size_t>(capacity, n + twin.size()));
          for (std::uint32_t i = 0; i < pushed; ++i) twin.push_back(next++);
          break;
        }
        case 2:
        case 3: {
          if (n > 0 && n <= capacity) {
            ASSERT_EQ(r.consumer.at_least(n), twin.size() >= n);
          }
          const std::uint32_t popped = r.consumer.pop(std::span(buffer).first(n));
          ASSERT_EQ(popped, std::min<std::size_t>(n, twin.size()));
          for (std::uint32_t i = 0; i < popped; ++i) {
            ASSERT_EQ(buffer[i].cookie, twin.front());
            ASSERT_EQ(buffer[i].reserved, static_cast<std::uint32_t>(~twin.front()));
            twin.pop_front();
          }
          unpublished = std::min(unpublished + popped, (capacity + 3) / 4);
          break;
        }
        default:
          r.consumer.publish();
          unpublished = 0;
      }
      ASSERT_EQ(r.consumer.empty(), twin.empty());
    }
    ASSERT_FALSE(r.producer.corrupt());
  }
}

// The producer may write cells alone, the consumer its index alone: each end has the other's page read-only, as in the
// segments of a client and the daemon, so that a write beyond ends the test.
TEST(Ring, EachEndWritesItsOwnLinesOnly) {
  constexpr std::uint32_t kCapacity = 64;
  constexpr std::size_t kPage = 4096;
  static_assert(kCapacity * sizeof(SubmissionDescriptor) == kPage);
  const Fd memory(memfd_create("ring", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(memory.get(), 2 * kPage), 0);
  const auto map = [&](std::size_t page, int protection) {
    void* at = mmap(nullptr, kPage, protection, MAP_SHARED, memory.get(), static_cast<off_t>(page * kPage));
    return at == MAP_FAILED ? nullptr : at;
  };
  auto* written = static_cast<SubmissionDescriptor*>(map(0, PROT_READ | PROT_WRITE));
  auto* read = static_cast<SubmissionDescriptor*>(map(0, PROT_READ));
  auto* published = static_cast<IndexLine*>(map(1, PROT_READ | PROT_WRITE));
  auto* seen = static_cast<IndexLine*>(map(1, PROT_READ));
  ASSERT_TRUE(written != nullptr && read != nullptr && published != nullptr && seen != nullptr);
  RingProducer<SubmissionDescriptor> producer(written, kCapacity, seen);
  RingConsumer<SubmissionDescriptor> consumer(read, kCapacity, published);
  constexpr std::uint32_t kLaps = 20;
  std::uint32_t publications = 0, last = 0;
  SubmissionDescriptor d;
  for (std::uint64_t i = 0; i < kLaps * kCapacity; ++i) {
    ASSERT_TRUE(producer.push(item(i)));
    ASSERT_TRUE(consumer.pop(d));
    ASSERT_EQ(d.cookie, i);
    publications += published->value != last ? 1 : 0;
    last = published->value;
  }
  EXPECT_LE(publications, 4 * kLaps) << "the index's line crosses more often than once a quarter of the ring";
  EXPECT_GE(publications, 3 * kLaps);
  for (void* at :
       {static_cast<void*>(written), static_cast<void*>(read), static_cast<void*>(published), static_cast<void*>(seen)})
    munmap(at, kPage);
}

TEST(Ring, CallsTheKernelForNothing) {
  if (kSanitized) GTEST_SKIP() << "instrumented code has calls of its own";
  Ring r(64);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
      _exit(2);  // from here on any call but this one ends the process
    SubmissionDescriptor d;
    bool good = true;
    for (std::uint64_t i = 0; i < 10'000; ++i) {
      while (r.producer.push(item(i))) {
      }
      while (r.consumer.pop(d)) good = good && d.reserved == static_cast<std::uint32_t>(~d.cookie);
      r.consumer.publish();
    }
    syscall(SYS_exit, good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 2) GTEST_SKIP() << "this kernel has no seccomp";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
}

}  // namespace
}  // namespace leat::shm
