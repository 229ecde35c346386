// The pictures and events between the thread that brings them and the thread that hands them on, in their order: a
// picture goes on when its answer is there. Thread rule: one thread brings, one hands on, any may flush.
#pragma once

#include <gst/gst.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "tools/base/text/fd.h"
#include "tools/gstreamer/session.h"
#include "tools/gstreamer/slot_pool.h"

namespace leat::gstreamer {

// Why a picture has no result.
struct Miss {
  const char* outcome;
  const char* reason;
  std::string text;
  bool for_load = false;  // fewer pictures would have helped it
};

struct Entry {
  GstMiniObject* object = nullptr;   // a buffer or an event, owned
  std::shared_ptr<Session> session;  // that was asked; none: it goes on as it is
  std::uint64_t cookie = 0;
  Slot* slot = nullptr;                       // that the buffer lies in, if it does
  GstClockTime due_ns = GST_CLOCK_TIME_NONE;  // running time
  std::optional<leat_answer> answer = {};     // to be released
  std::optional<Miss> miss = {};
  bool ready() const { return session == nullptr || answer || miss; }
};

class Lane {
 public:
  Lane();
  ~Lane() { clear(); }

  // The thread that brings. What is behind is told by the flow: anything but OK means that no more is wanted.
  GstFlowReturn wait_for_room(std::size_t most);
  GstFlowReturn wait_until_empty();
  void put(Entry entry);
  // Hands the frame to leatd and puts the entry; on an error neither.
  leat_error ask(Entry& entry, leat_frame& frame, const leat_submit_options& options);

  // The thread that hands on: the next that is ready, waited for; none: flushing. Then what became of it.
  std::optional<Entry> take();
  void taken(GstFlowReturn flow);

  void set_flushing(bool flushing);
  void clear();  // forgets what is in it
  std::uint64_t in_flight();

 private:
  void collect(const std::shared_ptr<Session>& session);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Entry> entries_;
  bool flushing_ = true, handing_ = false;
  GstFlowReturn flow_ = GST_FLOW_OK;
  Fd wake_;
};

}  // namespace leat::gstreamer
