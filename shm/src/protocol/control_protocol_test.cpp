// Validators and transport of the control protocol.
#include "shm/src/protocol/control_protocol.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

namespace leat::shm {
namespace {

OpenStream good_open() {
  OpenStream m;
  set_text(m.application, "shapes");
  m.pool = {LEAT_FORMAT_nv12, 640, 360, {}, 6, LEAT_SLOT_HOST};
  m.settings.depth = 4;
  return m;
}

TEST(Protocol, RoundTrip) {
  OpenStream out;
  ASSERT_EQ(decode(encode(good_open()), &out), nullptr);
  EXPECT_EQ(text_of(out.application), "shapes");
  StreamOpened opened;
  opened.pool = good_open().pool;
  StreamOpened back;
  std::string_view tail;
  const auto bytes = encode(opened, "circle\tsquare");
  ASSERT_EQ(decode(bytes, &back, &tail), nullptr);
  EXPECT_EQ(tail, "circle\tsquare");
}

TEST(Protocol, EveryLengthButTheRightOneIsRefused) {
  const auto bytes = encode(good_open());
  OpenStream out;
  for (std::size_t n = 0; n < bytes.size(); ++n) EXPECT_NE(decode(std::span(bytes).first(n), &out), nullptr) << n;
  auto longer = bytes;
  longer.resize(bytes.size() + 8);
  EXPECT_NE(decode(longer, &out), nullptr);
  const auto size = static_cast<std::uint32_t>(longer.size());
  std::memcpy(longer.data() + offsetof(Header, bytes), &size, sizeof size);
  EXPECT_STREQ(decode(longer, &out), "message longer than its type");
}

TEST(Protocol, EveryFieldIsChecked) {
  const auto with = [](auto change) {
    OpenStream m = good_open();
    change(m);
    OpenStream out;
    return decode(encode(m), &out);
  };
  EXPECT_EQ(with([](OpenStream&) {}), nullptr);
  EXPECT_NE(with([](OpenStream& m) { std::memset(m.application, 'a', sizeof m.application); }), nullptr);
  EXPECT_NE(with([](OpenStream& m) { set_text(m.application, ""); }), nullptr);
  EXPECT_NE(with([](OpenStream& m) { set_text(m.application, "sha\x1b[2Jpes"); }), nullptr);
  EXPECT_EQ(with([](OpenStream& m) { set_text(m.name, "yard, north"); }), nullptr);
  EXPECT_NE(with([](OpenStream& m) { set_text(m.name, "ya\x1b[2Jrd"); }), nullptr);
  EXPECT_NE(with([](OpenStream& m) { std::memset(m.name, 'a', sizeof m.name); }), nullptr);
  EXPECT_NE(with([](OpenStream& m) { m.settings.depth = 0; }), nullptr);
  EXPECT_NE(with([](OpenStream& m) { m.settings.depth = kMaxDepth + 1; }), nullptr);
  EXPECT_NE(with([](OpenStream& m) { m.pool.slots = 3; }), nullptr);
  EXPECT_NE(with([](OpenStream& m) { m.pool.slots = UINT32_MAX; }), nullptr);
  EXPECT_NE(with([](OpenStream& m) { m.settings.overload = 4; }), nullptr);
  EXPECT_NE(with([](OpenStream& m) { m.settings.priority = 4; }), nullptr);
  EXPECT_NE(with([](OpenStream& m) { m.settings.slo_ns = -1; }), nullptr);
  EXPECT_NE(with([](OpenStream& m) { m.settings.max_age_ns = INT64_MAX; }), nullptr);
  EXPECT_NE(with([](OpenStream& m) { m.settings.sla_drop_ppm = 60'000; }), nullptr);  // of a camera without a period
  EXPECT_NE(with([](OpenStream& m) { m.settings.sla_drop_ppm = 600'000, m.settings.period_ns = 20'000'000; }), nullptr);
  EXPECT_EQ(with([](OpenStream& m) { m.settings.sla_drop_ppm = 60'000, m.settings.period_ns = 20'000'000; }), nullptr);
  EXPECT_NE(with([](OpenStream& m) { m.settings.task_group = 1; }), nullptr);  // of a stream that is not coordinated
  const auto task = [&](std::uint32_t weight, std::uint32_t local) {
    return with([&](OpenStream& m) {
      m.settings.sla_drop_ppm = 60'000, m.settings.period_ns = 20'000'000, m.settings.task_group = 7;
      m.settings.task_weight = weight, m.settings.local_drop_ppm = local;
    });
  };
  EXPECT_EQ(task(3000, 100'000), nullptr);
  EXPECT_NE(task(1'000'001, 0), nullptr);
  EXPECT_NE(task(0, 1'000'001), nullptr);
  EXPECT_NE(with([](OpenStream& m) { m.header.magic = 0; }), nullptr);
  EXPECT_EQ(std::string_view(with([](OpenStream& m) { m.header.version = kProtocolVersion + 1; })), kVersionProblem);
}

TEST(Protocol, RefusalOfAnotherVersionIsStillUnderstood) {
  Refused m;
  m.header.version = 77;
  m.error = LEAT_ERROR_wrong_version;
  set_text(m.text, "leatd speaks version 77");
  Refused out;
  ASSERT_EQ(decode(encode(m), &out), nullptr);
  EXPECT_EQ(text_of(out.text), "leatd speaks version 77");
}

TEST(Protocol, SetTextCutsAndTerminates) {
  char text[4];
  set_text(text, "abcdef");
  EXPECT_STREQ(text, "abc");
  set_text(text, "abcd");
  EXPECT_STREQ(text, "abc");
  set_text(text, "a");
  EXPECT_STREQ(text, "a");
}

TEST(Transport, DescriptorsArriveAndTheDaemonLeavesThemWhereTheyAre) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const Fd a(ends[0]), b(ends[1]);
  Observed m;
  m.bytes = 5;
  const int fds[] = {0, 1};
  ASSERT_TRUE(send(a.get(), m, fds));
  std::vector<std::byte> packet;
  std::vector<Fd> received;
  std::string text;
  ASSERT_EQ(receive(b.get(), true, &packet, &received, &text), Got::message);
  EXPECT_EQ(received.size(), 2u);
  received.clear();
  ASSERT_TRUE(send(a.get(), m));
  ASSERT_EQ(receive(b.get(), true, &packet, nullptr, &text), Got::message);
  EXPECT_EQ(receive(b.get(), false, &packet, nullptr, &text), Got::nothing) << "it is taken once";
  const int before = ::dup(0);
  ::close(before);
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const Fd reader(pipe_ends[0]);
  ASSERT_TRUE(send(a.get(), m, std::span(&pipe_ends[1], 1)));
  ::close(pipe_ends[1]);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(receive(b.get(), true, &packet, nullptr, &text), Got::descriptors);
  pollfd hung_up{reader.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&hung_up, 1, 0), 0) << "who looks at a packet has closed what it carries";
  ASSERT_EQ(receive(b.get(), true, &packet, &received, &text), Got::message);
  EXPECT_EQ(received.size(), 1u);
  received.clear();
  EXPECT_EQ(::poll(&hung_up, 1, 0), 1);
  const std::vector<std::byte> huge(kMaxMessage + 1);
  EXPECT_FALSE(send_bytes(a.get(), huge, {}));
  ASSERT_GT(::send(a.get(), huge.data(), huge.size(), 0), 0);
  EXPECT_EQ(receive(b.get(), false, &packet, nullptr, &text), Got::broken);
}

}  // namespace
}  // namespace leat::shm
