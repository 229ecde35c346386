// Who goes first where newer pictures replace what waits (policy/freshest.h), and which batches pay (Model).
#include "engine/core/model/model.h"
#include "engine/core/test/test_bench.h"

namespace leat::core {
namespace {

using test::affine;
using test::Bench;
using test::chain;
using test::kMs;

// One partition, 20 ms a picture; with another module on it that nobody asks for, it is shared.
Topology one_partition(bool shared) {
  Topology t = chain(1, 1, 1, 20 * kMs, 0, 200 * kMs);
  if (!shared) return t;
  t.applications.push_back({.slo_ns = 1000 * kMs, .modules = {1}});
  t.modules.push_back({.application = 1, .before = {}, .after = {}, .routes = {1}});
  t.routes.push_back({.module = 1, .batch = 1, .stages = {{.pool = {0}, .latency = affine(kMs, kMs, 1)}}});
  return t;
}

std::vector<std::uint64_t> order_of(const Bench& b) {
  std::vector<std::uint64_t> out;
  for (const test::Running& r : b.sent) out.push_back(r.tokens.front());
  return out;
}

// Cameras 1, 2 and 3; a second picture of camera 1 waits when one of camera 2 comes, which has had nothing yet.
void make_backlog(Bench& b) {
  const StreamConfig camera{.depth = 4, .supersede = Supersede::latest};
  const StreamId one = b.open(camera), two = b.open(camera), three = b.open(camera);
  const auto picture = [&](TimeNs at, StreamId stream, std::uint64_t token) {
    b.run_to(at);
    b.submit(stream, token, 1, at);
  };
  picture(1 * kMs, one, 11);
  picture(2 * kMs, three, 31);
  picture(3 * kMs, two, 21);
  picture(34 * kMs, one, 12);
  picture(36 * kMs, two, 22);
}

Policy served_by_leat() {
  Policy out;
  EXPECT_TRUE(preset("leat", out));
  return out;
}

TEST(Freshest, WhoHasHadLeastGoesBeforeWhoseDeadlineComesFirst) {
  for (const bool shared : {false, true}) {
    Bench b(one_partition(shared), served_by_leat());
    make_backlog(b);
    b.run_to(500 * kMs);
    EXPECT_EQ(order_of(b), (std::vector<std::uint64_t>{11, 31, 22, 12})) << shared;
    EXPECT_EQ(b.answers[21].reason, Reason::superseded);
  }
}

TEST(Freshest, ADeadlineThatBindsGoesFirst) {
  for (const bool shared : {false, true}) {
    Bench b(one_partition(shared), served_by_leat());
    make_backlog(b);
    b.submit(b.open({.slo_ns = 41 * kMs, .depth = 4}), 91, 1,
             36 * kMs);  // with one batch more before it it would be late
    b.run_to(500 * kMs);
    EXPECT_EQ(order_of(b), (std::vector<std::uint64_t>{11, 31, 91, 22, 12})) << shared;
  }
}

// Twice as many in twice the time gain nothing; four at once do, and a fifth takes as long as a batch of its own.
TEST(PayingBatch, IsTheLargestWithARateWellAboveTheSmallerOnes) {
  Topology t = chain(1, 1, 8, 0, 10 * kMs, 200 * kMs);
  EXPECT_EQ(PayingBatches(Model(t)).of(0), 1U);
  t.routes[0].stages[0].latency = affine(20 * kMs, 0, 8);
  for (std::size_t b = 4; b < 8; ++b) t.routes[0].stages[0].latency.p50_ns[b] = 40 * kMs;
  EXPECT_EQ(PayingBatches(Model(t)).of(0), 4U);
  t.modules[0].items_per_request = 3;
  EXPECT_EQ(PayingBatches(Model(t)).of(0), 8U) << "they come together";
}

// Alone two have 1.33 times the rate of one.
Topology one_or_two() {
  Topology t = chain(1, 1, 2, 0, 100 * kMs, 2000 * kMs);
  t.routes[0].stages[0].latency = affine(100 * kMs, 0, 2);
  t.routes[0].stages[0].latency.p50_ns = {100 * kMs, 150 * kMs};
  return t;
}

// As many runs of each size, in turns, as they take of what was planned.
std::uint32_t after(PayingBatches& paying, const Model& model, int runs, double one, double two) {
  for (int i = 0; i < runs; ++i)
    for (const auto& [b, takes] : {std::pair{1U, one}, std::pair{2U, two}}) {
      const TimeNs planned = model.run_ns(0)[b];
      if (takes > 0) (void)paying.ran(0, b, planned, static_cast<TimeNs>(takes * static_cast<double>(planned)));
    }
  return paying.of(0);
}

// Beside others two have .94 times the rate of one.
TEST(PayingBatch, IsWhatRunsSayAndNotWhatTheProfileSaid) {
  const Model model(one_or_two());
  PayingBatches paying(model);
  EXPECT_EQ(paying.of(0), 2U);
  EXPECT_EQ(after(paying, model, 64, 1, 1), 2U) << "as profiled";
  EXPECT_EQ(after(paying, model, 64, 1.3, 1.3), 2U) << "all sizes are slower";
  EXPECT_EQ(after(paying, model, 64, 1.2, 1.7), 1U) << "the large ones most";
  EXPECT_EQ(after(paying, model, 64, 1.2, 1.2), 2U) << "and now they are not";
  paying.forget(0);
  EXPECT_EQ(paying.of(0), 2U);
}

// Only one size runs, as it is where a queue is never empty: nothing is known of the other, until it is tried.
TEST(PayingBatch, IsTriedAgainWhenNothingIsKnownOfIt) {
  const Model model(one_or_two());
  PayingBatches paying(model);
  EXPECT_EQ(after(paying, model, 16, 0, 1.7), 1U) << "one is believed to be as profiled";
  EXPECT_EQ(after(paying, model, 16, 1.7, 1.7), 2U) << "it is as slow";
  EXPECT_EQ(after(paying, model, 32, 1.2, 1.7), 1U);
  int of_one = 0, of_two = 0;  // each runs what pays
  for (int i = 0; i < 10'000; ++i) {
    const bool two = paying.of(0) == 2;
    (void)after(paying, model, 1, two ? 0 : 1.2, two ? 1.7 : 0);
    ++(two ? of_two : of_one);
  }
  EXPECT_GT(of_two, 0);
  EXPECT_LT(of_two * 20, of_one);
}

}  // namespace
}  // namespace leat::core
