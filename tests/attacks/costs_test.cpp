// Frames that cost more than the plan expects, and frames that end workers: beside those of another user an honest one
// has what he had alone. leatd is root's, or an ordinary user's.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>

#include "engine/exec/test/test_graph.h"
#include "tests/attacks/arena/two_users.h"
#include "tests/executors/costly.h"
#include "tests/executors/misbehaving.h"

namespace leat::test {
namespace {

using G = exec::TestGraph;

constexpr std::int64_t kWide = 512;  // floats of a frame
constexpr int kAttempts = 3;
// Shares of the honest user's frames: of all on a quiet machine, where all are in time; of what he has alone where
// other programs on the same cores make him late, and make each dear batch that he waits for as much longer. Without
// the defences it is none or one of 200 beside dear frames, and about a hundred beside poison.
struct Bar {
  double quiet, disturbed;
};
constexpr Bar kBesideDear{.quiet = 0.7, .disturbed = 0.5}, kBesidePoison{.quiet = 0.85, .disturbed = 0.85};
constexpr double kQuiet = 0.95;       // in time alone: the machine is quiet
constexpr std::uint32_t kTells = 40;  // fewer in time alone say nothing

// leatd's user: root, or not.
class Costs : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (getuid() != 0) GTEST_SKIP() << "only root can become other users";
  }
  // What the honest user has in time of his frames while the other sends his. Where that is too little, it is held
  // against what he has alone right afterwards; one attempt of some has to reach its bar.
  void expect_in_time(const std::string& config, const Flow& honest, const Flow& other, Bar bar) {
    bool reached = false;
    for (int attempt = 0; attempt < kAttempts && !reached; ++attempt) {
      const Tally beside = beside_the_other(config, honest, other);
      reached = beside.in_time >= bar.quiet * honest.frames;
      if (!reached) reached = beside.in_time >= bar.disturbed * in_time_alone_if_disturbed(config, honest);
    }
    EXPECT_TRUE(reached) << leatd_->log();
  }
  // Infinite where the machine is quiet, or so busy that nothing can be told.
  double in_time_alone_if_disturbed(const std::string& config, const Flow& honest) {
    leatd_ = open_to_all(config, GetParam());
    const Tally alone = Sender(kHonest, leatd_->socket(), honest).tally();
    std::printf("honest alone: %u of %u in time\n", alone.in_time, alone.submitted);
    const bool tells = alone.in_time >= kTells && alone.in_time < kQuiet * honest.frames;
    return tells ? alone.in_time : std::numeric_limits<double>::infinity();
  }
  Tally beside_the_other(const std::string& config, const Flow& honest, const Flow& other) {
    leatd_ = open_to_all(config, GetParam());
    const Sender before(kDear, leatd_->socket(), other);
    const Sender sender(kHonest, leatd_->socket(), honest);
    const Tally mine = sender.tally();
    other_ = before.tally();
    std::printf("honest: %u of %u in time; the other: %u of %u, %u refused, %u poison\n", mine.in_time, mine.submitted,
                other_.in_time, other_.submitted, other_.refused, other_.poison);
    EXPECT_EQ(mine.answered, mine.submitted);
    EXPECT_EQ(other_.answered, other_.submitted);
    EXPECT_GT(other_.submitted, 0U);
    return mine;
  }
  std::unique_ptr<Leatd> leatd_;
  Tally other_;  // of the last attempt
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
