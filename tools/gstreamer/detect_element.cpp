// leatdetect: asks leatd what is in each picture and writes the answer onto its buffer as regions of interest. Pictures
// are asked about as they come, several at once, and go on in their order from a thread of the element's own.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "leat/outcome.h"
#include "tools/gstreamer/elements.h"
#include "tools/gstreamer/lane.h"
#include "tools/gstreamer/regions.h"
#include "tools/gstreamer/settings.h"

namespace leat::gstreamer {
namespace {

// Where the element before need not wait, so many may stand behind one that is not done: as many as slots allow.
constexpr std::size_t kMostBehind = 8;
constexpr gint64 kAgainUs = 250'000;  // a leatd that was away is looked for so often

struct Work {
  Settings settings;  // under the object lock
  Lane lane;
  // The thread that brings.
  Settings now;  // as they were when the stream began
  std::shared_ptr<Session> session;
  gint64 again_us = 0;
  std::string said;
  bool had_session = false, look_whether_live = true, live = false;
  std::uint64_t pictures = 0, cookie = 0;
  GstSegment segment{};
  // The thread that hands on.
  std::vector<Region> last;
  // Counted by both, read by any.
  std::atomic<guint64> submitted{0}, completed{0}, late{0}, missed{0}, bytes_copied{0};
  std::atomic<std::int64_t> slo_ns{0};  // as granted
};

struct LeatDetect {
  GstElement parent;
  GstPad *sink, *src;
  Work* work;
};
struct LeatDetectClass {
  GstElementClass parent;
};

G_DEFINE_TYPE(LeatDetect, leat_detect, GST_TYPE_ELEMENT)

LeatDetect* self_of(gpointer object) { return reinterpret_cast<LeatDetect*>(object); }

#define LEAT_CAPS GST_VIDEO_CAPS_MAKE("{ RGB, BGR, NV12, I420, GRAY8 }")
GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE("sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS(LEAT_CAPS));
GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS(LEAT_CAPS));

// ---- leatd ----

// Pictures go on without regions while leatd is away; each line is told once, until another one is.
Session* session_of(LeatDetect* self) {
  Work& w = *self->work;
  if (w.session != nullptr && w.session->lost()) w.session.reset();
  if (w.session != nullptr || g_get_monotonic_time() < w.again_us) return w.session.get();
  std::string why;
  w.session = Session::open(w.now.stream, &why);
  w.again_us = g_get_monotonic_time() + kAgainUs;
  if (w.session == nullptr) {
    if (why != w.said) GST_ELEMENT_WARNING(self, RESOURCE, OPEN_READ, ("%s", why.c_str()), (nullptr));
    w.said = why;
    return nullptr;
  }
  w.said.clear();
  // Those before write into slots of the one that is gone, or into no slots; and the objective may be another.
  if (w.had_session || w.pictures > 0) gst_pad_push_event(self->sink, gst_event_new_reconfigure());
  w.had_session = true;
  if (w.slo_ns.exchange(w.session->slo_ns()) != w.session->slo_ns())
    gst_element_post_message(GST_ELEMENT_CAST(self), gst_message_new_latency(GST_OBJECT_CAST(self)));
  return w.session.get();
}

bool set_caps(LeatDetect* self, GstCaps* caps) {
  Work& w = *self->work;
  GST_OBJECT_LOCK(self);
  w.now = w.settings;
  w.now.stream.name = GST_OBJECT_NAME(self);
  GST_OBJECT_UNLOCK(self);
  if (!gst_video_info_from_caps(&w.now.stream.video, caps)) return false;
  if (w.now.stream.application.empty()) {
    GST_ELEMENT_ERROR(self, RESOURCE, SETTINGS, ("application= names none of leatd's applications"), (nullptr));
    return false;
  }
  w.session.reset();
  w.again_us = 0;
  w.had_session = false;
  return true;
}

// Planes elsewhere than by default must be understood by those behind, too.
bool behind_understands(LeatDetect* self, GstQuery* query) {
  GstCaps* caps = nullptr;
  gst_query_parse_allocation(query, &caps, nullptr);
  GstQuery* const theirs = gst_query_new_allocation(caps, FALSE);
  const bool does =
      gst_pad_peer_query(self->src, theirs) && gst_query_find_allocation_meta(theirs, GST_VIDEO_META_API_TYPE, nullptr);
  gst_query_unref(theirs);
  return does;
}

// Whoever asks writes into slots; where leatd is away, into memory of its own.
gboolean propose_allocation(LeatDetect* self, GstQuery* query) {
  Work& w = *self->work;
  GstCaps* caps = nullptr;
  gst_query_parse_allocation(query, &caps, nullptr);
  GstVideoInfo info;
  if (caps == nullptr || !gst_video_info_from_caps(&info, caps)) return FALSE;
  if (behind_understands(self, query)) gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr);
  const Session* const session = session_of(self);
  if (session == nullptr || !session->usual_layout() || !gst_video_info_is_equal(&info, &session->video())) return TRUE;
  const auto bytes = static_cast<guint>(GST_VIDEO_INFO_SIZE(&info));
  GstBufferPool* const pool = new_slot_pool(w.session);
  GstStructure* const config = gst_buffer_pool_get_config(pool);
  gst_buffer_pool_config_set_params(config, caps, bytes, 0, 0);
  if (gst_buffer_pool_set_config(pool, config)) gst_query_add_allocation_pool(query, pool, bytes, 0, 0);
  gst_object_unref(pool);
  return TRUE;
}

// ---- a picture comes ----

bool copy_into(Work& w, GstBuffer* buffer, const leat_frame& frame) {
  GstVideoFrame video;
  if (!gst_video_frame_map(&video, &w.now.stream.video, buffer, GST_MAP_READ)) return false;
  for (std::uint32_t p = 0; p < frame.plane_count; ++p) {
    const auto* const from = static_cast<const std::uint8_t*>(GST_VIDEO_FRAME_PLANE_DATA(&video, p));
    for (std::uint32_t y = 0; y < frame.rows[p]; ++y)
      std::memcpy(frame.planes[p] + std::size_t{y} * frame.strides[p],
                  from + std::ptrdiff_t{y} * GST_VIDEO_FRAME_PLANE_STRIDE(&video, p), frame.row_bytes[p]);
    w.bytes_copied += std::uint64_t{frame.rows[p]} * frame.row_bytes[p];
  }
  gst_video_frame_unmap(&video);
  return true;
}

bool comes_live(LeatDetect* self) {
  Work& w = *self->work;
  if (!w.look_whether_live) return w.live;
  GstQuery* const query = gst_query_new_latency();
  gboolean live = FALSE;
  if (gst_pad_peer_query(self->sink, query)) gst_query_parse_latency(query, &live, nullptr, nullptr);
  gst_query_unref(query);
  w.look_whether_live = false;
  return w.live = live != FALSE;
}

// A live picture's time by the pipeline's clock is when it was taken. Others come as fast as they are wanted.
std::int64_t capture_ns(LeatDetect* self, GstClockTime due) {
  const std::int64_t now = leat_now_ns();
  GstClock* const clock = comes_live(self) ? gst_element_get_clock(GST_ELEMENT_CAST(self)) : nullptr;
  if (clock == nullptr) return now;
  const GstClockTime at = gst_clock_get_time(clock), base = gst_element_get_base_time(GST_ELEMENT_CAST(self));
  gst_object_unref(clock);
  if (!GST_CLOCK_TIME_IS_VALID(due) || at < base || due > at - base) return now;
  return now - static_cast<std::int64_t>(at - base - due);
}

// The frame to submit: the buffer's own slot, or another that it was copied into. Without one, entry.miss says why.
leat_frame* frame_for(Work& w, Entry& entry, std::optional<leat_frame>& copy) {
  auto* const buffer = reinterpret_cast<GstBuffer*>(entry.object);
  if (entry.slot = slot_of(buffer, entry.session.get()); entry.slot != nullptr) return &entry.slot->frame;
  if (copy = entry.session->acquire(); !copy) {
    entry.miss = Miss{"rejected", "no_slot", "every slot is held by buffers that are still in use", true};
    return nullptr;
  }
  if (copy_into(w, buffer, *copy)) return &*copy;
  entry.session->abandon(*copy);
  entry.miss = Miss{"rejected", "bad_frame", "its memory cannot be read"};
  return nullptr;
}

GstFlowReturn chain(GstPad*, GstObject* parent, GstBuffer* buffer) {
  auto* const self = self_of(parent);
  Work& w = *self->work;
  const std::size_t depth = w.now.stream.depth;
  const GstFlowReturn flow =
      w.lane.wait_for_room(w.now.stream.overload == Overload::wait ? depth : depth + kMostBehind);
  Entry entry{.object = GST_MINI_OBJECT_CAST(buffer), .session = {}};
  if (flow != GST_FLOW_OK) {
    gst_buffer_unref(buffer);
    return flow;
  }
  entry.due_ns = gst_segment_to_running_time(&w.segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
  if (w.pictures++ % w.now.interval == 0) {
    if (session_of(self) == nullptr) {
      entry.miss = Miss{"failed", "no_daemon", w.said};
    } else {
      entry.session = w.session;
      entry.cookie = ++w.cookie;
      std::optional<leat_frame> copy;
      leat_frame* const frame = frame_for(w, entry, copy);
      leat_submit_options options{};
      options.capture_ns = capture_ns(self, entry.due_ns);
      options.cookie = entry.cookie;
      if (GST_BUFFER_FLAG_IS_SET(buffer, GST_BUFFER_FLAG_CORRUPTED)) options.flags = LEAT_SUBMIT_DAMAGED;
      if (frame != nullptr && w.lane.ask(entry, *frame, options) == LEAT_ERROR_ok) {
        ++w.submitted;
        return GST_FLOW_OK;
      }
      if (copy && copy->stream != nullptr && frame != nullptr) w.session->abandon(*copy);
      if (!entry.miss) entry.miss = Miss{"failed", "no_daemon", leat_error_text(LEAT_ERROR_disconnected)};
    }
  }
  w.lane.put(std::move(entry));
  return GST_FLOW_OK;
}

// ---- a picture goes on ----

void tell(LeatDetect* self, const Entry& entry, const char* outcome, const char* reason, const char* text,
          const std::vector<Region>* regions) {
  auto* const buffer = reinterpret_cast<GstBuffer*>(entry.object);
  GstStructure* const about =
      gst_structure_new("leat", "outcome", G_TYPE_STRING, outcome, "reason", G_TYPE_STRING, reason, "text",
                        G_TYPE_STRING, text, "pts", G_TYPE_UINT64, static_cast<guint64>(GST_BUFFER_PTS(buffer)),
                        "running-time", G_TYPE_UINT64, static_cast<guint64>(entry.due_ns), "damaged", G_TYPE_BOOLEAN,
                        GST_BUFFER_FLAG_IS_SET(buffer, GST_BUFFER_FLAG_CORRUPTED) ? TRUE : FALSE, nullptr);
  if (regions != nullptr) set_regions(about, *regions);
  gst_element_post_message(GST_ELEMENT_CAST(self), gst_message_new_element(GST_OBJECT_CAST(self), about));
}

// Told on the bus, and upstream where fewer pictures would help: a decoder that listens leaves the next one out.
bool missed(LeatDetect* self, const Entry& entry, const Miss& miss) {
  Work& w = *self->work;
  ++w.missed;
  tell(self, entry, miss.outcome, miss.reason, miss.text.c_str(), nullptr);
  if (miss.for_load && GST_CLOCK_TIME_IS_VALID(entry.due_ns))
    gst_pad_push_event(self->sink, gst_event_new_qos(GST_QOS_TYPE_OVERFLOW, 2.0, 1, entry.due_ns));
  return w.now.on_miss != OnMiss::drop;
}

// Takes the answer. Whether the picture goes on.
bool answered(LeatDetect* self, Entry& entry) {
  Work& w = *self->work;
  const leat_answer answer = *entry.answer;
  const bool has_result = answer.result != nullptr;
  const char* const outcome = leat_outcome_name(answer.outcome);
  const char* const reason = leat_reason_name(answer.reason);
  if (has_result) {
    ++(answer.outcome == LEAT_OUTCOME_late ? w.late : w.completed);
    w.last = regions_of(*entry.session, answer, w.now.threshold);
  }
  if (entry.slot != nullptr)
    entry.slot->answer = answer;  // its pixels go on with the buffer
  else
    entry.session->release(*entry.answer);
  if (has_result) {
    if (w.now.answers) tell(self, entry, outcome, reason, "", &w.last);
    return true;
  }
  return missed(self, entry,
                {outcome, reason, leat_reason_text(answer.reason),
                 answer.outcome == LEAT_OUTCOME_dropped || answer.reason == LEAT_REASON_queue_full});
}

GstFlowReturn hand_on_picture(LeatDetect* self, Entry& entry) {
  Work& w = *self->work;
  bool goes_on = true, has_answer = false;
  if (entry.answer) {
    has_answer = entry.answer->result != nullptr;
    goes_on = answered(self, entry);
  } else if (entry.miss) {
    goes_on = missed(self, entry, *entry.miss);
  }
  auto* buffer = reinterpret_cast<GstBuffer*>(entry.object);
  if (!goes_on) {
    gst_buffer_unref(buffer);
    return GST_FLOW_OK;
  }
  if (has_answer || w.now.on_miss == OnMiss::repeat) {
    buffer = gst_buffer_make_writable(buffer);
    add_regions(w.last, w.now.stream.video, buffer);
  }
  return gst_pad_push(self->src, buffer);
}

void hand_on(gpointer object) {
  auto* const self = self_of(object);
  Lane& lane = self->work->lane;
  std::optional<Entry> entry = lane.take();
  if (!entry) {
    gst_pad_pause_task(self->src);
    return;
  }
  GstFlowReturn flow = GST_FLOW_OK;
  if (GST_IS_EVENT(entry->object))
    gst_pad_push_event(self->src, reinterpret_cast<GstEvent*>(entry->object));
  else
    flow = hand_on_picture(self, *entry);
  lane.taken(flow);
}

// ---- pads and life ----

gboolean sink_event(GstPad* pad, GstObject* parent, GstEvent* event) {
  auto* const self = self_of(parent);
  Work& w = *self->work;
  switch (GST_EVENT_TYPE(event)) {
    case GST_EVENT_FLUSH_START: {
      const gboolean sent = gst_pad_push_event(self->src, event);
      w.lane.set_flushing(true);
      gst_pad_pause_task(self->src);
      return sent;
    }
    case GST_EVENT_FLUSH_STOP: {
      const gboolean sent = gst_pad_push_event(self->src, event);
      w.lane.clear();
      w.lane.set_flushing(false);
      gst_pad_start_task(self->src, hand_on, self, nullptr);
      return sent;
    }
    case GST_EVENT_CAPS: {
      GstCaps* caps = nullptr;
      gst_event_parse_caps(event, &caps);
      // What is still in the lane is read by the settings that it came under.
      if (w.lane.wait_until_empty() == GST_FLOW_FLUSHING || !set_caps(self, caps)) {
        gst_event_unref(event);
        return FALSE;
      }
      break;
    }
    case GST_EVENT_SEGMENT:
      gst_event_copy_segment(event, &w.segment);
      w.look_whether_live = true;
      break;
    default:
      break;
  }
  if (!GST_EVENT_IS_SERIALIZED(event)) return gst_pad_event_default(pad, parent, event);
  w.lane.put({.object = GST_MINI_OBJECT_CAST(event), .session = {}});
  return TRUE;
}

gboolean sink_query(GstPad* pad, GstObject* parent, GstQuery* query) {
  auto* const self = self_of(parent);
  if (GST_QUERY_IS_SERIALIZED(query) && self->work->lane.wait_until_empty() == GST_FLOW_FLUSHING) return FALSE;
  if (GST_QUERY_TYPE(query) == GST_QUERY_ALLOCATION) return propose_allocation(self, query);
  return gst_pad_query_default(pad, parent, query);
}

// A live pipeline must wait for the objective longer than without this element.
gboolean src_query(GstPad* pad, GstObject* parent, GstQuery* query) {
  auto* const self = self_of(parent);
  if (GST_QUERY_TYPE(query) != GST_QUERY_LATENCY) return gst_pad_query_default(pad, parent, query);
  if (!gst_pad_peer_query(self->sink, query)) return FALSE;
  gboolean live = FALSE;
  GstClockTime min = 0, max = 0;
  gst_query_parse_latency(query, &live, &min, &max);
  GST_OBJECT_LOCK(self);
  const std::int64_t asked_for = self->work->settings.stream.slo_ns;
  GST_OBJECT_UNLOCK(self);
  const std::int64_t granted = self->work->slo_ns;
  const auto slo = static_cast<GstClockTime>(granted > 0 ? granted : asked_for);
  gst_query_set_latency(query, live, min + slo, GST_CLOCK_TIME_IS_VALID(max) ? max + slo : max);
  return TRUE;
}

gboolean activate_src(GstPad* pad, GstObject* parent, GstPadMode mode, gboolean active) {
  if (mode != GST_PAD_MODE_PUSH) return FALSE;
  auto* const self = self_of(parent);
  self->work->lane.set_flushing(active == FALSE);
  if (active != FALSE) return gst_pad_start_task(pad, hand_on, self, nullptr);
  return gst_pad_stop_task(pad);
}

GstStateChangeReturn change_state(GstElement* element, GstStateChange change) {
  Work& w = *self_of(element)->work;
  const GstStateChangeReturn done = GST_ELEMENT_CLASS(leat_detect_parent_class)->change_state(element, change);
  if (change != GST_STATE_CHANGE_PAUSED_TO_READY) return done;
  w.lane.clear();
  w.session.reset();
  w.last.clear();
  w.pictures = 0;
  w.slo_ns = 0;
  return done;
}

void set_property(GObject* object, guint id, const GValue* value, GParamSpec* spec) {
  GST_OBJECT_LOCK(object);
  const gboolean known = set_setting(self_of(object)->work->settings, id, value);
  GST_OBJECT_UNLOCK(object);
  if (!known) G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
}

void get_property(GObject* object, guint id, GValue* value, GParamSpec* spec) {
  Work& w = *self_of(object)->work;
  if (id == kStats) {
    g_value_take_boxed(
        value, gst_structure_new("leat-stats", "submitted", G_TYPE_UINT64, w.submitted.load(), "completed",
                                 G_TYPE_UINT64, w.completed.load(), "late", G_TYPE_UINT64, w.late.load(), "missed",
                                 G_TYPE_UINT64, w.missed.load(), "in-flight", G_TYPE_UINT64, w.lane.in_flight(),
                                 "bytes-copied", G_TYPE_UINT64, w.bytes_copied.load(), nullptr));
    return;
  }
  GST_OBJECT_LOCK(object);
  const gboolean known = get_setting(w.settings, id, value);
  GST_OBJECT_UNLOCK(object);
  if (!known) G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
}

void finalize(GObject* object) {
  delete self_of(object)->work;
  G_OBJECT_CLASS(leat_detect_parent_class)->finalize(object);
}

void leat_detect_init(LeatDetect* self) {
  self->work = new Work;
  self->sink = gst_pad_new_from_static_template(&sink_template, "sink");
  gst_pad_set_chain_function(self->sink, chain);
  gst_pad_set_event_function(self->sink, sink_event);
  gst_pad_set_query_function(self->sink, sink_query);
  self->src = gst_pad_new_from_static_template(&src_template, "src");
  gst_pad_set_query_function(self->src, src_query);
  gst_pad_set_activatemode_function(self->src, activate_src);
  for (GstPad* pad : {self->sink, self->src}) {
    GST_PAD_SET_PROXY_CAPS(pad);
    gst_element_add_pad(GST_ELEMENT_CAST(self), pad);
  }
}

void leat_detect_class_init(LeatDetectClass* klass) {
  auto* const object = G_OBJECT_CLASS(klass);
  object->set_property = set_property;
  object->get_property = get_property;
  object->finalize = finalize;
  install_properties(object, true);
  auto* const element = GST_ELEMENT_CLASS(klass);
  element->change_state = change_state;
  gst_element_class_add_static_pad_template(element, &sink_template);
  gst_element_class_add_static_pad_template(element, &src_template);
  gst_element_class_set_static_metadata(element, "Leat detections", "Filter/Analyzer/Video",
                                        "Adds what an application of leatd finds as regions of interest",
                                        "Leat maintainers");
}

}  // namespace

GType detect_element_type() { return leat_detect_get_type(); }

}  // namespace leat::gstreamer
