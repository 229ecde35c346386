#include "tools/gstreamer/session.h"

namespace leat::gstreamer {
namespace {

// Beside those that are asked about: written upstream, or still looked at downstream.
constexpr std::uint32_t kSlotsAround = 10;

std::uint32_t format_of(GstVideoFormat format) {
  switch (format) {
    case GST_VIDEO_FORMAT_RGB:
      return LEAT_FORMAT_rgb24;
    case GST_VIDEO_FORMAT_BGR:
      return LEAT_FORMAT_bgr24;
    case GST_VIDEO_FORMAT_NV12:
      return LEAT_FORMAT_nv12;
    case GST_VIDEO_FORMAT_I420:
      return LEAT_FORMAT_i420;
    default:
      return LEAT_FORMAT_gray8;
  }
}

// GStreamer fills in what caps leave out, by its own rule: frames of over 576 lines are BT.709.
std::uint32_t range_of(const GstVideoInfo& video) {
  switch (GST_VIDEO_INFO_COLORIMETRY(&video).range) {
    case GST_VIDEO_COLOR_RANGE_0_255:
      return LEAT_COLOR_RANGE_full;
    case GST_VIDEO_COLOR_RANGE_16_235:
      return LEAT_COLOR_RANGE_limited;
    default:
      return LEAT_COLOR_RANGE_unspecified;
  }
}

std::uint32_t matrix_of(const GstVideoInfo& video) {
  switch (GST_VIDEO_INFO_COLORIMETRY(&video).matrix) {
    case GST_VIDEO_COLOR_MATRIX_BT601:
    case GST_VIDEO_COLOR_MATRIX_FCC:  // within .004 of BT.601
      return LEAT_COLOR_MATRIX_bt601;
    case GST_VIDEO_COLOR_MATRIX_BT709:
      return LEAT_COLOR_MATRIX_bt709;
    case GST_VIDEO_COLOR_MATRIX_BT2020:
      return LEAT_COLOR_MATRIX_bt2020;
    default:
      return LEAT_COLOR_MATRIX_unspecified;
  }
}

leat_stream_options stream_options(const SessionOptions& o) {
  leat_stream_options stream;
  leat_stream_options_init(&stream);
  stream.application = o.application.c_str();
  stream.name = o.name.c_str();
  stream.format = format_of(GST_VIDEO_INFO_FORMAT(&o.video));
  stream.width = static_cast<std::uint32_t>(GST_VIDEO_INFO_WIDTH(&o.video));
  stream.height = static_cast<std::uint32_t>(GST_VIDEO_INFO_HEIGHT(&o.video));
  for (guint p = 0; p < GST_VIDEO_INFO_N_PLANES(&o.video); ++p)
    stream.strides[p] = static_cast<std::uint32_t>(GST_VIDEO_INFO_PLANE_STRIDE(&o.video, p));
  stream.depth = o.depth;
  stream.slots = o.depth + kSlotsAround;
  stream.overload = o.overload == Overload::latest ? LEAT_OVERLOAD_latest : LEAT_OVERLOAD_fifo;
  stream.priority = o.priority;
  stream.slo_ns = o.slo_ns;
  stream.max_age_ns = o.max_age_ns;
  stream.color_range = range_of(o.video);
  stream.color_matrix = matrix_of(o.video);
  return stream;
}

}  // namespace

std::shared_ptr<Session> Session::open(const SessionOptions& options, std::string* why) {
  const std::shared_ptr<Session> session(new Session);
  session->video_ = options.video;
  const leat_connect_options connect{.socket = options.socket.empty() ? nullptr : options.socket.c_str(),
                                     .name = options.name.c_str(),
                                     .timeout_ns = 2'000'000'000,
                                     .wait = LEAT_WAIT_PARK,
                                     .reserved = 0};
  const leat_stream_options stream = stream_options(options);
  if (leat_connect(&connect, &session->client_) != LEAT_ERROR_ok ||
      leat_open_stream(session->client_, &stream, &session->stream_) != LEAT_ERROR_ok) {
    *why = leat_last_error();
    return nullptr;
  }
  session->slo_ns_ = leat_stream_slo_ns(session->stream_);
  session->answer_fd_ = leat_answer_fd(session->client_);
  if (auto frame = session->acquire()) {
    session->usual_layout_ = frame->bytes >= GST_VIDEO_INFO_SIZE(&options.video);
    for (std::uint32_t p = 0; p < frame->plane_count; ++p)
      if (static_cast<gsize>(frame->planes[p] - frame->planes[0]) != GST_VIDEO_INFO_PLANE_OFFSET(&options.video, p))
        session->usual_layout_ = false;
    session->abandon(*frame);
  }
  return session;
}

Session::~Session() { leat_disconnect(client_); }

std::optional<leat_frame> Session::acquire() {
  const std::lock_guard lock(mutex_);
  leat_frame frame;
  if (leat_acquire(stream_, &frame) != LEAT_ERROR_ok) return std::nullopt;
  return frame;
}
void Session::abandon(leat_frame& frame) {
  const std::lock_guard lock(mutex_);
  leat_abandon(&frame);
}
leat_error Session::submit(leat_frame& frame, const leat_submit_options& options) {
  const std::lock_guard lock(mutex_);
  const leat_error error = leat_submit(&frame, &options, nullptr);
  if (error != LEAT_ERROR_ok) lost_ = true;
  return error;
}
leat_error Session::next_answer(leat_answer* out) {
  const std::lock_guard lock(mutex_);
  const leat_error error = leat_next_answer(client_, 0, out);
  if (error != LEAT_ERROR_ok && error != LEAT_ERROR_timed_out) lost_ = true;
  return error;
}
void Session::release(leat_answer& answer) {
  const std::lock_guard lock(mutex_);
  leat_release(&answer);
}

std::string Session::class_name(std::uint32_t head, std::int32_t class_id) const {
  const char* const name = leat_class_name(stream_, head, class_id);
  return name != nullptr ? name : std::to_string(class_id);
}

}  // namespace leat::gstreamer
