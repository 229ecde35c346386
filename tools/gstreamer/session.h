// A connection to leatd with one stream, for pictures of one kind. Buffers over its slots hold it, because whatever is
// behind the element may keep such a buffer longer than the element lives. Thread rule: any thread; every call of the
// client library is made under the session's lock.
#pragma once

#include <gst/video/video.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "leat/leat.h"

namespace leat::gstreamer {

// The first is GStreamer's way (the element before waits), the others are leat_overload's.
enum class Overload : gint { wait, fifo, latest };

struct SessionOptions {
  std::string application, socket, name;
  GstVideoInfo video{};
  std::int64_t slo_ns = 0, max_age_ns = 0;
  std::uint32_t priority = LEAT_PRIORITY_NORMAL, depth = 4;
  Overload overload = Overload::wait;
};

class Session {
 public:
  // nullptr: *why says why.
  static std::shared_ptr<Session> open(const SessionOptions& options, std::string* why);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  std::optional<leat_frame> acquire();
  void abandon(leat_frame& frame);
  leat_error submit(leat_frame& frame, const leat_submit_options& options);
  // Readable when answers may be there; next_answer until it says timed_out arms it.
  int answer_fd() const { return answer_fd_; }
  leat_error next_answer(leat_answer* out);  // does not wait
  void release(leat_answer& answer);

  const GstVideoInfo& video() const { return video_; }
  std::int64_t slo_ns() const { return slo_ns_; }
  bool lost() const { return lost_; }  // leatd closed the connection: open another
  // Its number where the application has no names.
  std::string class_name(std::uint32_t head, std::int32_t class_id) const;
  // Whether slots have their planes where GStreamer has them by default, so that any element can write into them. Not
  // so where a plane of I420 or NV12 is no multiple of 64 bytes.
  bool usual_layout() const { return usual_layout_; }

 private:
  Session() = default;
  std::mutex mutex_;
  leat_client* client_ = nullptr;
  leat_stream* stream_ = nullptr;
  GstVideoInfo video_{};
  std::int64_t slo_ns_ = 0;
  int answer_fd_ = -1;
  bool usual_layout_ = false;
  std::atomic<bool> lost_{false};
};

}  // namespace leat::gstreamer
