// Frames that cost more than the plan expects, and frames that end workers: beside those of another user an honest one
// has what he had alone. leatd is root's, or an ordinary user's.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "engine/exec/test/test_graph.h"
#include "tests/attacks/arena/two_users.h"
#include "tests/executors/costly.h"
#include "tests/executors/misbehaving.h"

namespace leat::test {
namespace {

using G = exec::TestGraph;

constexpr std::int64_t kWide = 512;  // floats of a frame
constexpr int kAttempts = 3;
// Of 200. Without the defences it is none or one of the first, and about a hundred of the second. On a quiet machine
// 190 and 195 are what has to come, and what comes is 200; other programs on the same cores cost some of them.
constexpr std::uint32_t kBesideDear = 140, kBesidePoison = 170;

// leatd's user: root, or not.
class Costs : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (getuid() != 0) GTEST_SKIP() << "only root can become other users";
  }
  // What the honest user has in time of his frames while the other sends his; the best of some attempts, because a
  // machine that others use too is late of itself.
  void expect_in_time(const std::string& config, const Flow& honest, const Flow& other, std::uint32_t min) {
    Tally best;
    for (int attempt = 0; attempt < kAttempts && best.in_time < min; ++attempt) {
      leatd_ = open_to_all(config, GetParam());
      const Sender before(kDear, leatd_->socket(), other);
      const Sender sender(kHonest, leatd_->socket(), honest);
      const Tally mine = sender.tally(), theirs = before.tally();
      std::printf("honest: %u of %u in time; the other: %u of %u, %u refused, %u poison\n", mine.in_time,
                  mine.submitted, theirs.in_time, theirs.submitted, theirs.refused, theirs.poison);
      EXPECT_EQ(mine.answered, mine.submitted);
      EXPECT_EQ(theirs.answered, theirs.submitted);
      ASSERT_GT(theirs.submitted, 0U);
      if (mine.in_time >= best.in_time) best = mine, other_ = theirs;
    }
    EXPECT_GE(best.in_time, min) << leatd_->log();
  }
  std::unique_ptr<Leatd> leatd_;
  Tally other_;
};
INSTANTIATE_TEST_SUITE_P(Leatd, Costs, testing::Bool(),
                         [](const auto& p) { return std::string(p.param ? "OfRoot" : "OfAnOrdinaryUser"); });

std::string partition(const std::string& core) {
  return "[[partition]]\nname = \"p" + core + "\"\nkind = \"cpu\"\ncores = \"" + core + "\"\n";
}

Flow pictures(std::uint32_t slo_ms, unsigned char first) {
  Flow flow;
  leat_stream_options_init(&flow.stream);
  flow.stream.application = "a";
  flow.stream.format = LEAT_FORMAT_gray8;
  flow.stream.width = flow.stream.height = 16;
  flow.stream.depth = flow.stream.slots = 16;
  flow.stream.overload = LEAT_OVERLOAD_fifo;
  flow.stream.slo_ns = slo_ms * std::int64_t{1'000'000};
  flow.fill = [first](const leat_frame& frame) {
    std::memset(frame.planes[0], 0, frame.bytes);
    frame.planes[0][0] = first;
  };
  return flow;
}

TEST_P(Costs, FramesThatTakeTenTimesThePlanAreTheirSendersOwn) {
  Flow other = pictures(50, kCostly);
  other.rate = 200;
  other.frames = 850;
  expect_in_time(partition("0") + "[[application]]\nname = \"a\"\nslo_ms = 50\n" +
                     "[[application.module]]\nname = \"m\"\nbatch = 4\nexecutor = \"" + COSTLY_EXECUTOR + "\"\n",
                 pictures(15, 0), other, kBesideDear);
}

Flow tensors(std::uint32_t slo_ms, float value) {
  static const leat_tensor_shape shape{LEAT_F32, 1, {kWide}};
  Flow flow = pictures(slo_ms, 0);
  flow.stream.format = LEAT_FORMAT_tensors;
  flow.stream.tensors = &shape;
  flow.stream.tensor_count = 1;
  flow.fill = [value](const leat_frame& frame) { std::fill_n(static_cast<float*>(frame.tensors[0]), kWide, value); };
  return flow;
}

TEST_P(Costs, DenormalFloatsCostNobodyAnything) {
  ScratchFolder folder;
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  G g;
  std::string x = g.input("x", G::f32, {"n", kWide});
  const std::string mean = g.constant("w", {kWide, kWide}, std::vector<float>(kWide * kWide, 1.0F / kWide));
  for (int i = 0; i < 32; ++i) x = g.op("MatMul", {x, mean});
  g.output(g.op("ReduceMax", {x}, "y", {{"axes", {1}}}), G::f32, {"n", 1});
  g.save(folder.path() + "/m.onnx");
  Flow other = tensors(50, 1e-39F);
  other.rate = 200;
  other.frames = 850;
  expect_in_time(partition("0") + "[[application]]\nname = \"a\"\nslo_ms = 50\n" +
                     "[[application.module]]\nname = \"m\"\npreprocess = \"tensors\"\npostprocess = \"tensors\"\n" +
                     "batch = 4\nmodel = \"" + folder.path() + "/m.onnx\"\n",
                 tensors(15, 1), other, kBesideDear);
}

TEST_P(Costs, FramesThatEndWorkersEndTheirSendersTurn) {
  Flow other = pictures(1000, static_cast<unsigned char>(Ask::crash));
  other.rate = 2;
  other.frames = 8;
  expect_in_time(partition("0") + partition("1") + "[[application]]\nname = \"a\"\nslo_ms = 1000\n" +
                     "[[application.module]]\nname = \"m\"\nexecutor = \"" + MISBEHAVING_EXECUTOR + "\"\n",
                 pictures(250, 0), other, kBesidePoison);
  EXPECT_GT(other_.refused, 0U);
}

}  // namespace
}  // namespace leat::test
