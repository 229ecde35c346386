#include "tools/gstreamer/slot_pool.h"

#include <utility>

namespace leat::gstreamer {
namespace {

GQuark slot_quark() {
  static const GQuark kQuark = g_quark_from_static_string("leat-slot");
  return kQuark;
}

void give_back(gpointer data) {
  const std::unique_ptr<Slot> slot(static_cast<Slot*>(data));
  if (slot->frame.stream != nullptr) slot->session->abandon(slot->frame);
  if (slot->answer.stream != nullptr) slot->session->release(slot->answer);
}

}  // namespace

Slot* slot_of(GstBuffer* buffer, const Session* session) {
  if (gst_buffer_n_memory(buffer) != 1) return nullptr;
  auto* const slot = static_cast<Slot*>(
      gst_mini_object_get_qdata(GST_MINI_OBJECT_CAST(gst_buffer_peek_memory(buffer, 0)), slot_quark()));
  return slot != nullptr && slot->session.get() == session && slot->frame.stream != nullptr ? slot : nullptr;
}

// ---- the pool ----
namespace {

struct SlotPool {
  GstBufferPool parent;
  std::shared_ptr<Session>* session;
};
struct SlotPoolClass {
  GstBufferPoolClass parent;
};

G_DEFINE_TYPE(SlotPool, slot_pool, GST_TYPE_BUFFER_POOL)

SlotPool* self_of(gpointer object) { return reinterpret_cast<SlotPool*>(object); }

GstBuffer* buffer_over(const std::shared_ptr<Session>& session, const leat_frame& frame) {
  auto* const slot = new Slot{.session = session, .frame = frame, .answer = {}};
  const gsize bytes = GST_VIDEO_INFO_SIZE(&session->video());
  GstMemory* const memory =
      gst_memory_new_wrapped(GstMemoryFlags{}, frame.planes[0], bytes, 0, bytes, nullptr, nullptr);
  gst_mini_object_set_qdata(GST_MINI_OBJECT_CAST(memory), slot_quark(), slot, give_back);
  GstBuffer* const buffer = gst_buffer_new();
  gst_buffer_append_memory(buffer, memory);
  return buffer;
}

GstFlowReturn acquire_buffer(GstBufferPool* pool, GstBuffer** out, GstBufferPoolAcquireParams*) {
  if (GST_BUFFER_POOL_IS_FLUSHING(pool)) return GST_FLOW_FLUSHING;
  const auto& session = *self_of(pool)->session;
  if (const auto frame = session->acquire()) {
    *out = buffer_over(session, *frame);
  } else {
    *out = gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&session->video()), nullptr);
  }
  return *out != nullptr ? GST_FLOW_OK : GST_FLOW_ERROR;
}

// Nothing is kept: a slot's place is with leatd as soon as nobody looks at it any more.
void release_buffer(GstBufferPool*, GstBuffer* buffer) { gst_buffer_unref(buffer); }
gboolean start_or_stop(GstBufferPool*) { return TRUE; }

void finalize(GObject* object) {
  delete self_of(object)->session;
  G_OBJECT_CLASS(slot_pool_parent_class)->finalize(object);
}

void slot_pool_init(SlotPool* pool) { pool->session = nullptr; }

void slot_pool_class_init(SlotPoolClass* klass) {
  G_OBJECT_CLASS(klass)->finalize = finalize;
  auto* const pool = GST_BUFFER_POOL_CLASS(klass);
  pool->acquire_buffer = acquire_buffer;
  pool->release_buffer = release_buffer;
  pool->start = start_or_stop;
  pool->stop = start_or_stop;
}

}  // namespace

GstBufferPool* new_slot_pool(std::shared_ptr<Session> session) {
  auto* const pool = self_of(g_object_new(slot_pool_get_type(), nullptr));
  gst_object_ref_sink(pool);
  pool->session = new std::shared_ptr<Session>(std::move(session));
  return GST_BUFFER_POOL_CAST(pool);
}

}  // namespace leat::gstreamer
