// Tensors through a real leatd: written in place by the client, answered in place by the runtime, nothing copied; and
// streams whose shapes are not the model's, or absurd.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "engine/exec/test/test_graph.h"
#include "leat/client.hpp"
#include "shm/src/counters/counters.h"
#include "tests/serving/daemon_fixture.h"

namespace leat::test {
namespace {

using namespace std::chrono_literals;
using G = exec::TestGraph;

constexpr std::uint32_t kWide = 786432;  // floats: 3 MiB

std::string config_of(const std::string& model, const std::string& more = "") {
  return "[[partition]]\nname = \"p\"\ncores = \"0\"\n[[application]]\nname = \"t\"\nslo_ms = 20000\n"
         "[[application.module]]\nname = \"m\"\nmodel = \"" +
         model + "\"\npreprocess = \"tensors\"\n" + (more.empty() ? "postprocess = \"tensors\"\nbatch = 2\n" : more);
}

leat_stream_options options_for(std::span<const leat_tensor_shape> shapes) {
  leat_stream_options o;
  leat_stream_options_init(&o);
  o.application = "t";
  o.format = LEAT_FORMAT_tensors;
  o.overload = LEAT_OVERLOAD_never_drop;
  o.depth = o.slots = 6;
  o.tensors = shapes.data();
  o.tensor_count = static_cast<std::uint32_t>(shapes.size());
  return o;
}

TEST(TensorStreams, ThreeMegabytesInPlace) {
  ScratchFolder folder;
  G g;  // y = x * scale, and the places that are not zero in a short second input
  g.input("x", G::f32, {"n", std::int64_t{kWide / 4}, 4});
  g.input("scale", G::f32, {"n", 1, 1});
  g.output(g.op("Mul", {"x", "scale"}, "y"), G::f32, {"n", std::int64_t{kWide / 4}, 4});
  g.save(folder.path() + "/m.onnx");
  Leatd leatd(config_of(folder.path() + "/m.onnx"));
  auto client = Client::connect(leatd.socket(), "tensors");
  ASSERT_TRUE(client.ok()) << leatd.log();
  const leat_tensor_shape shapes[] = {{LEAT_F32, 2, {kWide / 4, 4}}, {LEAT_F32, 3, {1, 1, 1}}};
  auto stream = client->open_stream(options_for(shapes));
  ASSERT_TRUE(stream.ok()) << stream.error();
  for (std::uint32_t round = 1; round <= 20; ++round) {
    auto frame = stream->acquire();
    ASSERT_TRUE(frame);
    ASSERT_EQ(frame->raw().tensor_count, 2U);
    ASSERT_EQ(frame->raw().tensor_bytes[0], kWide * sizeof(float));
    auto* const x = static_cast<float*>(frame->raw().tensors[0]);
    for (std::uint32_t i = 0; i < kWide; ++i) x[i] = static_cast<float>(i % 1000);
    *static_cast<float*>(frame->raw().tensors[1]) = static_cast<float>(round);
    ASSERT_EQ(frame->submit(), LEAT_ERROR_ok);
    const auto answer = client->next_answer(30s);
    ASSERT_TRUE(answer) << leat_last_error() << leatd.log();
    ASSERT_EQ(answer->outcome(), Outcome::completed) << name_of(answer->reason()) << leatd.log();
    EXPECT_EQ(answer->result()->kind, LEAT_RESULT_PARTS);
    leat_part_view y;
    ASSERT_TRUE(leat_find_part(answer->result(), answer->raw().result_bytes, LEAT_PART_tensor, "y", &y));
    ASSERT_EQ(y.count, kWide);
    ASSERT_EQ(y.rank, 2U);
    const auto* const values = static_cast<const float*>(y.data);
    for (std::uint32_t i = 0; i < kWide; i += 997) ASSERT_EQ(values[i], static_cast<float>(i % 1000 * round)) << i;
    // A room of less than the part has is not read.
    EXPECT_FALSE(leat_part_at(answer->result(), y.bytes, 0, &y));
  }
  const auto total = leatd.total();
  ASSERT_TRUE(total);
  EXPECT_EQ(*total->value(shm::StreamCounter::bytes_copied), 0U);
  EXPECT_TRUE(balances(*total));
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

// They would cost many times the others, and whoever sends a frame can put them there.
TEST(TensorStreams, DenormalFloatsAreZero) {
  ScratchFolder folder;
  G g;
  g.input("x", G::f32, {"n", 8});
  g.output(g.op("Mul", {"x", g.constant("", {1}, {2})}, "y"), G::f32, {"n", 8});
  g.save(folder.path() + "/m.onnx");
  Leatd leatd(config_of(folder.path() + "/m.onnx"));
  auto client = Client::connect(leatd.socket(), "tensors");
  ASSERT_TRUE(client.ok()) << leatd.log();
  const leat_tensor_shape shape[] = {{LEAT_F32, 1, {8}}};
  auto stream = client->open_stream(options_for(shape));
  ASSERT_TRUE(stream.ok()) << stream.error();
  auto frame = stream->acquire();
  ASSERT_TRUE(frame);
  const float min = std::numeric_limits<float>::min();
  for (int i = 0; i < 8; ++i) static_cast<float*>(frame->raw().tensors[0])[i] = i < 4 ? min / 4 : min;
  ASSERT_EQ(frame->submit(), LEAT_ERROR_ok);
  const auto answer = client->next_answer(30s);
  ASSERT_TRUE(answer) << leat_last_error() << leatd.log();
  leat_part_view y;
  ASSERT_TRUE(leat_find_part(answer->result(), answer->raw().result_bytes, LEAT_PART_tensor, "y", &y));
  for (int i = 0; i < 8; ++i) EXPECT_EQ(static_cast<const float*>(y.data)[i], i < 4 ? 0 : 2 * min) << i;
}

TEST(TensorStreams, OtherShapesAreRefusedAndAbsurdOnesCostNothing) {
  ScratchFolder folder;
  G g;
  g.input("x", G::u8, {"n", 4});
  g.output(g.op("Identity", {"x"}, "y"), G::u8, {"n", 4});
  g.save(folder.path() + "/m.onnx");
  Leatd leatd(config_of(folder.path() + "/m.onnx"));
  auto client = Client::connect(leatd.socket(), "tensors");
  ASSERT_TRUE(client.ok()) << leatd.log();
  const auto refused = [&](std::vector<leat_tensor_shape> shapes, const char* word) {
    auto stream = client->open_stream(options_for(shapes));
    ASSERT_FALSE(stream.ok());
    EXPECT_NE(stream.error().find(word), std::string::npos) << stream.error();
  };
  refused({{LEAT_U8, 1, {5}}}, "[4] uint8");
  refused({{LEAT_F32, 1, {4}}}, "[4] uint8");
  refused({{LEAT_U8, 1, {4}}, {LEAT_U8, 1, {4}}}, "[4] uint8");
  refused({{77, 1, {4}}}, "unknown type");
  refused({{LEAT_U8, 9, {4}}}, "8 dimensions");
  refused({{LEAT_U8, 2, {4, 0}}}, "empty");
  refused({{LEAT_F64, 8, {65536, 65536, 65536, 65536, 65536, 65536, 65536, 65536}}}, "1 GiB");
  refused({}, "1..8 tensors");
  leat_stream_options pictures;
  leat_stream_options_init(&pictures);
  pictures.application = "t";
  pictures.format = LEAT_FORMAT_rgb24;
  pictures.width = pictures.height = 64;
  auto stream = client->open_stream(pictures);
  ASSERT_FALSE(stream.ok());
  EXPECT_NE(stream.error().find("takes tensors"), std::string::npos) << stream.error();
  const leat_tensor_shape good[] = {{LEAT_U8, 1, {4}}};
  auto served = client->open_stream(options_for(good));
  ASSERT_TRUE(served.ok()) << served.error();
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

TEST(TensorStreams, AnOutputThatOutgrowsItsSlotFailsThatRequestAlone) {
  ScratchFolder folder;
  G g;
  g.input("x", G::f32, {"n", 8});
  g.output(g.op("Transpose", {g.op("NonZero", {"x"})}, "places"), G::i64, {"k", 2});
  g.save(folder.path() + "/m.onnx");
  Leatd leatd(config_of(folder.path() + "/m.onnx", "postprocess = \"tensors max=3\"\nbatch = 4\n"));
  auto client = Client::connect(leatd.socket(), "tensors");
  ASSERT_TRUE(client.ok()) << leatd.log();
  const leat_tensor_shape shape[] = {{LEAT_F32, 1, {8}}};
  auto stream = client->open_stream(options_for(shape));
  ASSERT_TRUE(stream.ok()) << stream.error();
  std::uint32_t done = 0, too_large = 0, submitted = 0;
  for (std::uint32_t i = 0; i < 24; ++i) {
    while (auto frame = submitted < 24 ? stream->acquire() : std::nullopt) {
      auto* const x = static_cast<float*>(frame->raw().tensors[0]);
      for (std::uint32_t k = 0; k < 8; ++k) x[k] = k <= submitted % 6 ? 1.0F : 0.0F;
      leat_submit_options options{};
      options.cookie = submitted % 6;
      ASSERT_EQ(frame->submit(options), LEAT_ERROR_ok);
      ++submitted;
    }
    const auto answer = client->next_answer(30s);
    ASSERT_TRUE(answer) << leat_last_error() << leatd.log();
    if (answer->raw().cookie < 3) {
      ASSERT_EQ(answer->outcome(), Outcome::completed) << name_of(answer->reason()) << leatd.log();
      leat_part_view view;
      ASSERT_TRUE(leat_part_at(answer->result(), answer->raw().result_bytes, 0, &view));
      EXPECT_EQ(view.dims[0], answer->raw().cookie + 1);
      ++done;
    } else {
      ASSERT_EQ(answer->outcome(), Outcome::failed);
      EXPECT_EQ(answer->reason(), Reason::result_too_large);
      ++too_large;
    }
  }
  EXPECT_EQ(done, 12U);
  EXPECT_EQ(too_large, 12U);
  EXPECT_TRUE(balances(*leatd.total()));
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

// ONNX Runtime's 0 / 0 is no answer of a classifier's, and a tensor's as it is; both are counted, and the frame after
// it, in the same slot, is an answer as any other.
TEST(TensorStreams, NumbersThatAreNoneAreSaidAndCounted) {
  ScratchFolder folder;
  G g;
  g.input("x", G::f32, {"n", 4});
  g.input("by", G::f32, {"n", 1});
  g.output(g.op("Div", {"x", "by"}, "y"), G::f32, {"n", 4});
  g.save(folder.path() + "/m.onnx");
  for (const bool tensors : {true, false}) {
    SCOPED_TRACE(tensors ? "tensors" : "classes");
    Leatd leatd(config_of(folder.path() + "/m.onnx",
                          std::string("postprocess = \"") + (tensors ? "tensors" : "classes") + "\"\nbatch = 2\n"));
    auto client = Client::connect(leatd.socket(), "tensors");
    ASSERT_TRUE(client.ok()) << leatd.log();
    const leat_tensor_shape shapes[] = {{LEAT_F32, 1, {4}}, {LEAT_F32, 1, {1}}};
    auto options = options_for(shapes);
    options.depth = options.slots = 1;
    auto stream = client->open_stream(options);
    ASSERT_TRUE(stream.ok()) << stream.error();
    for (const float by : {1.0F, 0.0F, 2.0F}) {
      auto frame = stream->acquire();
      ASSERT_TRUE(frame);
      for (std::uint32_t i = 0; i < 4; ++i) static_cast<float*>(frame->raw().tensors[0])[i] = static_cast<float>(i);
      *static_cast<float*>(frame->raw().tensors[1]) = by;
      ASSERT_EQ(frame->submit(), LEAT_ERROR_ok);
      const auto answer = client->next_answer(30s);
      ASSERT_TRUE(answer) << leat_last_error() << leatd.log();
      EXPECT_EQ(answer->outcome(), by == 0 && !tensors ? Outcome::failed : Outcome::completed);
      EXPECT_EQ(answer->reason(), by == 0 && !tensors ? Reason::not_finite : Reason::none);
      if (answer->result() == nullptr) continue;
      EXPECT_EQ(answer->result()->flags, by == 0 ? LEAT_RESULT_NOT_FINITE : 0U) << by;
    }
    const auto record = leatd.record(shm::RecordKind::module, 0);
    ASSERT_TRUE(record);
    EXPECT_EQ(record->value(shm::ModuleCounter::not_finite), 1U);
    EXPECT_NE(leatd.log().find("not_finite in leat top"), std::string::npos) << leatd.log();
    EXPECT_TRUE(balances(*leatd.total()));
    EXPECT_EQ(leatd.stop(), 0) << leatd.log();
  }
}

}  // namespace
}  // namespace leat::test
