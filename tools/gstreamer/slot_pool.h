// Slots of a leatd stream as GStreamer's buffers: what is upstream writes its pictures straight into shared memory.
// Thread rule: any thread.
#pragma once

#include <gst/video/video.h>

#include <memory>

#include "tools/gstreamer/session.h"

namespace leat::gstreamer {

// A slot that a buffer's memory stands over: given back when the memory is freed, whatever it is in then.
struct Slot {
  std::shared_ptr<Session> session;
  leat_frame frame{};    // being written; empty once it was submitted
  leat_answer answer{};  // that came, held as long as the pixels are
};
// The slot of a buffer of this session's pool, if it is one that was not submitted yet.
Slot* slot_of(GstBuffer* buffer, const Session* session);

// Offers the session's slots, whose layout must be the usual one; whoever finds none gets ordinary memory. The
// reference is the caller's.
GstBufferPool* new_slot_pool(std::shared_ptr<Session> session);

}  // namespace leat::gstreamer
