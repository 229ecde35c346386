// The application `shapes` through the whole daemon: client library, scheduler, worker, both models, merge. Every
// unseen frame is submitted unhurried and must be completed; what comes back must be as accurate as the application
// promises.
#include "tools/scene/tracking/accuracy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

#include "tests/models/shapes_frames.h"
#include "tests/serving/daemon_fixture.h"

namespace leat::tests {
namespace {

using namespace std::chrono_literals;

// The committed configuration, its models named by whole paths.
std::string shapes_config() {
  std::ifstream file(LEAT_MODELS "/shapes.toml");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  for (std::size_t at = 0; (at = text.find("model = \"", at)) != std::string::npos; at += 9)
    text.insert(at + 9, LEAT_MODELS "/");
  return text;
}

leat_stream_options street() {
  leat_stream_options o;
  leat_stream_options_init(&o);
  o.application = "shapes";
  o.format = LEAT_FORMAT_nv12;
  o.width = kWidth, o.height = kHeight;
  o.depth = o.slots = 3;  // never more in flight than the stream may have
  o.overload = LEAT_OVERLOAD_never_drop;
  o.slo_ns = 60'000'000'000;  // accuracy is measured here, not haste
  return o;
}

void copy_into(const leat_frame& frame, std::span<const std::uint8_t> nv12) {
  const std::uint8_t* from = nv12.data();
  for (std::uint32_t p = 0; p < frame.plane_count; ++p) {
    for (std::uint32_t y = 0; y < frame.rows[p]; ++y, from += frame.row_bytes[p])
      std::memcpy(frame.planes[p] + std::size_t{y} * frame.strides[p], from, frame.row_bytes[p]);
  }
}

class ThroughTheDaemon {
 public:
  ThroughTheDaemon(Client& client, Stream& stream) : client_(client), stream_(stream) {}

  void submit(std::span<const std::uint8_t> nv12, const std::vector<scene::Object>& truth) {
    auto frame = stream_.acquire();
    while (!frame) {
      ASSERT_TRUE(take()) << leat_last_error();
      frame = stream_.acquire();
    }
    copy_into(frame->raw(), nv12);
    truths_[++sent_] = truth;
    leat_submit_options options{};
    options.cookie = sent_;
    ASSERT_EQ(frame->submit(options), LEAT_ERROR_ok) << leat_last_error();
  }
  // False: no answer came.
  bool take() {
    const auto answer = client_.next_answer(test::kPatience);
    if (!answer) return false;
    ++answered_;
    EXPECT_EQ(answer->outcome(), Outcome::completed) << name_of(answer->reason());
    if (answer->result() != nullptr) meter_.add(truths_.at(answer->raw().cookie), *answer->result());
    truths_.erase(answer->raw().cookie);
    return true;
  }
  void take_rest() {
    while (answered_ < sent_) ASSERT_TRUE(take()) << leat_last_error();
  }
  scene::Accuracy accuracy() const { return meter_.accuracy(); }

 private:
  Client& client_;
  Stream& stream_;
  scene::AccuracyMeter meter_;
  std::map<std::uint64_t, std::vector<scene::Object>> truths_;
  std::uint64_t sent_ = 0, answered_ = 0;
};

TEST(Accuracy, OfShapesOnUnseenFramesThroughTheDaemon) {
  test::Leatd leatd(shapes_config());
  auto client = Client::connect(leatd.socket(), "accuracy");
  ASSERT_TRUE(client.ok()) << client.error() << leatd.log();
  auto stream = client->open_stream(street());
  ASSERT_TRUE(stream.ok()) << stream.error();
  ThroughTheDaemon run(*client, *stream);
  for_unseen_frames(17, [&](std::span<const std::uint8_t> nv12, const std::vector<scene::Object>& truth) {
    if (!testing::Test::HasFatalFailure()) run.submit(nv12, truth);
  });
  run.take_rest();
  const scene::Accuracy a = run.accuracy();
  std::printf("%llu frames, %llu objects, map50 %.4f, detection_ap50 %.4f, classification %.4f\n",
              static_cast<unsigned long long>(a.frames), static_cast<unsigned long long>(a.objects), a.map50,
              a.detection_ap50, a.classification);
  EXPECT_EQ(a.frames, kUnseenFrames);
  EXPECT_GE(a.map50, 0.90);
  EXPECT_GE(a.classification, 0.97);
  const auto total = leatd.total();
  ASSERT_TRUE(total.has_value());
  EXPECT_TRUE(test::balances(*total));
  EXPECT_EQ(test::value(*total, shm::StreamCounter::completed), kUnseenFrames);
  EXPECT_EQ(test::value(*total, shm::StreamCounter::bytes_copied), 0U);
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

}  // namespace
}  // namespace leat::tests
