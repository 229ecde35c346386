// Streams of access units through a whole leatd over the stand-in decoders: answers are those of the same pictures
// decoded by libavcodec and sent as pixels, through a fraction of the bytes; damage costs the stream that sends it and
// nobody else; partitions without a decoder refuse them.
#include <algorithm>
#include <thread>

#include "cuda/decode/test_streams.h"
#include "tests/gpu/gpu_fixture.h"

namespace leat::test {
namespace {

constexpr int kPictures = 8;
constexpr std::uint32_t kDepth = 4;

// Frames of the demo's unseen cameras, as a stream that an encoder made of them.
CodedStream camera_stream(std::uint32_t camera, std::uint32_t codec, int reordered) {
  scene::Scene scene({.seed = tests::kUnseenSeed, .camera = camera % 4, .width = kW, .height = kH});
  StreamSpec spec{
      .codec = codec, .width = kW, .height = kH, .pictures = kPictures, .keys_every = 4, .reordered = reordered};
  std::vector<std::uint8_t> rgb(scene.rgb_bytes()), nv12(scene.nv12_bytes());
  for (std::uint32_t i = 0; i < kPictures; ++i) {
    (void)scene.render((i * 17 + camera * 5) % 200, rgb.data(), std::size_t{3} * kW);
    scene::to_nv12(rgb.data(), std::size_t{3} * kW, kW, kH, nv12.data());
    std::vector<std::uint8_t> i420(nv12.begin(), nv12.begin() + std::ptrdiff_t{kW} * kH);
    for (std::size_t c = 0; c < 2; ++c)
      for (std::size_t at = std::size_t{kW} * kH + c; at < nv12.size(); at += 2) i420.push_back(nv12[at]);
    spec.show.push_back(std::move(i420));
  }
  return coded_stream(spec);
}

leat_stream_options options_of(bool bitstream) {
  leat_stream_options o;
  leat_stream_options_init(&o);
  o.application = "shapes";
  o.format = bitstream ? LEAT_FORMAT_nv12 : LEAT_FORMAT_i420;
  o.width = kW, o.height = kH;
  o.depth = kDepth, o.slots = kDepth + 2;
  o.overload = LEAT_OVERLOAD_never_drop;
  o.slo_ns = 60'000'000'000;
  if (bitstream) o.memory = LEAT_SLOT_BITSTREAM, o.codec = LEAT_CODEC_h264;
  return o;
}

void write(const leat_frame& to, const std::vector<std::uint8_t>& i420) {
  const std::uint8_t* from = i420.data();
  for (std::uint32_t p = 0; p < to.plane_count; ++p)
    for (std::uint32_t y = 0; y < to.rows[p]; ++y, from += to.row_bytes[p])
      std::memcpy(to.planes[p] + std::size_t{y} * to.strides[p], from, to.row_bytes[p]);
}

struct Sent {
  std::vector<leat_result> results;  // [access unit]
  std::vector<Reason> reasons;
  std::uint64_t bytes = 0;
};

// One client's stream, whole, its answers by access unit. alter: what is sent instead of access unit i.
Sent send(const Leatd& leatd, const CodedStream& s, bool bitstream,
          const std::function<std::vector<std::uint8_t>(std::size_t)>& alter = {}) {
  Sent out{std::vector<leat_result>(s.units.size()), std::vector<Reason>(s.units.size(), Reason::none), 0};
  auto client = Client::connect(leatd.socket(), "camera");
  EXPECT_TRUE(client.ok()) << leatd.log();
  if (!client.ok()) return {};
  auto stream = client->open_stream(options_of(bitstream));
  EXPECT_TRUE(stream.ok()) << (stream.ok() ? "" : stream.error());
  if (!stream.ok()) return {};
  std::size_t answered = 0;
  const auto take = [&] {
    const auto answer = client->next_answer(60s);
    EXPECT_TRUE(answer) << leat_last_error() << leatd.log();
    if (!answer) return false;
    ++answered;
    out.reasons[answer->raw().cookie] = answer->reason();
    if (answer->result() != nullptr) out.results[answer->raw().cookie] = *answer->result();
    return true;
  };
  for (std::size_t i = 0; i < s.units.size(); ++i) {
    while (i - answered >= kDepth)
      if (!take()) return out;
    auto frame = stream->acquire();
    EXPECT_TRUE(frame) << leat_last_error();
    if (!frame) return out;
    leat_submit_options submit{};
    submit.cookie = i;
    if (bitstream) {
      const std::vector<std::uint8_t> unit = alter ? alter(i) : s.units[i];
      std::copy(unit.begin(), unit.end(), frame->raw().planes[0]);
      submit.bytes = static_cast<std::uint32_t>(unit.size());
      out.bytes += unit.size();
    } else {
      write(frame->raw(), s.i420[i]);
      out.bytes += s.i420[i].size();
    }
    EXPECT_EQ(frame->submit(submit), LEAT_ERROR_ok) << leat_last_error();
  }
  while (answered < s.units.size() && take()) {
  }
  return out;
}

std::string on_a_gpu() {
  (void)gpus();
  return shapes_on(partition_on("g0", "gpu", 0), "", "");
}

// Those beyond the classifier's cap have no labels. But for what a model's arithmetic depends on how many pictures it
// is given at once.
bool same(const leat_result& a, const leat_result& b) {
  if (a.detection_count != b.detection_count) return false;
  for (std::uint32_t d = 0; d < a.detection_count; ++d) {
    const leat_detection &x = a.detections[d], &y = b.detections[d];
    const auto near = [](float p, float q, float by) { return p - q < by && q - p < by; };
    if (x.class_id != y.class_id || !near(x.score, y.score, 1e-4F) || x.label_count != y.label_count ||
        x.labels[0].class_id != y.labels[0].class_id || x.labels[1].class_id != y.labels[1].class_id ||
        !near(x.x0, y.x0, .02F) || !near(x.y0, y.y0, .02F) || !near(x.x1, y.x1, .02F) || !near(x.y1, y.y1, .02F))
      return false;
  }
  return true;
}

std::size_t same_answers(const Sent& a, const Sent& b) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.results.size(); ++i)
    count += a.reasons[i] == Reason::none && b.reasons[i] == Reason::none && same(a.results[i], b.results[i]) ? 1 : 0;
  return count;
}

TEST(Bitstreams, TwentyFourAreAnsweredAsTheirPicturesAre) {
  constexpr std::uint32_t kStreams = 24;
  std::vector<CodedStream> streams;
  for (std::uint32_t c = 0; c < kStreams; ++c) streams.push_back(camera_stream(c, LEAT_CODEC_h264, c % 2 == 0 ? 0 : 2));
  if (streams[0].units.empty()) GTEST_SKIP() << "libavcodec has no encoder for H.264";
  Leatd leatd(on_a_gpu());
  std::vector<Sent> coded(kStreams), raw(kStreams);
  {
    std::vector<std::thread> clients;
    for (std::uint32_t c = 0; c < kStreams; ++c)
      clients.emplace_back([&, c] { coded[c] = send(leatd, streams[c], true); });
    for (std::thread& t : clients) t.join();
  }
  for (std::uint32_t c = 0; c < kStreams; ++c) raw[c] = send(leatd, streams[c], false);
  std::uint64_t coded_bytes = 0, raw_bytes = 0;
  for (std::uint32_t c = 0; c < kStreams; ++c) {
    EXPECT_EQ(same_answers(coded[c], raw[c]), streams[c].units.size()) << "stream " << c << leatd.log();
    coded_bytes += coded[c].bytes, raw_bytes += raw[c].bytes;
  }
  EXPECT_LE(coded_bytes * 50, raw_bytes);
  std::printf("bytes of access units: %.2f %% of the pixels'\n",
              100.0 * static_cast<double>(coded_bytes) / static_cast<double>(raw_bytes));
  EXPECT_TRUE(balances(*leatd.total()));
  EXPECT_EQ(value(*leatd.total(), StreamCounter::submitted), 2U * kStreams * kPictures);
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

TEST(Bitstreams, DamageCostsTheStreamThatSendsItAlone) {
  const CodedStream s = camera_stream(1, LEAT_CODEC_h264, 0);
  if (s.units.empty()) GTEST_SKIP() << "libavcodec has no encoder for H.264";
  Leatd leatd(on_a_gpu());
  const Sent alone = send(leatd, s, true);
  const auto workers = leatd.workers();
  std::thread hurts([&] {
    for (std::uint32_t round = 0; round < 6; ++round) {
      const Sent got = send(leatd, s, true, [&](std::size_t i) {
        return i % 2 == 1 ? damaged(s.units[i], round * 100 + static_cast<std::uint32_t>(i)) : s.units[i];
      });
      for (const Reason r : got.reasons) EXPECT_TRUE(r == Reason::none || r == Reason::undecodable) << name_of(r);
    }
  });
  for (int round = 0; round < 3; ++round) EXPECT_EQ(same_answers(send(leatd, s, true), alone), s.units.size());
  hurts.join();
  const Sent lost = send(leatd, s, true, [&](std::size_t i) {
    return i == 1 ? std::vector<std::uint8_t>{0, 0, 1, 9, 16} : s.units[i];  // a delimiter, and no picture
  });
  for (std::size_t i = 0; i < s.units.size(); ++i)
    EXPECT_EQ(lost.reasons[i], i >= 1 && i < 4 ? Reason::undecodable : Reason::none) << i;
  EXPECT_NE(leatd.log().find("no pictures before the next key picture"), std::string::npos);
  EXPECT_EQ(leatd.workers(), workers);
  EXPECT_TRUE(balances(*leatd.total()));
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

TEST(Bitstreams, WhatIsDroppedIsDecodedAllTheSame) {
  const CodedStream s = camera_stream(2, LEAT_CODEC_h264, 0);
  if (s.units.empty()) GTEST_SKIP() << "libavcodec has no encoder for H.264";
  Leatd leatd(on_a_gpu());
  const Sent whole = send(leatd, s, false);
  auto client = Client::connect(leatd.socket(), "camera");
  ASSERT_TRUE(client.ok());
  leat_stream_options o = options_of(true);
  o.overload = LEAT_OVERLOAD_latest;
  o.depth = 2, o.slots = 12;
  auto stream = client->open_stream(o);
  ASSERT_TRUE(stream.ok()) << stream.error();
  std::size_t completed = 0, dropped = 0;
  for (std::size_t i = 0; i < s.units.size(); ++i) {  // all at once: the newest takes the place of what waits
    auto frame = stream->acquire();
    ASSERT_TRUE(frame);
    std::copy(s.units[i].begin(), s.units[i].end(), frame->raw().planes[0]);
    leat_submit_options submit{};
    submit.cookie = i;
    submit.bytes = static_cast<std::uint32_t>(s.units[i].size());
    submit.flags = i + 1 < s.units.size() ? LEAT_SUBMIT_MORE : 0;
    ASSERT_EQ(frame->submit(submit), LEAT_ERROR_ok) << leat_last_error();
  }
  for (std::size_t i = 0; i < s.units.size(); ++i) {
    const auto answer = client->next_answer(60s);
    ASSERT_TRUE(answer) << leatd.log();
    if (answer->result() == nullptr) {
      EXPECT_NE(answer->outcome(), Outcome::failed) << name_of(answer->reason());
      ++dropped;
      continue;
    }
    ++completed;
    EXPECT_TRUE(same(*answer->result(), whole.results[answer->raw().cookie])) << answer->raw().cookie;
  }
  EXPECT_GT(dropped, 0U);
  EXPECT_GT(completed, 0U);
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

TEST(Bitstreams, PartitionsOfCoresRefuseThemInOneLine) {
  (void)gpus();
  Leatd leatd(shapes_on(partition_on("c0", "cpu", 0), "", ""));
  auto client = Client::connect(leatd.socket(), "camera");
  ASSERT_TRUE(client.ok());
  const auto stream = client->open_stream(options_of(true));
  ASSERT_FALSE(stream.ok());
  EXPECT_NE(stream.error().find("'c0', which decodes no h264"), std::string::npos) << stream.error();
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

}  // namespace
}  // namespace leat::test
