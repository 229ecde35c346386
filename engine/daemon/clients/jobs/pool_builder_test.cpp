// The pool builder: what is asked for comes back once, large pools do not hold up small ones, and what is cancelled or
// fails says so.
#include "engine/daemon/clients/jobs/pool_builder.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <vector>

namespace leat::daemon {
namespace {

using Work = PoolJob::Work;

shm::PoolSpec spec(std::uint32_t rows, std::uint32_t slots) {
  return {LEAT_FORMAT_gray8, 1024, rows, {}, slots, LEAT_SLOT_HOST};
}

class PoolBuilderTest : public ::testing::Test {
 protected:
  PoolBuilderTest() : builder_(std::move(PoolBuilder::create()).value()) {}
  void build(std::uint32_t user, std::uint64_t session, std::uint32_t stream, const shm::PoolSpec& s) {
    PoolJob job;
    job.user = user;
    job.session = session;
    job.stream = stream;
    job.spec = s;
    builder_->ask(std::move(job));
  }
  PoolJob next() {
    PoolJob job;
    while (!builder_->next(job)) {
      pollfd wait{builder_->fd(), POLLIN, 0};
      EXPECT_EQ(poll(&wait, 1, 30'000), 1) << "nothing comes back";
    }
    return job;
  }
  std::unique_ptr<PoolBuilder> builder_;
};

TEST_F(PoolBuilderTest, BuildsSecuresAndDiscards) {
  build(1, 1, 5, spec(64, 4));
  PoolJob job = next();
  EXPECT_EQ(job.error, "");
  EXPECT_EQ(job.stream, 5u);
  ASSERT_NE(job.pool, nullptr);
  EXPECT_EQ(job.pool->spec().slots, 4u);
  job.work = Work::secure;
  builder_->ask(std::move(job));
  job = next();
  EXPECT_EQ(job.work, Work::secure);
  EXPECT_EQ(job.error, "");
  job.work = Work::discard;
  builder_->ask(std::move(job));
  job = next();
  EXPECT_EQ(job.work, Work::discard);
  EXPECT_EQ(job.pool, nullptr);
}

TEST_F(PoolBuilderTest, SmallPoolsOvertakeLargeOnes) {
  build(1, 1, 0, spec(1024, 64));  // 64 MiB, sixteen steps and more
  build(1, 2, 1, spec(16, 2));     // the same user
  build(2, 3, 2, spec(16, 2));     // another
  std::vector<std::uint32_t> order;
  for (int i = 0; i < 3; ++i) order.push_back(next().stream);
  EXPECT_EQ(order.back(), 0u);
}

TEST_F(PoolBuilderTest, WhatIsCancelledComesBackAndIsNotDone) {
  build(1, 1, 0, spec(16384, 16));  // 256 MiB
  build(1, 2, 1, spec(16, 2));
  builder_->cancel(1);
  for (int i = 0; i < 2; ++i) {
    const PoolJob job = next();
    EXPECT_EQ(job.error.empty(), job.session == 2) << job.error;
  }
}

TEST_F(PoolBuilderTest, MakesLinksRingsAndClosesThem) {
  const auto ask = [&](Work work, PoolJob job) {
    job.work = work;
    builder_->ask(std::move(job));
    return next();
  };
  PoolJob job = ask(Work::link, {});
  ASSERT_EQ(job.error, "");
  ASSERT_NE(job.port, nullptr);
  ASSERT_EQ(job.fds.size(), 3u);
  const shm::BellSocket client(std::move(job.fds[2]));
  const auto port = job.port;
  EXPECT_GT(ask(Work::ring, {.port = port}).own_ns, 0);
  EXPECT_EQ(client.drain(), shm::Drained::rings);
  client.ring();
  EXPECT_EQ(ask(Work::drain, {.port = port}).drained, shm::Drained::rings);
  EXPECT_FALSE(client.hung_up());
  (void)ask(Work::hang_up, {.port = port});
  EXPECT_TRUE(client.hung_up());
  EXPECT_EQ(ask(Work::close, std::move(job)).port, nullptr);
  EXPECT_EQ(port.use_count(), 1);
}

TEST_F(PoolBuilderTest, WhatCannotBeHadSaysSo) {
  build(1, 1, 0, {LEAT_FORMAT_rgb24, 16384, 16384, {}, 96, LEAT_SLOT_HOST});  // 72 GiB
  const PoolJob job = next();
  EXPECT_NE(job.error, "");
  EXPECT_EQ(job.pool, nullptr);
}

}  // namespace
}  // namespace leat::daemon
