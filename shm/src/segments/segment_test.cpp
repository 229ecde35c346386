// What a sealed segment lets a peer do, and what not. Doorbells. Pools.
#include "shm/src/segments/segment.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "shm/src/protocol/kernel_features.h"
#include "shm/src/rings/doorbell.h"
#include "shm/src/rings/wait_policy.h"
#include "shm/src/segments/stream_pool.h"

namespace leat::shm {
namespace {

TEST(Segment, CannotBeResizedNorSealedFurther) {
  auto s = Segment::create("test", 3 * kPage, Seal::size);
  ASSERT_TRUE(s) << s.error();
  EXPECT_EQ(ftruncate(s->fd(), kPage), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(ftruncate(s->fd(), 8 * kPage), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(fcntl(s->fd(), F_ADD_SEALS, F_SEAL_WRITE), -1);
  EXPECT_EQ(errno, EPERM);
}

TEST(Segment, LargeOnesLieWhereHugePagesCan) {
  constexpr std::uint64_t kHuge = 2 << 20, kBytes = 3 * kHuge + kPage;
  auto s = Segment::create("test", kBytes, Seal::size);
  ASSERT_TRUE(s) << s.error();
  auto peer = Mapping::map(s->fd(), kBytes, Access::read_only, true);
  ASSERT_TRUE(peer) << peer.error();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(s->data()) % kHuge, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(peer->data()) % kHuge, 0u);
  s->data()[kBytes - 1] = std::byte{7};
  EXPECT_EQ(peer->data()[kBytes - 1], std::byte{7});
}

TEST(Segment, ReadOnlyShareCannotBeWritten) {
  auto s = Segment::create("test", kPage, Seal::size);
  ASSERT_TRUE(s) << s.error();
  *s->data() = std::byte{42};
  auto fd = s->share_read_only();
  ASSERT_TRUE(fd) << fd.error();
  EXPECT_EQ(::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd->get(), 0), MAP_FAILED);
  EXPECT_EQ(errno, EACCES);
  auto m = Mapping::map(fd->get(), kPage, Access::read_only, true);
  ASSERT_TRUE(m) << m.error();
  EXPECT_EQ(*m->data(), std::byte{42});
  EXPECT_EQ(::mprotect(m->data(), kPage, PROT_READ | PROT_WRITE), -1);
  EXPECT_EQ(errno, EACCES);
  const char byte = 1;
  EXPECT_EQ(::pwrite(fd->get(), &byte, 1, 0), -1);
  struct stat info {};
  ASSERT_EQ(fstat(fd->get(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0400u) << "another user must not be able to re-open it for writing";
}

TEST(Segment, FutureWriteHoldsEvenForItsOwner) {
  auto s = Segment::create("test", kPage, Seal::future_write);
  ASSERT_TRUE(s) << s.error();
  *s->data() = std::byte{1};  // the maker's own mapping still writes
  EXPECT_EQ(::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd(), 0), MAP_FAILED);
  EXPECT_EQ(errno, EPERM);
}

TEST(Segment, RefusesWrongSizeAndUnsealed) {
  auto s = Segment::create("test", 2 * kPage, Seal::size);
  ASSERT_TRUE(s);
  EXPECT_FALSE(Mapping::map(s->fd(), kPage, Access::read_only, false));
  EXPECT_FALSE(Mapping::map(s->fd(), 3 * kPage, Access::read_only, false));
  const Fd loose(memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(loose.get(), kPage), 0);
  const auto m = Mapping::map(loose.get(), kPage, Access::read_only, false);
  ASSERT_FALSE(m);
  EXPECT_NE(m.error().find("not sealed"), std::string::npos);
}

TEST(Segment, NoMemoryIsOneLine) {
  const auto s = Segment::create("huge", std::uint64_t{1} << 50, Seal::size);
  ASSERT_FALSE(s);
  EXPECT_NE(s.error().find("no memory"), std::string::npos) << s.error();
  EXPECT_EQ(s.error().find('\n'), std::string::npos);
}

TEST(StreamPool, BothSidesSeeTheSameSlots) {
  const PoolSpec spec{LEAT_FORMAT_i420, 322, 180, {}, 3, LEAT_SLOT_HOST};
  auto pool = StreamPool::create(spec);
  ASSERT_TRUE(pool) << pool.error();
  SlotWord words[3]{};
  auto client = StreamView::map_for_client(pool->spec(), *pool->frames_for_client(), *pool->results_for_client(),
                                           FrameSlots(words, 3, 5));
  auto worker = StreamView::map_for_worker(pool->spec(), *pool->frames_for_worker(), *pool->results_for_worker());
  ASSERT_TRUE(client) << client.error();
  ASSERT_TRUE(worker) << worker.error();
  for (std::uint32_t slot = 0; slot < 3; ++slot)
    for (std::uint32_t p = 0; p < 3; ++p)
      std::memset(client->writable_plane(slot, p), static_cast<int>(slot * 3 + p + 1), client->layout().row_bytes[p]);
  for (std::uint32_t slot = 0; slot < 3; ++slot)
    for (std::uint32_t p = 0; p < 3; ++p) EXPECT_EQ(*worker->plane(slot, p), slot * 3 + p + 1);
  worker->writable_result(2)->checksum = 99;
  EXPECT_EQ(client->result(2)->checksum, 99u);
  EXPECT_EQ(pool->result(2)->checksum, 99u);
  const auto got = client->slots().acquire();
  ASSERT_TRUE(got);
  EXPECT_EQ(client->slots().load(got->slot), (SlotValue{SlotState::writing, 5, 0}));
  const PoolSpec other{LEAT_FORMAT_i420, 322, 400, {}, 3, LEAT_SLOT_HOST};
  EXPECT_FALSE(StreamView::map_for_worker(other, *pool->frames_for_worker(), *pool->results_for_worker()))
      << "sizes differ";
}

// A hole punched into a segment makes whoever reads there wait. Once it is secured its writer can write it and no more.
TEST(Segment, OnceSecuredItsWriterCanTakeNothingAway) {
  const auto punch = [](int fd) {
    return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(kPage));
  };
  auto s = Segment::create("later", 8 * kPage, Seal::later);
  ASSERT_TRUE(s) << s.error();
  const Fd fd = std::move(duplicate(s->fd())).value();
  auto peer = Mapping::map(fd.get(), 8 * kPage, Access::read_write, true);
  ASSERT_TRUE(peer) << peer.error();
  s->data()[0] = std::byte{7};
  ASSERT_EQ(punch(fd.get()), 0);
  EXPECT_EQ(s->data()[0], std::byte{0}) << "before, it can";
  ASSERT_TRUE(s->secure());
  ASSERT_TRUE(s->secure()) << "twice does no harm";
  ASSERT_TRUE(s->allocate(0, s->bytes()));
  EXPECT_NE(punch(fd.get()), 0);
  EXPECT_NE(madvise(peer->data(), kPage, MADV_REMOVE), 0);
  peer->data()[1] = std::byte{9};
  EXPECT_EQ(s->data()[1], std::byte{9}) << "what is mapped is written as before";
  EXPECT_FALSE(Mapping::map(fd.get(), 8 * kPage, Access::read_write, false)) << "and nobody maps it for writing again";
}

TEST(Segment, APeerThatSealsItFirstIsNoticed) {
  auto s = Segment::create("later", kPage, Seal::later);
  ASSERT_TRUE(s) << s.error();
  ASSERT_EQ(fcntl(s->fd(), F_ADD_SEALS, F_SEAL_SEAL), 0);
  EXPECT_FALSE(s->secure());
}

TEST(StreamPool, GrowsInSteps) {
  const PoolSpec spec{LEAT_FORMAT_gray8, 1024, 1024, {}, 4, LEAT_SLOT_HOST};
  auto pool = StreamPool::begin(spec);
  ASSERT_TRUE(pool) << pool.error();
  int steps = 0;
  for (bool whole = false; !whole; ++steps) {
    const auto grown = pool->grow(1 << 20);
    ASSERT_TRUE(grown) << grown.error();
    whole = *grown;
  }
  EXPECT_EQ(steps, 5) << "four slots of a mebibyte and a page";
  auto worker = StreamView::map_for_worker(pool->spec(), *pool->frames_for_worker(), *pool->results_for_worker());
  ASSERT_TRUE(worker) << worker.error();
  EXPECT_EQ(*worker->plane(3, 0), 0);
}

TEST(Waker, RingsOncePerSleepAndOnlyASleeper) {
  SleepWord word{};
  Waker waker(&word);
  EXPECT_FALSE(waker.should_ring());
  announce_sleep(word);
  EXPECT_TRUE(waker.should_ring());
  EXPECT_FALSE(waker.should_ring()) << "rung already for this sleep";
  announce_sleep(word);
  EXPECT_FALSE(waker.should_ring()) << "still the same sleep";
  announce_awake(word);
  EXPECT_FALSE(waker.should_ring());
  announce_sleep(word);
  EXPECT_TRUE(waker.should_ring());
}

bool readable(int fd) {
  pollfd p{fd, POLLIN, 0};
  return ::poll(&p, 1, 0) == 1;
}

TEST(Doorbell, ManyRingsOneDrain) {
  auto bell = Doorbell::create();
  ASSERT_TRUE(bell);
  EXPECT_FALSE(readable(bell->fd()));
  for (int i = 0; i < 1000; ++i) bell->ring();
  EXPECT_TRUE(readable(bell->fd()));
  bell->drain();
  EXPECT_FALSE(readable(bell->fd()));
}

TEST(BellSocket, HostilePeerCannotBlockUs) {
  auto pair = BellSocket::create();
  ASSERT_TRUE(pair);
  // The peer makes its description blocking (harmless: it is not ours) and never reads.
  fcntl(pair->client.get(), F_SETFL, 0);
  for (int i = 0; i < 100000; ++i) pair->daemon.ring();
  EXPECT_TRUE(readable(pair->client.get()));
  // It rings without end: one drain is bounded and says nothing wrong.
  const char flood[4096] = {};
  while (::send(pair->client.get(), flood, sizeof flood, MSG_DONTWAIT) > 0) {
  }
  EXPECT_EQ(pair->daemon.drain(), Drained::rings);
  EXPECT_FALSE(pair->daemon.hung_up());
  pair->client = Fd();
  EXPECT_TRUE(pair->daemon.hung_up());
  while (pair->daemon.drain() == Drained::rings) {
  }
}

// One byte and a descriptor. errno, or 0.
int send_with(int socket, int fd) {
  char byte = 1;
  iovec piece{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* c = CMSG_FIRSTHDR(&message);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
  return ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? errno : 0;
}

// In both ways that there are, each on the kernels that have it: LEAT_OLD_KERNEL=1 takes the second.
TEST(BellSocket, ClosesNoDescriptorThatWasSentOverIt) {
  auto pair = BellSocket::create();
  ASSERT_TRUE(pair);
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const Fd reader(pipe_ends[0]);
  EXPECT_EQ(send_with(pair->client.get(), pipe_ends[1]), can_refuse_descriptors() ? EPERM : 0);
  ::close(pipe_ends[1]);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(pair->daemon.drain(), can_refuse_descriptors() ? Drained::rings : Drained::descriptors);
  EXPECT_EQ(readable(reader.get()), can_refuse_descriptors()) << "nobody took it, so it is open";
}

TEST(BellSocket, WaitEndsByRingHangUpOrTime) {
  auto pair = BellSocket::create();
  ASSERT_TRUE(pair);
  const BellSocket client(std::move(pair->client));
  EXPECT_FALSE(client.wait(1'000'000));
  pair->daemon.ring();
  EXPECT_TRUE(client.wait(-1));
  EXPECT_EQ(client.drain(), Drained::rings);
  EXPECT_FALSE(client.wait(0));
  pair->daemon.hang_up();
  EXPECT_TRUE(client.wait(-1));
  EXPECT_EQ(client.drain(), Drained::hung_up);
}

TEST(WaitPolicy, OneSpinnerAtMostAndNoneWhenIdle) {
  for (const std::uint32_t cores : {1u, 2u, 4u, 64u})
    for (const Role role : {Role::worker, Role::client})
      for (const bool tiny : {false, true})
        EXPECT_NE(choose_wait_policy(role, cores, false, tiny).mode, WaitMode::spin);
  EXPECT_EQ(choose_wait_policy(Role::scheduler, 1, true, false).mode, WaitMode::park);
  EXPECT_EQ(choose_wait_policy(Role::scheduler, 2, true, false).mode, WaitMode::spin);
  EXPECT_NE(choose_wait_policy(Role::scheduler, 8, false, false).mode, WaitMode::spin);
  Waiter spinner(choose_wait_policy(Role::scheduler, 2, true, false));
  for (int i = 0; i < 100000; ++i) EXPECT_FALSE(spinner.should_park(true));
  int lingers = 0;
  while (!spinner.should_park(false)) ++lingers;
  EXPECT_LT(lingers, 10000);
  Waiter parker(choose_wait_policy(Role::worker, 2, false, false));
  EXPECT_TRUE(parker.should_park(true));
  Waiter yielder(choose_wait_policy(Role::worker, 2, false, true));
  int tries = 0;
  while (!yielder.should_park(true)) ++tries;
  EXPECT_GT(tries, 0);
  EXPECT_LT(tries, 10000);
}

}  // namespace
}  // namespace leat::shm
