// leatsink behind a camera's source in GStreamer, a pipeline a camera. The source writes into the slots that leatsink
// offers it, as a grabber's or a converter's does.
#include <gst/base/gstpushsrc.h>
#include <gst/video/video.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "bench/alternatives/contenders/leatd_run.h"
#include "bench/serving/leatd_child.h"
#include "shm/src/rings/clock.h"

namespace leat::bench::alternatives {

namespace {

struct Work {
  const Run* run = nullptr;
  std::uint32_t camera = 0;
  std::unique_ptr<Film> film;
  Timetable times;
  std::uint64_t next = 0;
};

struct CameraSource {
  GstPushSrc parent;
  Work* work;
};
struct CameraSourceClass {
  GstPushSrcClass parent;
};
G_DEFINE_TYPE(CameraSource, camera_source, GST_TYPE_PUSH_SRC)

// The newest picture there is, once it is due; those before it are passed over.
GstFlowReturn fill(GstPushSrc* source, GstBuffer* buffer) {
  Work& w = *reinterpret_cast<CameraSource*>(source)->work;
  Record& record = *w.run->record;
  for (; w.next < w.times.pictures; ++w.next) {
    sleep_until(w.times.due_ns(w.camera, w.next));
    const std::uint64_t newest = std::max(w.times.taken(w.camera, shm::monotonic_ns()), w.next + 1) - 1;
    record.pass(w.camera, w.next, newest);
    w.next = newest;
    GstVideoInfo info;
    gst_video_info_set_format(
        &info, w.run->pictures->format() == LEAT_FORMAT_nv12 ? GST_VIDEO_FORMAT_NV12 : GST_VIDEO_FORMAT_I420, kWidth,
        kHeight);
    GstVideoFrame video;
    if (!gst_video_frame_map(&video, &info, buffer, GST_MAP_WRITE)) return GST_FLOW_ERROR;
    leat_frame frame{};
    frame.format = w.run->pictures->format();
    frame.width = kWidth, frame.height = kHeight;
    frame.plane_count = GST_VIDEO_FRAME_N_PLANES(&video);
    for (std::uint32_t p = 0; p < frame.plane_count; ++p) {
      frame.planes[p] = static_cast<std::uint8_t*>(GST_VIDEO_FRAME_PLANE_DATA(&video, p));
      frame.strides[p] = static_cast<std::uint32_t>(GST_VIDEO_FRAME_PLANE_STRIDE(&video, p));
      frame.row_bytes[p] = p == 0 || frame.plane_count == 2 ? kWidth : kWidth / 2;
      frame.rows[p] = p == 0 ? kHeight : kHeight / 2;
    }
    const auto got = w.film->read(newest, frame);
    gst_video_frame_unmap(&video);
    if (got != Film::Got::ready) {
      record.without(w.camera, newest, got);
      continue;
    }
    GST_BUFFER_PTS(buffer) = static_cast<GstClockTime>(w.times.due_ns(w.camera, newest) - w.times.start_ns);
    ++w.next;
    return GST_FLOW_OK;
  }
  return GST_FLOW_EOS;
}

void camera_source_init(CameraSource* self) {
  gst_base_src_set_live(GST_BASE_SRC(self), TRUE);
  gst_base_src_set_format(GST_BASE_SRC(self), GST_FORMAT_TIME);
  gst_base_src_set_blocksize(GST_BASE_SRC(self), kWidth * kHeight * 3 / 2);  // where nobody offers a pool
}

void camera_source_class_init(CameraSourceClass* klass) {
  auto* const element = GST_ELEMENT_CLASS(klass);
  static GstStaticPadTemplate pad_template = GST_STATIC_PAD_TEMPLATE(
      "src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS(GST_VIDEO_CAPS_MAKE("{ NV12, I420 }")));
  gst_element_class_add_static_pad_template(element, &pad_template);
  gst_element_class_set_static_metadata(element, "Camera", "Source/Video", "A camera of the benchmark",
                                        "Leat maintainers");
  GST_PUSH_SRC_CLASS(klass)->fill = fill;
}

// In the thread that has the answer.
GstBusSyncReply on_message(GstBus*, GstMessage* message, gpointer data) {
  const GstStructure* const said = gst_message_get_structure(message);
  if (GST_MESSAGE_TYPE(message) != GST_MESSAGE_ELEMENT || !gst_structure_has_name(said, "leat")) return GST_BUS_PASS;
  const Work& w = *static_cast<const Work*>(data);
  guint64 pts = 0;
  (void)gst_structure_get_uint64(said, "pts", &pts);
  const std::int64_t since = static_cast<std::int64_t>(pts) + w.times.start_ns - w.times.due_ns(w.camera, 0);
  const auto picture =
      static_cast<std::uint64_t>(std::llround(static_cast<double>(since) / static_cast<double>(w.times.period_ns)));
  const std::string outcome = gst_structure_get_string(said, "outcome");
  if (outcome == "completed" || outcome == "late" || outcome == "failed")
    w.run->record->ran(w.camera, picture, outcome != "failed");
  else
    w.run->record->pass(w.camera, picture);
  gst_message_unref(message);
  return GST_BUS_DROP;
}

class Pipeline {
 public:
  Status open(const std::string& socket, const Run& run, std::uint32_t camera) {
    auto film = run.pictures->open(camera);
    if (!film.ok()) return Error{film.error()};
    work_->run = &run, work_->camera = camera, work_->film = std::move(*film);
    pipeline_.reset(GST_ELEMENT(gst_object_ref_sink(gst_pipeline_new(nullptr))));
    auto* const source = GST_ELEMENT(g_object_new(camera_source_get_type(), nullptr));
    reinterpret_cast<CameraSource*>(source)->work = work_.get();
    GstElement* const sink = gst_element_factory_make("leatsink", nullptr);
    if (sink == nullptr) return Error{"GStreamer does not find leatsink"};
    g_object_set(sink, "application", "shapes", "socket", socket.c_str(), "slo-ms",
                 static_cast<guint>(run.deadline_ns / 1'000'000), nullptr);
    gst_util_set_object_arg(G_OBJECT(sink), "overload", "latest");
    gst_bin_add_many(GST_BIN(pipeline_.get()), source, sink, nullptr);
    GstCaps* const caps = gst_caps_new_simple("video/x-raw", "format", G_TYPE_STRING,
                                              run.pictures->format() == LEAT_FORMAT_nv12 ? "NV12" : "I420", "width",
                                              G_TYPE_INT, int{kWidth}, "height", G_TYPE_INT, int{kHeight}, "framerate",
                                              GST_TYPE_FRACTION, int{kRate}, 1, nullptr);
    const bool linked = gst_element_link_filtered(source, sink, caps) != FALSE;
    gst_caps_unref(caps);
    if (!linked) return Error{"the camera's source and leatsink do not go together"};
    gst_pipeline_use_clock(GST_PIPELINE(pipeline_.get()), gst_system_clock_obtain());
    gst_element_set_start_time(pipeline_.get(), GST_CLOCK_TIME_NONE);
    bus_.reset(gst_element_get_bus(pipeline_.get()));
    gst_bus_set_sync_handler(bus_.get(), on_message, work_.get(), nullptr);
    return gst_element_set_state(pipeline_.get(), GST_STATE_PAUSED) != GST_STATE_CHANGE_FAILURE ? Status(Done{})
                                                                                                : said();
  }

  void play(const Timetable& times) {
    work_->times = times;
    gst_element_set_base_time(pipeline_.get(), static_cast<GstClockTime>(times.start_ns));
    gst_element_set_state(pipeline_.get(), GST_STATE_PLAYING);
  }

  Status end() {
    const Status ended = said();
    gst_element_set_state(pipeline_.get(), GST_STATE_NULL);
    return ended;
  }

 private:
  // Waits for the end of the pictures or an error.
  Status said() {
    const auto kinds = static_cast<GstMessageType>(GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
    GstMessage* const message = gst_bus_timed_pop_filtered(bus_.get(), 60 * GST_SECOND, kinds);
    if (message == nullptr) return Error{"a pipeline did not come to its end"};
    const bool good = GST_MESSAGE_TYPE(message) == GST_MESSAGE_EOS;
    std::string why;
    if (!good) {
      GError* error = nullptr;
      gst_message_parse_error(message, &error, nullptr);
      why = error->message;
      g_error_free(error);
    }
    gst_message_unref(message);
    return good ? Status(Done{}) : Error{why};
  }

  struct Freed {
    void operator()(GstElement* pipeline) const {
      gst_element_set_state(pipeline, GST_STATE_NULL);
      gst_object_unref(pipeline);
    }
    void operator()(GstBus* bus) const { gst_object_unref(bus); }
  };
  std::unique_ptr<Work> work_ = std::make_unique<Work>();
  std::unique_ptr<GstElement, Freed> pipeline_;
  std::unique_ptr<GstBus, Freed> bus_;
};

Status film_in_pipelines(const std::string& socket, const Run& run) {
  // Beside leatd's socket, so that nothing of the user's is read or written.
  ::setenv("GST_PLUGIN_PATH_1_0", built("tools/gstreamer").c_str(), 1);
  ::setenv("GST_REGISTRY_1_0", (socket + ".gstreamer").c_str(), 1);
  ::setenv("GST_REGISTRY_FORK", "no", 1);
  gst_init(nullptr, nullptr);
  std::vector<Pipeline> pipelines(run.cameras);
  for (std::uint32_t c = 0; c < run.cameras; ++c)
    if (const Status opened = pipelines[c].open(socket, run, c); !opened) return opened;
  run.record->say_ready();
  const Timetable times = run.record->wait_to_begin();
  for (Pipeline& pipeline : pipelines) pipeline.play(times);
  for (Pipeline& pipeline : pipelines)
    if (const Status ended = pipeline.end(); !ended) return ended;
  run.record->done_and_wait();
  return Done{};
}

}  // namespace

Result<std::unique_ptr<Running>> start_leat_gstreamer(const Run& run) {
  return start_with_leatd(run,
                          [&](const std::string& socket, std::uint32_t) { return film_in_pipelines(socket, run); });
}

}  // namespace leat::bench::alternatives
