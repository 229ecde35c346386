// Threads over one mapping, checksummed payloads: rings, doorbells, slots, counters. Built again under ThreadSanitizer.
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "shm/src/counters/counters.h"
#include "shm/src/protocol/descriptors.h"
#include "shm/src/rings/doorbell.h"
#include "shm/src/rings/ring.h"
#include "shm/src/segments/frame_slots.h"

namespace leat::shm {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kMessages = 100'000;
#else
constexpr std::uint64_t kMessages = 400'000;
#endif

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51'afd7'ed55'8ccdull;
  return x ^ (x >> 29);
}
std::uint32_t check(const SubmissionDescriptor& d) {
  return static_cast<std::uint32_t>(d.cookie ^ static_cast<std::uint64_t>(d.capture_ns) ^ d.bytes);
}
SubmissionDescriptor message(std::uint64_t n) {
  SubmissionDescriptor d;
  d.cookie = n;
  d.capture_ns = static_cast<std::int64_t>(mix(n) >> 1);
  d.bytes = static_cast<std::uint32_t>(mix(n + 1));
  d.reserved = check(d);
  return d;
}
bool sound(const SubmissionDescriptor& d, std::uint64_t n) {
  return d.cookie == n && d.reserved == check(d) && d.bytes == static_cast<std::uint32_t>(mix(n + 1));
}

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

TEST(Stress, RingOneByOneAndInBatches) {
  for (const bool batches : {false, true})
    for (const std::uint32_t capacity : {2u, 64u, 1024u}) {
      Ring r(capacity);
      const std::uint64_t count = kMessages / (capacity < 64 ? 40 : 4);  // a tiny ring costs a switch per message
      std::uint64_t bad = 0;
      std::thread producer([&] {
        std::vector<SubmissionDescriptor> batch;
        for (std::uint64_t n = 0; n < count;) {
          const std::uint64_t want = batches ? std::min<std::uint64_t>(1 + n % 17, count - n) : 1;
          batch.clear();
          for (std::uint64_t i = 0; i < want; ++i) batch.push_back(message(n + i));
          const std::uint32_t pushed = r.producer.push(batch);
          n += pushed;
          if (pushed == 0) std::this_thread::yield();
        }
      });
      std::vector<SubmissionDescriptor> got(batches ? 32 : 1);
      for (std::uint64_t n = 0; n < count;) {
        const std::uint32_t popped = r.consumer.pop(got);
        for (std::uint32_t i = 0; i < popped; ++i) bad += !sound(got[i], n + i);
        n += popped;
        if (popped == 0) {
          r.consumer.publish();
          std::this_thread::yield();
        }
      }
      producer.join();
      EXPECT_EQ(bad, 0u) << capacity;
      EXPECT_FALSE(r.producer.corrupt());
    }
}

// The consumer really sleeps. A lost wake hangs, so the poll has a limit and its passing is the failure.
template <class Ring_, class RingBell, class WaitBell>
void sleep_and_wake(Ring_& r, RingBell ring_bell, WaitBell wait_bell, std::uint64_t count) {
  SleepWord word{};
  std::atomic<std::uint64_t> consumed{0}, rings{0};
  std::thread producer([&] {
    Waker waker(&word);
    for (std::uint64_t n = 0; n < count;) {
      const std::uint64_t burst = std::min<std::uint64_t>(1 + mix(n) % 5, count - n);
      for (std::uint64_t i = 0; i < burst; ++i) {
        while (!r.producer.push(message(n))) std::this_thread::yield();
        ++n;
      }
      if (waker.should_ring()) {
        rings.fetch_add(1, std::memory_order_relaxed);
        ring_bell();
      }
      // Often enough let the consumer run dry, so that it goes to sleep.
      if (mix(n) % 4 == 0)
        while (consumed.load(std::memory_order_relaxed) < n) std::this_thread::yield();
    }
  });
  std::uint64_t n = 0, bad = 0, sleeps = 0, announced = 0;
  while (n < count) {
    SubmissionDescriptor d;
    while (r.consumer.pop(d)) {
      bad += !sound(d, n);
      consumed.store(++n, std::memory_order_relaxed);
    }
    if (n == count) break;
    const auto announce = [&] {
      r.consumer.publish();
      announce_sleep(word);
      ++announced;
    };
    if (may_sleep(announce, [&] { return r.consumer.empty(); })) {
      ++sleeps;
      ASSERT_TRUE(wait_bell()) << "lost wake after message " << n;
    }
    announce_awake(word);
  }
  producer.join();
  EXPECT_EQ(bad, 0u);
  EXPECT_LE(rings, announced) << "one wake at most for each time the consumer said it sleeps";
  std::printf("%llu messages, %llu sleeps, %llu wakes\n", static_cast<unsigned long long>(n),
              static_cast<unsigned long long>(sleeps), static_cast<unsigned long long>(rings));
}

TEST(Stress, DoorbellLosesNoWake) {
  Ring r(64);
  auto bell = Doorbell::create();
  ASSERT_TRUE(bell);
  sleep_and_wake(
      r, [&] { bell->ring(); },
      [&] {
        pollfd p{bell->fd(), POLLIN, 0};
        const bool rung = ::poll(&p, 1, 20000) == 1;
        bell->drain();
        return rung;
      },
      kMessages / 20);
}

TEST(Stress, BellSocketLosesNoWake) {
  Ring r(64);
  auto pair = BellSocket::create();
  ASSERT_TRUE(pair);
  const BellSocket client(std::move(pair->client));
  sleep_and_wake(
      r, [&] { pair->daemon.ring(); }, [&] { return client.wait(20'000'000'000) && client.drain() == Drained::rings; },
      kMessages / 20);
}

// A client thread and a daemon thread move every slot round and round; the payload beside a word is written by the
// holder without atomics, so a wrong order is a race the sanitizer sees and a checksum the test sees.
TEST(Stress, SlotsHandOverTheirPayload) {
  constexpr std::uint32_t kSlots = 6;
  SlotWord words[kSlots]{};
  std::uint64_t payload[kSlots][4]{};
  FrameSlots client(words, kSlots, 1), daemon(words, kSlots, 1);
  std::atomic<bool> stop{false};
  std::uint64_t bad = 0;
  std::thread server([&] {
    while (!stop.load(std::memory_order_relaxed)) {
      bool any = false;
      for (std::uint32_t s = 0; s < kSlots; ++s) {
        const SlotValue v = daemon.load(s);
        if (v.state != SlotState::submitted || !daemon.take(s, v.generation)) continue;
        bad += payload[s][1] != mix(payload[s][0]);
        payload[s][2] = payload[s][0] + 1;
        any |= daemon.release(s, v.generation);
      }
      if (!any) std::this_thread::yield();
    }
  });
  std::uint64_t done = 0, sent = 0, wrong = 0;
  const std::uint64_t count = kMessages / 4;
  while (done < count) {
    if (const auto a = client.acquire()) {
      payload[a->slot][0] = ++sent;
      payload[a->slot][1] = mix(sent);
      ASSERT_TRUE(client.submit(a->slot, a->generation));
    } else {
      std::this_thread::yield();
    }
    for (std::uint32_t s = 0; s < kSlots; ++s) {
      const SlotValue v = client.load(s);
      if (v.state != SlotState::released) continue;
      wrong += payload[s][2] != payload[s][0] + 1;
      ASSERT_TRUE(client.free(s, v.generation));
      ++done;
    }
  }
  stop = true;
  server.join();
  EXPECT_EQ(bad, 0u);
  EXPECT_EQ(wrong, 0u);
}

// The ledger of a record holds in every snapshot taken while its writer runs.
TEST(Stress, SnapshotsAreTakenBetweenUpdates) {
  auto writer = CountersWriter::create();
  ASSERT_TRUE(writer);
  auto reader = CountersReader::map(std::move(writer->share()).value(), writer->bytes());
  ASSERT_TRUE(reader);
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> looks{0};
  Record r = writer->begin(RecordKind::stream, 0, "ledger");
  r.set(StreamCounter::in_flight, 0);
  std::thread scheduler([&] {
    for (std::uint64_t n = 0; !stop.load(std::memory_order_relaxed); ++n) {
      {
        Record::Update together(r);
        r.add(StreamCounter::submitted);
        r.set(StreamCounter::in_flight, n % 7);
        r.add(StreamCounter::completed, n == 0 ? 1 - n % 7 : 1 + (n - 1) % 7 - n % 7);
        r.observe(Which::first, static_cast<std::int64_t>(n));
      }
      Event e;
      e.token = n;
      e.c = mix(n);
      writer->event(e);
      // As the scheduler between its turns, it rests for one look at least: a reader need not find the gap between two
      // updates that follow each other, and where each thread has a core it would seldom do so.
      if (n % 16 == 0)
        for (const std::uint64_t seen = looks; looks < seen + 2 && !stop;) std::this_thread::yield();
    }
  });
  std::uint64_t together = 0, next = 0, events = 0;
  std::vector<Event> out(1024);
  while (together < 2000 || events < 20000) {
    const auto s = reader->snapshot(RecordKind::stream, 0);
    ++looks;
    ASSERT_TRUE(s);
    if (s->together) {
      ++together;
      ASSERT_EQ(*s->value(StreamCounter::submitted),
                *s->value(StreamCounter::completed) + *s->value(StreamCounter::in_flight));
      ASSERT_EQ(s->observations(Which::first), *s->value(StreamCounter::submitted));
    }
    const std::uint32_t n = reader->events(next, out, &next);
    for (std::uint32_t k = 0; k < n; ++k) ASSERT_EQ(out[k].c, mix(out[k].token));
    events += n;
  }
  stop = true;
  scheduler.join();
}

}  // namespace
}  // namespace leat::shm
