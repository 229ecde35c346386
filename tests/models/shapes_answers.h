// The demo's application asked through a whole leatd: the same frames of cameras no model has seen, whatever the
// partitions are, and the answers compared.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "tests/models/shapes_frames.h"
#include "tests/serving/daemon_fixture.h"

namespace leat::test {

using namespace std::chrono_literals;

inline constexpr std::uint32_t kFrames = 12, kW = 640, kH = 360;

inline std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Whole frames of unseen cameras, in order, one after the other and then several at once.
// handed_over: bytes over each edge. look: before leatd is stopped.
inline std::vector<leat_result> answers_of(const std::string& config, std::array<std::uint64_t, 2>* handed_over,
                                           std::uint64_t* copied = nullptr,
                                           const std::function<void(Leatd&)>& look = {}) {
  std::vector<leat_result> out(2 * kFrames);
  Leatd leatd(config);
  auto client = Client::connect(leatd.socket(), "split");
  EXPECT_TRUE(client.ok()) << leatd.log();
  if (!client.ok()) return {};
  leat_stream_options o;
  leat_stream_options_init(&o);
  o.application = "shapes";
  o.format = LEAT_FORMAT_nv12;
  o.width = kW, o.height = kH;
  o.depth = o.slots = 6;
  o.overload = LEAT_OVERLOAD_never_drop;
  o.slo_ns = 60'000'000'000;
  auto stream = client->open_stream(o);
  EXPECT_TRUE(stream.ok()) << leatd.log();
  if (!stream.ok()) return {};
  scene::Scene scene({.seed = tests::kUnseenSeed, .camera = 3, .width = kW, .height = kH});
  std::vector<std::uint8_t> rgb(scene.rgb_bytes()), nv12(scene.nv12_bytes());
  std::uint32_t in_flight = 0;
  const auto take = [&] {
    const auto answer = client->next_answer(30s);
    ASSERT_TRUE(answer) << leat_last_error() << leatd.log();
    ASSERT_EQ(answer->outcome(), Outcome::completed) << name_of(answer->reason()) << leatd.log();
    out[answer->raw().cookie] = *answer->result();
    --in_flight;
  };
  for (std::uint32_t i = 0; i < 2 * kFrames && !testing::Test::HasFatalFailure(); ++i) {
    while (in_flight >= (i < kFrames ? 1 : 6) && !testing::Test::HasFatalFailure()) take();
    (void)scene.render(i % kFrames * 17, rgb.data(), std::size_t{3} * kW);
    scene::to_nv12(rgb.data(), std::size_t{3} * kW, kW, kH, nv12.data());
    auto frame = stream->acquire();
    EXPECT_TRUE(frame);
    if (!frame) break;
    const std::uint8_t* from = nv12.data();
    for (std::uint32_t p = 0; p < frame->raw().plane_count; ++p)
      for (std::uint32_t y = 0; y < frame->raw().rows[p]; ++y, from += frame->raw().row_bytes[p])
        std::memcpy(frame->raw().planes[p] + std::size_t{y} * frame->raw().strides[p], from, frame->raw().row_bytes[p]);
    leat_submit_options options{};
    options.cookie = i;
    EXPECT_EQ(frame->submit(options), LEAT_ERROR_ok);
    ++in_flight;
  }
  while (in_flight > 0 && !testing::Test::HasFatalFailure()) take();
  *handed_over = {};
  for (std::uint32_t e = 0; e < handed_over->size(); ++e) {
    const auto edge = leatd.record(shm::RecordKind::edge, e);
    if (!edge) continue;
    (*handed_over)[e] = *edge->value(shm::EdgeCounter::bytes_in_place) + *edge->value(shm::EdgeCounter::bytes_copied);
    if (copied != nullptr) *copied += *edge->value(shm::EdgeCounter::bytes_copied);
    EXPECT_EQ(edge->value(shm::EdgeCounter::slots_in_use), 0U);
  }
  EXPECT_TRUE(balances(*leatd.total()));
  if (look) look(leatd);
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
  return out;
}

// The number of objects.
inline std::uint64_t expect_equal(const std::vector<leat_result>& whole, const std::vector<leat_result>& split) {
  EXPECT_EQ(whole.size(), split.size());
  std::uint64_t objects = 0;
  for (std::size_t i = 0; i < std::min(whole.size(), split.size()); ++i) {
    SCOPED_TRACE("frame " + std::to_string(i));
    EXPECT_EQ(whole[i].detection_count, split[i].detection_count);
    objects += whole[i].detection_count;
    for (std::uint32_t d = 0; d < std::min(whole[i].detection_count, split[i].detection_count); ++d) {
      const leat_detection &a = whole[i].detections[d], &b = split[i].detections[d];
      EXPECT_EQ(a.class_id, b.class_id);
      for (const auto& [x, y] :
           {std::pair{a.x0, b.x0}, std::pair{a.y0, b.y0}, std::pair{a.x1, b.x1}, std::pair{a.y1, b.y1}})
        EXPECT_NEAR(x, y, 0.02F);
      EXPECT_NEAR(a.score, b.score, 1e-4F);
      EXPECT_EQ(a.label_count, 2U);
      EXPECT_EQ(b.label_count, 2U);
      for (std::uint32_t l = 0; l < 2; ++l) EXPECT_EQ(a.labels[l].class_id, b.labels[l].class_id);
    }
  }
  return objects;
}

}  // namespace leat::test
