#include "shm/src/counters/counters.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace leat::shm {
namespace {

struct Both {
  Both() {
    auto w = CountersWriter::create();
    if (!w) throw std::runtime_error(w.error());
    writer = std::move(w).value();
    auto r = CountersReader::map(*writer.share(), writer.bytes());
    if (!r) throw std::runtime_error(r.error());
    reader = std::move(r).value();
  }
  CountersWriter writer;
  CountersReader reader;
};

TEST(Counters, UnknownIsNotZero) {
  Both b;
  EXPECT_FALSE(b.reader.snapshot(RecordKind::stream, 3));
  Record r = b.writer.begin(RecordKind::stream, 3, "camera 3");
  auto s = b.reader.snapshot(RecordKind::stream, 3);
  ASSERT_TRUE(s);
  EXPECT_TRUE(s->live);
  EXPECT_EQ(s->label, "camera 3");
  EXPECT_EQ(s->value(StreamCounter::submitted), 0u);
  EXPECT_FALSE(s->value(StreamCounter::in_flight)) << "a gauge nobody has set";
  EXPECT_FALSE(s->quantile_ns(Which::first, 0.5));
  r.set(StreamCounter::in_flight, 0);
  r.add(StreamCounter::submitted, 5);
  r.cause(Reason::expired, 2);
  s = b.reader.snapshot(RecordKind::stream, 3);
  EXPECT_EQ(s->value(StreamCounter::in_flight), 0u);
  EXPECT_EQ(s->value(StreamCounter::submitted), 5u);
  EXPECT_EQ(s->causes[static_cast<std::size_t>(Reason::expired)], 2u);
  b.writer.end(RecordKind::stream, 3);
  EXPECT_FALSE(b.reader.snapshot(RecordKind::stream, 3)->live);
  EXPECT_TRUE(b.reader.live(RecordKind::stream).empty());
  b.writer.begin(RecordKind::stream, 3, std::string(500, 'x'));
  s = b.reader.snapshot(RecordKind::stream, 3);
  EXPECT_EQ(s->label.size(), 111u);
  EXPECT_EQ(s->value(StreamCounter::submitted), 0u);
  EXPECT_EQ(s->epoch, 2u);
}

TEST(Counters, TablesFullOrOutOfRangeIsHarmless) {
  Both b;
  Record none = b.writer.begin(RecordKind::client, 1000, "too many");
  EXPECT_FALSE(none);
  none.add(ClientCounter::submissions);
  none.observe(Which::first, 5);
  Record::Update nothing(none);
  EXPECT_FALSE(b.reader.snapshot(RecordKind::client, 1000));
  EXPECT_FALSE(b.reader.snapshot(RecordKind::count_, 0));
}

TEST(Counters, ReadersCannotWrite) {
  Both b;
  auto fd = b.writer.share();
  ASSERT_TRUE(fd);
  EXPECT_EQ(::mmap(nullptr, b.writer.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd->get(), 0), MAP_FAILED);
  EXPECT_FALSE(CountersReader::map(std::move(fd).value(), b.writer.bytes() - 4096));
}

TEST(Counters, BucketsCoverEverythingWithinTheirError) {
  EXPECT_EQ(bucket_of(0), 0u);
  EXPECT_EQ(bucket_of(UINT64_MAX), kBuckets - 1);
  for (std::uint32_t b = 0; b < kBuckets; ++b) {
    EXPECT_EQ(bucket_of(bucket_low_ns(b)), b);
    EXPECT_LT(bucket_low_ns(b), bucket_low_ns(b + 1));
    EXPECT_LE(static_cast<double>(bucket_low_ns(b + 1) - bucket_low_ns(b)),
              static_cast<double>(bucket_low_ns(b)) / 16 + 1);
  }
}

TEST(Counters, QuantilesAgainstSortedTwin) {
  const std::uint64_t seed = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  Both b;
  Record r = b.writer.begin(RecordKind::total, 0, "total");
  std::vector<double> twin;
  std::lognormal_distribution<double> latency(std::log(8e6), 0.7);
  for (int i = 0; i < 20000; ++i) {
    const auto ns = static_cast<std::int64_t>(latency(random));
    r.observe(Which::first, ns);
    twin.push_back(static_cast<double>(ns));
  }
  std::sort(twin.begin(), twin.end());
  const auto s = b.reader.snapshot(RecordKind::total, 0);
  ASSERT_TRUE(s);
  EXPECT_EQ(s->observations(Which::first), twin.size());
  EXPECT_EQ(s->observations(Which::second), 0u);
  for (const double q : {0.01, 0.5, 0.95, 0.99}) {
    const double exact = twin[static_cast<std::size_t>(q * static_cast<double>(twin.size()))];
    EXPECT_NEAR(*s->quantile_ns(Which::first, q) / exact, 1.0, 1.0 / 16) << q;
  }
}

TEST(Counters, EveryKindHasItsTable) {
  for (std::uint32_t k = 0; k < kRecordKinds; ++k) {
    const auto kind = static_cast<RecordKind>(k);
    EXPECT_FALSE(counter_names(kind).empty());
    EXPECT_NE(name_of(kind), "unknown");
  }
  EXPECT_EQ(counter_names(RecordKind::stream)[static_cast<std::size_t>(StreamCounter::late)].name, "late");
}

TEST(Counters, FlightRecorderKeepsTheLatest) {
  Both b;
  std::vector<Event> out(kEvents + 10);
  std::uint64_t next = 0;
  EXPECT_EQ(b.reader.events(0, out, &next), 0u);
  const std::uint64_t total = kEvents + 100;
  for (std::uint64_t i = 0; i < total; ++i) {
    Event e;
    e.kind = EventKind::answered;
    e.token = i;
    e.c = ~i;
    b.writer.event(e);
  }
  const std::uint32_t n = b.reader.events(0, out, &next);
  ASSERT_EQ(n, kEvents);
  EXPECT_EQ(next, total);
  for (std::uint32_t i = 0; i < n; ++i) {
    ASSERT_EQ(out[i].token, total - kEvents + i);
    ASSERT_EQ(out[i].c, ~out[i].token);
  }
  EXPECT_EQ(b.reader.events(next, out, &next), 0u);
  EXPECT_EQ(name_of(out[0].kind), "answered");
}

}  // namespace
}  // namespace leat::shm
