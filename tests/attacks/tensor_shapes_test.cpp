// Shapes and sizes of tensors that no library would send: counts and ranks beyond their arrays, products that wrap
// round, unknown types, a result size of the client's own, and tensors that change while the model reads them. Each is
// refused, or that stream's own harm; an honest client beside it has the right answers all the while.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "engine/exec/test/test_graph.h"
#include "leat/client.hpp"
#include "leat/result_parts.h"
#include "tests/attacks/arena/raw_client.h"
#include "tests/serving/daemon_fixture.h"

namespace leat::test {
namespace {

using namespace std::chrono_literals;
using G = exec::TestGraph;
using shm::PoolSpec;

std::string config_of(const std::string& model) {
  return "[[partition]]\nname = \"p\"\ncores = \"0\"\n[[application]]\nname = \"t\"\nslo_ms = 20000\n"
         "[[application.module]]\nname = \"m\"\nmodel = \"" +
         model + "\"\npreprocess = \"tensors\"\npostprocess = \"tensors max=4\"\nbatch = 2\n";
}

PoolSpec good_spec() {
  PoolSpec s;
  s.format = LEAT_FORMAT_tensors;
  s.slots = 4;
  s.tensor_count = 1;
  s.tensors[0] = {LEAT_F32, 1, {8}};
  return s;
}

// The places of a tensor's values that are not zero: right, or the test has failed.
void ask_honestly(Client& client, Stream& stream, std::uint32_t ones) {
  auto frame = stream.acquire();
  ASSERT_TRUE(frame);
  auto* const x = static_cast<float*>(frame->raw().tensors[0]);
  for (std::uint32_t i = 0; i < 8; ++i) x[i] = i < ones ? 1.0F : 0.0F;
  ASSERT_EQ(frame->submit(), LEAT_ERROR_ok);
  const auto answer = client.next_answer(30s);
  ASSERT_TRUE(answer) << leat_last_error();
  ASSERT_EQ(answer->outcome(), Outcome::completed);
  leat_part_view view;
  ASSERT_TRUE(leat_part_at(answer->result(), answer->raw().result_bytes, 0, &view));
  EXPECT_EQ(view.dims[0], ones);
}

TEST(TensorShapes, ForgedOnesAreRefusedAndHarmNobody) {
  ScratchFolder folder;
  G g;
  g.input("x", G::f32, {"n", 8});
  g.output(g.op("Transpose", {g.op("NonZero", {"x"})}, "places"), G::i64, {"k", 2});
  g.save(folder.path() + "/m.onnx");
  Leatd leatd(config_of(folder.path() + "/m.onnx"));
  auto client = Client::connect(leatd.socket(), "honest");
  ASSERT_TRUE(client.ok()) << leatd.log();
  const leat_tensor_shape shape{LEAT_F32, 1, {8}};
  leat_stream_options o;
  leat_stream_options_init(&o);
  o.application = "t", o.format = LEAT_FORMAT_tensors, o.tensors = &shape, o.tensor_count = 1;
  o.depth = o.slots = 2;
  auto stream = client->open_stream(o);
  ASSERT_TRUE(stream.ok()) << stream.error();

  const auto forged = [](auto change) {
    PoolSpec s = good_spec();
    change(s);
    return s;
  };
  const std::vector<std::pair<const char*, PoolSpec>> cases = {
      {"a count beyond the array", forged([](PoolSpec& s) { s.tensor_count = UINT32_MAX; })},
      {"nine tensors", forged([](PoolSpec& s) { s.tensor_count = 9; })},
      {"none", forged([](PoolSpec& s) { s.tensor_count = 0; })},
      {"a rank beyond the array", forged([](PoolSpec& s) { s.tensors[0].rank = UINT32_MAX; })},
      {"rank 9", forged([](PoolSpec& s) { s.tensors[0].rank = 9; })},
      {"an unknown type", forged([](PoolSpec& s) { s.tensors[0].dtype = UINT32_MAX; })},
      {"an empty dimension", forged([](PoolSpec& s) { s.tensors[0].dims[0] = 0; })},
      {"a product that is 32 modulo 2^64", forged([](PoolSpec& s) {
         s.tensors[0] = {LEAT_F32, 3, {0x80000000, 0x80000000, 4}};
       })},
      {"a product that wraps to nothing", forged([](PoolSpec& s) {
         s.tensors[0] = {LEAT_F64, 8, {65536, 65536, 65536, 65536, 65536, 65536, 65536, 65536}};
       })},
      {"slots that wrap the memory", forged([](PoolSpec& s) { s.slots = UINT32_MAX; })},
      {"another shape of as many bytes", forged([](PoolSpec& s) {
         s.tensors[0] = {LEAT_F32, 2, {2, 4}};
       })},
      {"another type of as many bytes", forged([](PoolSpec& s) { s.tensors[0].dtype = LEAT_I32; })},
      {"one tensor too many", forged([](PoolSpec& s) {
         s.tensor_count = 2, s.tensors[1] = {LEAT_F32, 1, {8}};
       })},
      {"a picture larger than any beside it", forged([](PoolSpec& s) { s.width = s.height = 1 << 30; })},
      {"strides beside it", forged([](PoolSpec& s) { s.strides[0] = 64; })},
      {"tensors of a picture's format",
       forged([](PoolSpec& s) { s.format = LEAT_FORMAT_gray8, s.width = s.height = 8; })},
      {"an unknown memory", forged([](PoolSpec& s) { s.memory = UINT32_MAX; })},
  };
  for (const auto& [what, spec] : cases) {
    SCOPED_TRACE(what);
    RawClient raw;
    ASSERT_TRUE(raw.connect(leatd.socket()) && raw.hello());
    EXPECT_FALSE(raw.open_unmapped(spec, "t"));
    ask_honestly(*client, *stream, 3);
  }
  // A result's size is leatd's to say, whatever the packet claims.
  RawClient raw;
  ASSERT_TRUE(raw.connect(leatd.socket()) && raw.hello());
  PoolSpec spec = good_spec();
  spec.result_bytes = 64;
  if (raw.open(spec, "t")) {
    EXPECT_GT(raw.view.spec().result_bytes, 8192U);
    // What it submits changes while it is read: each answer is one, and the honest client's are right.
    std::mt19937 random(7);
    for (int round = 0; round < 200; ++round) {
      const auto d = raw.good();
      ASSERT_TRUE(raw.push(d));
      raw.ring();
      for (int i = 0; i < 50; ++i) {
        const auto bits = static_cast<std::uint32_t>(random());
        std::memcpy(raw.view.writable_plane(d.slot, 0) + 4 * (bits % 8), &bits, 4);
      }
      if (round % 20 == 0) ask_honestly(*client, *stream, 1 + static_cast<std::uint32_t>(round) % 4);
      (void)raw.take_answers();
    }
  }
  ask_honestly(*client, *stream, 4);
  EXPECT_TRUE(leatd.alive());
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

}  // namespace
}  // namespace leat::test
