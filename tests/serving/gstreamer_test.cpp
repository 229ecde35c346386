// leatdetect in pipelines of GStreamer's own elements, against a real leatd: pictures written straight into slots, what
// is found as regions of interest, and what becomes of pictures that nobody answers.
#include <gst/gst.h>
#include <gst/video/video.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>

#include "tests/serving/daemon_fixture.h"
#include "tools/scene/scene.h"

namespace leat::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kSide = 192;

std::string config() {
  return "[[partition]]\nname = \"p\"\ncores = \"0\"\n[[application]]\nname = \"yard\"\nslo_ms = "
         "60000\n[[application.module]]\nname = \"detect\"\nmodel = \"" LEAT_MODELS
         "/detect.onnx\"\npreprocess = \"letterbox mean=0.5 std=0.5\"\npostprocess = \"boxes stride=8 score=0.2 "
         "iou=0.6\"\nlabels = [\"object\"]\nbatch = 1\n";
}

struct Regions {
  std::string label;
  guint x, y, width, height;
  double confidence;
};

class GStreamer : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    g_setenv("GST_PLUGIN_PATH", GSTLEAT_FOLDER, TRUE);
    g_setenv("GST_REGISTRY_FORK", "no", TRUE);
    static const ScratchFolder kRegistry;
    g_setenv("GST_REGISTRY", (kRegistry.path() + "/registry").c_str(), TRUE);
    gst_init(nullptr, nullptr);
  }
  void SetUp() override {
    for (const char* element : {"videotestsrc", "videoconvert", "rawvideoparse"}) {
      GstElementFactory* const factory = gst_element_factory_find(element);
      if (factory == nullptr) GTEST_SKIP() << "gstreamer1.0-plugins-base is not there";
      gst_object_unref(factory);
    }
  }

  // Runs it to its end; `detect` is the element of that name. What reached the sink, and what was told on the bus.
  void run(const std::string& description) {
    GError* error = nullptr;
    GstElement* const pipeline = gst_parse_launch(description.c_str(), &error);
    ASSERT_NE(pipeline, nullptr) << (error != nullptr ? error->message : "");
    ASSERT_EQ(error, nullptr) << error->message;
    GstElement* const sink = gst_bin_get_by_name(GST_BIN(pipeline), "sink");
    if (sink != nullptr)
      g_signal_connect(
          sink, "handoff",
          G_CALLBACK(+[](GstElement*, GstBuffer* buffer, GstPad*, GStreamer* self) { self->take(buffer); }), this);
    if (before_play_) before_play_(pipeline);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    GstBus* const bus = gst_element_get_bus(pipeline);
    for (bool over = false; !over;) {
      GstMessage* const message = gst_bus_timed_pop(bus, 60 * GST_SECOND);
      ASSERT_NE(message, nullptr) << "the pipeline stands still";
      over = GST_MESSAGE_TYPE(message) == GST_MESSAGE_EOS || GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR;
      if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) failed_ = true;
      if (gst_message_has_name(message, "leat")) told(gst_message_get_structure(message));
      gst_message_unref(message);
    }
    GstElement* const detect = gst_bin_get_by_name(GST_BIN(pipeline), "detect");
    for (const char* name : {"submitted", "completed", "late", "missed", "bytes-copied"})
      stats_[name] = stat(detect, name);
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(detect);
    gst_object_unref(bus);
    if (sink != nullptr) gst_object_unref(sink);
    gst_object_unref(pipeline);
  }

  static guint64 stat(GstElement* detect, const char* name) {
    GstStructure* stats = nullptr;
    guint64 count = 0;
    g_object_get(detect, "stats", &stats, nullptr);
    gst_structure_get_uint64(stats, name, &count);
    gst_structure_free(stats);
    return count;
  }

  // A picture with something in it, as bytes of RGB.
  std::string street() {
    scene::Scene scene({.seed = 3, .camera = 0, .width = kSide, .height = kSide});
    rgb_.resize(scene.rgb_bytes());
    scene.render(40, rgb_.data(), std::size_t{3} * kSide);
    return folder_.write("street", std::string(reinterpret_cast<const char*>(rgb_.data()), rgb_.size()));
  }

  static std::string detect(const std::string& socket, const std::string& more = "") {
    return " ! leatdetect name=detect application=yard slo-ms=60000 socket=" + socket + " " + more +
           " ! fakesink name=sink signal-handoffs=true ";
  }

  static inline std::atomic<int> qos_{0};
  std::function<void(GstElement*)> before_play_;
  ScratchFolder folder_;
  std::vector<std::uint8_t> rgb_;
  std::vector<std::vector<Regions>> pictures_;
  std::vector<GstClockTime> times_;
  std::map<std::string, int> reasons_;
  std::map<std::string, guint64> stats_;
  guint told_regions_ = 0;
  bool failed_ = false;

 private:
  void told(const GstStructure* about) {
    ++reasons_[gst_structure_get_string(about, "reason")];
    if (const GValue* const regions = gst_structure_get_value(about, "regions"))
      told_regions_ += gst_value_array_get_size(regions);
  }
  void take(GstBuffer* buffer) {
    times_.push_back(GST_BUFFER_PTS(buffer));
    auto& regions = pictures_.emplace_back();
    gpointer state = nullptr;
    while (GstMeta* const meta =
               gst_buffer_iterate_meta_filtered(buffer, &state, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE)) {
      auto* const roi = reinterpret_cast<GstVideoRegionOfInterestMeta*>(meta);
      double confidence = 0;
      gst_structure_get_double(gst_video_region_of_interest_meta_get_param(roi, "detection"), "confidence",
                               &confidence);
      regions.push_back({g_quark_to_string(roi->roi_type), roi->x, roi->y, roi->w, roi->h, confidence});
    }
  }
};

TEST_F(GStreamer, NothingIsCopiedWhereUpstreamWritesIntoSlots) {
  Leatd leatd(config());
  for (const std::string source : {"videotestsrc num-buffers=20 ! video/x-raw,format=RGB,width=194,height=190",
                                   "videotestsrc num-buffers=20 ! video/x-raw,format=I420,width=330,height=250 ! "
                                   "videoconvert ! video/x-raw,format=RGB",
                                   "videotestsrc num-buffers=20 ! video/x-raw,format=NV12,width=320,height=240"}) {
    run(source + detect(leatd.socket()));
    EXPECT_FALSE(failed_) << source << leatd.log();
    EXPECT_EQ(stats_["completed"], 20U) << source;
    EXPECT_EQ(stats_["bytes-copied"], 0U) << source;
  }
  EXPECT_EQ(pictures_.size(), 60U);
  EXPECT_TRUE(std::is_sorted(times_.begin(), times_.begin() + 20)) << "their order is kept";
  const auto total = leatd.total();
  ASSERT_TRUE(total);
  EXPECT_TRUE(balances(*total));
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

TEST_F(GStreamer, OtherMemoryIsCopiedAndCounted) {
  Leatd leatd(config());
  // A plane that is no multiple of 64 bytes.
  run("videotestsrc num-buffers=4 ! video/x-raw,format=I420,width=330,height=250" + detect(leatd.socket()));
  EXPECT_EQ(stats_["completed"], 4U) << leatd.log();
  EXPECT_EQ(stats_["bytes-copied"], 4U * (330 * 250 + 2 * 165 * 125));
  // Two elements want the buffer for their own leatd's slots: the second copies, and both regions' makers see all.
  run("videotestsrc num-buffers=4 ! video/x-raw,format=RGB,width=64,height=64 ! leatdetect application=yard "
      "slo-ms=60000 socket=" +
      leatd.socket() + detect(leatd.socket()));
  EXPECT_EQ(stats_["completed"], 4U) << leatd.log();
  EXPECT_EQ(stats_["bytes-copied"], 4U * 64 * 64 * 3);
}

TEST_F(GStreamer, RegionsAreWhatLeatdFinds) {
  Leatd leatd(config());
  const std::string file = street();
  auto client = Client::connect(leatd.socket(), "test");
  ASSERT_TRUE(client.ok()) << leatd.log();
  StreamOptions options;
  options.application = "yard";
  options.format = LEAT_FORMAT_rgb24;
  options.width = options.height = kSide;
  auto stream = client->open_stream(options);
  ASSERT_TRUE(stream.ok()) << stream.error();
  auto frame = stream->acquire();
  for (std::size_t y = 0; y < kSide; ++y)
    std::copy_n(&rgb_[y * kSide * 3], kSide * 3, frame->plane(0) + y * frame->raw().strides[0]);
  ASSERT_EQ(frame->submit(), LEAT_ERROR_ok);
  const auto answer = client->next_answer(60s);
  ASSERT_TRUE(answer && answer->result() != nullptr);
  ASSERT_GT(answer->result()->detection_count, 0U);

  run("filesrc location=" + file + " ! rawvideoparse format=rgb width=192 height=192" +
      detect(leatd.socket(), "threshold=0"));
  ASSERT_EQ(pictures_.size(), 1U) << leatd.log();
  EXPECT_EQ(stats_["bytes-copied"], rgb_.size());
  ASSERT_EQ(pictures_[0].size(), answer->result()->detection_count);
  for (std::size_t i = 0; i < pictures_[0].size(); ++i) {
    const leat_detection& d = answer->result()->detections[i];
    EXPECT_EQ(pictures_[0][i].label, "object");
    EXPECT_EQ(pictures_[0][i].x, static_cast<guint>(std::max(d.x0, 0.F)));
    EXPECT_EQ(pictures_[0][i].y, static_cast<guint>(std::max(d.y0, 0.F)));
    EXPECT_FLOAT_EQ(static_cast<float>(pictures_[0][i].confidence), d.score);
  }
}

TEST_F(GStreamer, WhatNobodyAnswersIsToldAndDoneWithAsAsked) {
  const ScratchFolder folder;
  const std::string source = "videotestsrc num-buffers=3 ! video/x-raw,format=RGB,width=64,height=64",
                    nobody = folder.path() + "/leat.sock";
  run(source + detect(nobody));
  EXPECT_FALSE(failed_);
  EXPECT_EQ(pictures_.size(), 3U) << "they pass";
  EXPECT_EQ(reasons_["no_daemon"], 3);
  EXPECT_EQ(stats_["missed"], 3U);
  run(source + detect(nobody, "on-miss=drop"));
  EXPECT_EQ(pictures_.size(), 3U) << "they go no further";
  Leatd leatd(config());
  run("videotestsrc num-buffers=6 ! video/x-raw,format=RGB,width=64,height=64" + detect(leatd.socket(), "interval=3"));
  EXPECT_EQ(stats_["submitted"], 2U);
  EXPECT_EQ(pictures_.size(), 9U);
}

TEST_F(GStreamer, TheSinkTellsEveryAnswerOnTheBus) {
  Leatd leatd(config());
  run("filesrc location=" + street() +
      " ! rawvideoparse format=rgb width=192 height=192 ! leatsink name=detect "
      "application=yard slo-ms=60000 threshold=0 socket=" +
      leatd.socket());
  EXPECT_FALSE(failed_);
  EXPECT_EQ(stats_["completed"], 1U) << leatd.log();
  EXPECT_EQ(reasons_["none"], 1);
  EXPECT_GT(told_regions_, 0U);
}

TEST_F(GStreamer, ALivePipelineWaitsForTheObjective) {
  Leatd leatd(config());
  GstElement* const pipeline =
      gst_parse_launch(("videotestsrc is-live=true ! video/x-raw,format=RGB,width=64,height=64 ! "
                        "leatdetect application=yard slo-ms=123 socket=" +
                        leatd.socket() + " ! fakesink sync=true")
                           .c_str(),
                       nullptr);
  ASSERT_NE(pipeline, nullptr);
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  ASSERT_NE(gst_element_get_state(pipeline, nullptr, nullptr, 30 * GST_SECOND), GST_STATE_CHANGE_FAILURE);
  GstQuery* const query = gst_query_new_latency();
  gboolean live = FALSE;
  GstClockTime least = 0;
  ASSERT_TRUE(gst_element_query(pipeline, query));
  gst_query_parse_latency(query, &live, &least, nullptr);
  EXPECT_TRUE(live);
  EXPECT_GE(least, 123 * GST_MSECOND);
  gst_query_unref(query);
  gst_element_set_state(pipeline, GST_STATE_NULL);
  gst_object_unref(pipeline);
}

TEST_F(GStreamer, PicturesThatFindNoPlaceAreToldUpstream) {
  Leatd leatd(
      "[[partition]]\nname = \"p\"\nkind = \"emulated\"\n[[application]]\nname = \"yard\"\nslo_ms = 60000\n"
      "[[application.module]]\nname = \"slow\"\nexecutor = \"emulated\"\nlatency_ms = [30]\n");
  before_play_ = [](GstElement* pipeline) {
    GstElement* const source = gst_bin_get_by_name(GST_BIN(pipeline), "source");
    GstPad* const pad = gst_element_get_static_pad(source, "src");
    gst_pad_add_probe(
        pad, GST_PAD_PROBE_TYPE_EVENT_UPSTREAM,
        [](GstPad*, GstPadProbeInfo* info, gpointer count) {
          if (GST_EVENT_TYPE(GST_PAD_PROBE_INFO_EVENT(info)) == GST_EVENT_QOS) ++*static_cast<std::atomic<int>*>(count);
          return GST_PAD_PROBE_OK;
        },
        &qos_, nullptr);
    gst_object_unref(pad);
    gst_object_unref(source);
  };
  run("videotestsrc name=source num-buffers=12 ! video/x-raw,format=RGB,width=64,height=64" +
      detect(leatd.socket(), "overload=fifo depth=1 on-miss=drop"));
  EXPECT_GE(stats_["completed"], 1U) << leatd.log();
  EXPECT_GE(stats_["missed"], 1U);
  EXPECT_EQ(stats_["completed"] + stats_["missed"], 12U);
  EXPECT_EQ(pictures_.size(), stats_["completed"]);
  EXPECT_EQ(static_cast<guint64>(qos_), stats_["missed"]);
}

TEST_F(GStreamer, ALeatdThatComesBackIsFoundAndSlotsAreItsOwnAgain) {
  Leatd leatd(config());
  GstElement* const pipeline =
      gst_parse_launch(("videotestsrc ! video/x-raw,format=RGB,width=64,height=64 ! leatdetect "
                        "name=detect application=yard slo-ms=60000 socket=" +
                        leatd.socket() + " ! fakesink")
                           .c_str(),
                       nullptr);
  ASSERT_NE(pipeline, nullptr);
  GstElement* const detect = gst_bin_get_by_name(GST_BIN(pipeline), "detect");
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  ASSERT_TRUE(eventually([&] { return stat(detect, "completed") >= 5; }, 60s)) << leatd.log();
  leatd.kill();
  ASSERT_TRUE(eventually([&] { return stat(detect, "missed") >= 5; }, 60s));
  leatd.start();
  const guint64 before = stat(detect, "completed");
  ASSERT_TRUE(eventually([&] { return stat(detect, "completed") >= before + 20; }, 60s)) << leatd.log();
  const guint64 copied = stat(detect, "bytes-copied"), then = stat(detect, "completed");
  ASSERT_TRUE(eventually([&] { return stat(detect, "completed") >= then + 20; }, 60s)) << leatd.log();
  EXPECT_EQ(stat(detect, "bytes-copied"), copied);
  // Ends while answers are on their way.
  gst_element_set_state(pipeline, GST_STATE_NULL);
  EXPECT_EQ(stat(detect, "in-flight"), 0U);
  gst_object_unref(detect);
  gst_object_unref(pipeline);
}

TEST_F(GStreamer, AnApplicationThatIsMissingEndsThePipeline) {
  run("videotestsrc num-buffers=3 ! video/x-raw,format=RGB,width=64,height=64 ! leatdetect name=detect ! fakesink "
      "name=sink");
  EXPECT_TRUE(failed_);
}

}  // namespace
}  // namespace leat::test
