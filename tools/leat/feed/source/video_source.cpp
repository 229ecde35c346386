// Video through libavformat and libavcodec: files, V4L2 devices, network streams. The decoder keeps its own reference
// pictures; each decoded picture is copied or converted once, into the slot.
#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavdevice/version.h>
#include <libavformat/avformat.h>
#include <libavutil/display.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
}

#include "tools/leat/feed/source/av_text.h"
#include "tools/leat/feed/source/hardware_decoder.h"
#include "tools/leat/feed/source/picture_count.h"
#include "tools/leat/feed/source/picture_source.h"
#include "tools/leat/feed/source/upright.h"

namespace leat::tools {
namespace {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;
constexpr std::int64_t kMaxGapNs = 10 * kNsPerSecond;  // between packets: beyond it times have stepped

// Formats that a slot can hold as the decoder made them; LEAT_FORMAT_unknown: convert to i420.
leat_format same_format(AVPixelFormat format) {
  switch (format) {
    case AV_PIX_FMT_YUV420P:
    case AV_PIX_FMT_YUVJ420P:
      return LEAT_FORMAT_i420;
    case AV_PIX_FMT_NV12:
      return LEAT_FORMAT_nv12;
    case AV_PIX_FMT_RGB24:
      return LEAT_FORMAT_rgb24;
    case AV_PIX_FMT_BGR24:
      return LEAT_FORMAT_bgr24;
    case AV_PIX_FMT_GRAY8:
      return LEAT_FORMAT_gray8;
    default:
      return LEAT_FORMAT_unknown;
  }
}

// Cameras of this host are read by libavdevice, with which come some hundred megabytes (drivers for screens, speech),
// so it is opened by name where there is such a camera.
constexpr const char* kDevices = "libavdevice.so." AV_STRINGIFY(LIBAVDEVICE_VERSION_MAJOR);
bool reads_devices() {
  static const bool reads = [] {
    void* const library = ::dlopen(kDevices, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return false;
    const auto register_all = reinterpret_cast<void (*)()>(::dlsym(library, "avdevice_register_all"));
    if (register_all != nullptr) register_all();
    return register_all != nullptr;
  }();
  return reads;
}

// What can be done about a file that is no picture and no video that this libavcodec reads.
std::string what_is_read() {
  static constexpr std::pair<AVCodecID, const char*> kPictures[] = {
      {AV_CODEC_ID_MJPEG, "JPEG"}, {AV_CODEC_ID_PNG, "PNG"},  {AV_CODEC_ID_WEBP, "WebP without animation"},
      {AV_CODEC_ID_BMP, "BMP"},    {AV_CODEC_ID_GIF, "GIF"},  {AV_CODEC_ID_TIFF, "TIFF"},
      {AV_CODEC_ID_PPM, "PPM"},    {AV_CODEC_ID_AV1, "AVIF"},
  };
  std::string list;
  for (const auto& [codec, name] : kPictures)
    if (::avcodec_find_decoder(codec) != nullptr) list += std::string(list.empty() ? "" : ", ") + name;
  return "; pictures may be " + list +
         ", and videos what libavformat here knows: convert others (ffmpeg -i FILE x.png)";
}

// How a file or a stream says that its pictures are to be turned.
Turn turn_of_stream(const AVStream& stream) {
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(60, 31, 102)
  const AVPacketSideData* data = ::av_packet_side_data_get(
      stream.codecpar->coded_side_data, stream.codecpar->nb_coded_side_data, AV_PKT_DATA_DISPLAYMATRIX);
  const std::uint8_t* matrix = data != nullptr && data->size >= 9 * sizeof(std::int32_t) ? data->data : nullptr;
#else
  std::size_t bytes = 0;
  const std::uint8_t* matrix = ::av_stream_get_side_data(&stream, AV_PKT_DATA_DISPLAYMATRIX, &bytes);
  if (bytes < 9 * sizeof(std::int32_t)) matrix = nullptr;
#endif
  return matrix != nullptr ? turn_of(reinterpret_cast<const std::int32_t*>(matrix)) : Turn{};
}
// How a still picture says it: its decoder finds EXIF's orientation.
Turn turn_of_picture(const AVFrame& picture) {
  const AVFrameSideData* data = ::av_frame_get_side_data(&picture, AV_FRAME_DATA_DISPLAYMATRIX);
  if (data == nullptr || data->size < 9 * sizeof(std::int32_t)) return {};
  return turn_of(reinterpret_cast<const std::int32_t*>(data->data));
}

class Video : public PictureSource {
 public:
  explicit Video(SourceOptions options) : options_(std::move(options)) {}
  ~Video() override {
    closing_ = true;
    ::sws_freeContext(scaler_);
    ::av_frame_free(&lying_);
    ::av_frame_free(&picture_);
    ::av_packet_free(&packet_);
    ::avcodec_free_context(&decoder_);
    ::avformat_close_input(&input_);
  }
  const PictureFormat& format() const override { return format_; }

  Status open(const std::string& name) {
    name_ = shown_name(name);
    static std::once_flag once;
    std::call_once(once, [] {
      ::avformat_network_init();
      ::av_log_set_level(AV_LOG_FATAL);
    });
    struct stat info {};
    const bool device = ::stat(name.c_str(), &info) == 0 && S_ISCHR(info.st_mode);
    if (device && !reads_devices())
      return Error{"'" + name_ + "' is a device, which " + kDevices +
                   " would read, and that is not here; Debian has it as libavdevice" +
                   AV_STRINGIFY(LIBAVDEVICE_VERSION_MAJOR)};
    const AVInputFormat* demuxer = device ? ::av_find_input_format("v4l2") : nullptr;
    AVDictionary* settings = nullptr;
    ::av_dict_set(&settings, "rtsp_transport", options_.transport.c_str(), 0);
    if (may_come_back(name))
      ::av_dict_set(&settings, "analyzeduration", "2000000", 0);  // microseconds: it is waited for
    input_ = ::avformat_alloc_context();
    input_->interrupt_callback = {[](void* self) { return static_cast<Video*>(self)->given_up() ? 1 : 0; }, this};
    if (device) input_->flags |= AVFMT_FLAG_NONBLOCK;  // read_packet() waits
    const int opened = ::avformat_open_input(&input_, name.c_str(), demuxer, &settings);
    ::av_dict_free(&settings);
    const bool unknown = opened == AVERROR_INVALIDDATA || opened == AVERROR(EINVAL);
    if (unknown && may_come_back(name))
      return Error{"'" + name_ + "' cannot be opened: what answers there sends no video that can be read (" +
                   av_text(opened) + "); check its address"};
    if (opened < 0)
      return Error{"'" + name_ + "' " +
                   (unknown ? "is no picture or video that can be read" + what_is_read()
                            : "cannot be opened: " + av_text(opened))};
    if (const int error = ::avformat_find_stream_info(input_, nullptr); error < 0)
      return Error{"'" + name_ + "' cannot be read: " + av_text(error) + what_is_read()};
    const AVCodec* codec = nullptr;
    stream_ = ::av_find_best_stream(input_, AVMEDIA_TYPE_VIDEO, -1, -1, &codec, 0);
    if (stream_ < 0 || codec == nullptr)
      return Error{"'" + name_ + "' has no picture that can be decoded" + what_is_read()};
    decoder_ = ::avcodec_alloc_context3(codec);
    ::avcodec_parameters_to_context(decoder_, input_->streams[stream_]->codecpar);
    decoder_->thread_count = 1;  // streams are decoded beside each other; one thread each keeps pictures in time
    if (options_.decoder != "cpu") decode_on_device(codec);
    if (const int error = ::avcodec_open2(decoder_, codec, nullptr); error < 0)
      return Error{"'" + name_ + "': the decoder does not start: " + av_text(error)};
    picture_ = ::av_frame_alloc();
    packet_ = ::av_packet_alloc();
    const bool opens_itself = (input_->iformat->flags & AVFMT_NOFILE) != 0 && !still();  // a camera, or a picture
    const bool seekable = input_->pb != nullptr && (input_->pb->seekable & AVIO_SEEKABLE_NORMAL) != 0;
    const bool endless = may_come_back(name) && !seekable && input_->duration == AV_NOPTS_VALUE;
    describe(device || opens_itself || endless || name.find("rtsp://") == 0 || name.find("udp://") == 0 ||
             name.find("srt://") == 0);
    if (format_.width == 0 || format_.height == 0)
      return Error{"'" + name_ + "' has no picture that can be decoded" + what_is_read()};
    return options_.as_stored ? Done{} : turn_upright();
  }

  Result<std::optional<std::int64_t>> next() override {
    if (held_) return *std::exchange(held_, std::nullopt);
    return decode_next();
  }
  Result<std::optional<std::int64_t>> decode_next() {
    for (;;) {
      if (given_up()) return Error{gave_up()};
      const int got = ::avcodec_receive_frame(decoder_, picture_);
      if (got == 0) {
        if (const Status fetched = to_memory(picture_); !fetched.ok())
          return Error{"'" + name_ + "': " + fetched.error()};
        return std::optional<std::int64_t>(made_ready());
      }
      if (got == AVERROR_EOF && !any_)
        return Error{"'" + name_ + "' ended before a picture of it could be decoded; it is damaged or cut short"};
      if (got == AVERROR_EOF) return std::optional<std::int64_t>{};
      if (got != AVERROR(EAGAIN)) return Error{"'" + name_ + "' cannot be decoded: " + av_text(got)};
      count_.wants_more(decoder_->has_b_frames);
      if (!packet_kept_) {
        auto read = read_packet();
        if (!read.ok()) return Error{read.error()};
        if (!*read) {
          (void)::avcodec_send_packet(decoder_, nullptr);  // the end: drain what the decoder still holds
          continue;
        }
      }
      packet_kept_ = false;
      taken_ns_ = decoding_time();
      (void)::avcodec_send_packet(decoder_, packet_);  // a damaged packet costs its pictures, not the stream
      count_.sent();
      ::av_packet_unref(packet_);
    }
  }
  [[nodiscard]] std::uint64_t index() const override { return index_; }
  [[nodiscard]] FrameArrival arrival() const override { return format_.live ? arrival_ : FrameArrival{}; }
  void await() override {
    if (packet_kept_) return;
    const auto read = read_packet();
    packet_kept_ = read.ok() && *read;
  }

  void thin_out(bool on) override {
    decoder_->skip_frame = on ? AVDISCARD_NONREF : AVDISCARD_DEFAULT;
    count_.thins(on);
  }

  // What the decoder holds back is left out with the rest; it starts afresh at the key frame.
  Result<Passed> jump(std::int64_t time_ns) override {
    Passed passed;
    if (first_time_ == AV_NOPTS_VALUE) return passed;
    ::avcodec_flush_buffers(decoder_);
    passed = {count_.emptied(), last_ns_};
    arrival_.waited_ns = 0;
    for (;;) {
      if (!packet_kept_) {
        auto read = read_packet();
        if (!read.ok()) return Error{read.error()};
        if (!*read) return passed;
      }
      packet_kept_ = true;
      const std::int64_t time = time_of(packet_->pts != AV_NOPTS_VALUE ? packet_->pts : packet_->dts);
      const std::int64_t decoded_ns = decoding_time();
      const bool stepped = taken_ns_ != kNoTime && decoded_ns != kNoTime &&
                           (decoded_ns < taken_ns_ - kNsPerSecond || decoded_ns > taken_ns_ + kMaxGapNs);
      if (stepped || arrival().waited()) time_ns = INT64_MIN;
      if ((packet_->flags & AV_PKT_FLAG_KEY) != 0 && (time == kNoTime || time >= time_ns)) return passed;
      ++passed.pictures;
      count_.passed_over();
      passed.last_ns = stepped ? time : std::max(passed.last_ns, time);
      taken_ns_ = decoded_ns;
      packet_kept_ = false;
      ::av_packet_unref(packet_);
    }
  }

  // As the file's own index says it, where it has one of every picture.
  [[nodiscard]] bool jump_ends(std::int64_t time_ns) const override {
    AVStream* const stream = input_->streams[stream_];
    if (first_time_ == AV_NOPTS_VALUE || stream->nb_frames <= 0 ||
        ::avformat_index_get_entries_count(stream) < stream->nb_frames)
      return false;
    const AVRational ns{1, static_cast<int>(kNsPerSecond)};
    return ::av_index_search_timestamp(stream, ::av_rescale_q(first_time_ + time_ns, ns, stream->time_base), 0) < 0;
  }

  Result<bool> write(const leat_frame& slot) override {
    const bool swapped = turn_.swaps_sides();
    if (static_cast<std::uint32_t>(picture_->width) < (swapped ? format_.height : format_.width) ||
        static_cast<std::uint32_t>(picture_->height) < (swapped ? format_.width : format_.height)) {
      return Error{"'" + name_ + "' changed its size to " + std::to_string(picture_->width) + "x" +
                   std::to_string(picture_->height) + "; start anew"};
    }
    if (!turn_.nothing()) return write_upright(slot);
    if (same_format(static_cast<AVPixelFormat>(picture_->format)) == format_.format) {
      for (std::uint32_t p = 0; p < slot.plane_count; ++p) {
        const std::uint8_t* from = picture_->data[p];
        for (std::uint32_t row = 0; row < slot.rows[p]; ++row)
          std::memcpy(slot.planes[p] + std::uint64_t{row} * slot.strides[p],
                      from + std::int64_t{row} * picture_->linesize[p], slot.row_bytes[p]);
      }
      return true;
    }
    const bool nv12 = format_.format == LEAT_FORMAT_nv12;
    if (!nv12 && format_.format != LEAT_FORMAT_i420)
      return Error{"'" + name_ + "' changed its pixel format; start anew"};
    scaler_ =
        ::sws_getCachedContext(scaler_, picture_->width, picture_->height, static_cast<AVPixelFormat>(picture_->format),
                               static_cast<int>(format_.width), static_cast<int>(format_.height),
                               nv12 ? AV_PIX_FMT_NV12 : AV_PIX_FMT_YUV420P, SWS_BILINEAR, nullptr, nullptr, nullptr);
    if (scaler_ == nullptr) return Error{"'" + name_ + "': pictures of this pixel format cannot be converted"};
    std::uint8_t* planes[4] = {slot.planes[0], slot.planes[1], nv12 ? nullptr : slot.planes[2], nullptr};
    const int strides[4] = {static_cast<int>(slot.strides[0]), static_cast<int>(slot.strides[1]),
                            nv12 ? 0 : static_cast<int>(slot.strides[2]), 0};
    ::sws_scale(scaler_, picture_->data, picture_->linesize, 0, picture_->height, planes, strides);
    return true;
  }

  Status rewind() override {
    held_.reset();
    if (format_.live) return Error{"'" + name_ + "' is live and cannot be played again; leave --loop out"};
    ::avcodec_flush_buffers(decoder_);
    if (const int error = ::avformat_seek_file(input_, stream_, INT64_MIN, 0, 0, 0); error < 0)
      return Error{"'" + name_ + "' cannot be rewound: " + av_text(error)};
    if (packet_kept_) ::av_packet_unref(packet_);
    packet_kept_ = false;
    first_time_ = AV_NOPTS_VALUE;
    any_ = false;
    count_ = {};
    taken_ns_ = last_ns_ = kNoTime;
    return Done{};
  }

 private:
  [[nodiscard]] bool given_up() const { return closing_ || (options_.give_up && options_.give_up()); }
  [[nodiscard]] std::string gave_up() const { return "'" + name_ + "' was given up"; }
  void decode_on_device(const AVCodec* codec) {
    const auto used = use_hardware(decoder_, codec, options_.decoder);
    on_device_ = used.ok();
    if (!used.ok() && options_.decoder != "auto" && options_.say)
      options_.say("'" + name_ + "' is decoded by the processor, since " + used.error());
  }
  [[nodiscard]] bool still() const {
    const std::string_view demuxer = input_->iformat->name;
    return demuxer.find("image2") != demuxer.npos || demuxer.find("_pipe") != demuxer.npos;
  }
  // Finds out whether pictures are to be turned, and says their size as it is to be seen. A still picture's orientation
  // is known once it is decoded: it is held then.
  Status turn_upright() {
    turn_ = turn_of_stream(*input_->streams[stream_]);
    if (turn_.nothing() && still() && !format_.live) {
      auto first = decode_next();
      if (!first.ok()) return Error{first.error()};
      if (*first) turn_ = turn_of_picture(*picture_);
      held_ = *first;
    }
    if (turn_.nothing()) return Done{};
    format_.format = LEAT_FORMAT_i420;
    format_.width &= ~1U;
    format_.height &= ~1U;
    if (turn_.swaps_sides()) std::swap(format_.width, format_.height);
    upright_ = Upright(turn_);
    return Done{};
  }
  Result<bool> write_upright(const leat_frame& slot) {
    const AVFrame* from = picture_;
    if (same_format(static_cast<AVPixelFormat>(picture_->format)) != LEAT_FORMAT_i420) {
      scaler_ = ::sws_getCachedContext(scaler_, picture_->width, picture_->height,
                                       static_cast<AVPixelFormat>(picture_->format), picture_->width, picture_->height,
                                       AV_PIX_FMT_YUV420P, SWS_BILINEAR, nullptr, nullptr, nullptr);
      if (lying_ == nullptr) lying_ = ::av_frame_alloc();
      if (lying_->width != picture_->width || lying_->height != picture_->height) {
        ::av_frame_unref(lying_);
        lying_->format = AV_PIX_FMT_YUV420P;
        lying_->width = picture_->width;
        lying_->height = picture_->height;
        if (::av_frame_get_buffer(lying_, 0) < 0) return Error{"'" + name_ + "': no memory to turn its pictures"};
      }
      if (scaler_ == nullptr) return Error{"'" + name_ + "': pictures of this pixel format cannot be converted"};
      ::sws_scale(scaler_, picture_->data, picture_->linesize, 0, picture_->height, lying_->data, lying_->linesize);
      from = lying_;
    }
    upright_.write({.planes = {from->data[0], from->data[1], from->data[2]},
                    .strides = {from->linesize[0], from->linesize[1], from->linesize[2]},
                    .width = from->width,
                    .height = from->height},
                   slot);
    return true;
  }

  void describe(bool live) {
    const AVStream* stream = input_->streams[stream_];
    const AVRational rate = ::av_guess_frame_rate(input_, input_->streams[stream_], nullptr);
    format_.live = live;
    untimed_ = live && (input_->iformat->flags & AVFMT_NOTIMESTAMPS) != 0;
    format_.rate = rate.num > 0 && rate.den > 0 ? ::av_q2d(rate) : 0;
    format_.pictures = stream->nb_frames > 0 ? static_cast<std::uint64_t>(stream->nb_frames) : 0;
    const leat_format same = on_device_ ? LEAT_FORMAT_nv12 : same_format(decoder_->pix_fmt);
    format_.format = same == LEAT_FORMAT_unknown ? LEAT_FORMAT_i420 : same;
    const bool halved = format_.format == LEAT_FORMAT_i420 || format_.format == LEAT_FORMAT_nv12;
    const std::uint32_t mask = halved ? ~1U : ~0U;
    format_.width = static_cast<std::uint32_t>(std::max(decoder_->width, 0)) & mask;
    format_.height = static_cast<std::uint32_t>(std::max(decoder_->height, 0)) & mask;
  }

  // The next packet of our stream. False: the end.
  Result<bool> read_packet() {
    if (std::exchange(waits_for_another_, false)) arrival_.waited_ns = 0;
    const std::int64_t from_ns = ::leat_now_ns();
    for (;;) {
      const int read = ::av_read_frame(input_, packet_);
      if (read < 0 && given_up()) return Error{gave_up()};
      if (read == AVERROR(EAGAIN)) {  // a device
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        continue;
      }
      if (read < 0) {
        if (read != AVERROR_EOF && format_.live) return Error{"'" + name_ + "' broke off: " + av_text(read)};
        return false;
      }
      if (packet_->stream_index == stream_) {
        arrival_.read(from_ns, ::leat_now_ns());
        if (untimed_) packet_->pts = packet_->dts = arrival_.at_ns;
        return true;
      }
      ::av_packet_unref(packet_);
    }
  }

  [[nodiscard]] std::int64_t in_ns(std::int64_t timestamp) const {
    if (untimed_) return timestamp;
    const AVRational ns{1, static_cast<int>(kNsPerSecond)};
    return ::av_rescale_q(timestamp, input_->streams[stream_]->time_base, ns);
  }
  [[nodiscard]] std::int64_t time_of(std::int64_t timestamp) const {
    return timestamp == AV_NOPTS_VALUE || first_time_ == AV_NOPTS_VALUE ? kNoTime : in_ns(timestamp) - first_time_;
  }

  // When packet_ is to be decoded: these times do not go back unless they step.
  [[nodiscard]] std::int64_t decoding_time() const {
    return time_of(packet_->dts != AV_NOPTS_VALUE ? packet_->dts : packet_->pts);
  }

  // The decoded picture's time; its place is counted.
  std::int64_t made_ready() {
    any_ = waits_for_another_ = true;
    const std::int64_t timestamp = picture_->best_effort_timestamp, before_ns = last_ns_;
    if (first_time_ == AV_NOPTS_VALUE && timestamp != AV_NOPTS_VALUE) first_time_ = in_ns(timestamp);
    last_ns_ = time_of(timestamp);
    const bool timed = last_ns_ != kNoTime && before_ns != kNoTime;
    index_ = count_.received(timed ? std::llround(static_cast<double>(last_ns_ - before_ns) * format_.rate / 1e9) : 0);
    return last_ns_;
  }

  std::string name_;
  PictureFormat format_;
  AVFormatContext* input_ = nullptr;
  AVCodecContext* decoder_ = nullptr;
  AVFrame* picture_ = nullptr;
  AVFrame* lying_ = nullptr;  // converted, before it is turned
  AVPacket* packet_ = nullptr;
  SwsContext* scaler_ = nullptr;
  int stream_ = -1;
  SourceOptions options_;
  bool untimed_ = false;  // a live stream without times, such as JPEGs over HTTP: a picture's is when it came
  bool closing_ = false;
  bool on_device_ = false;  // pictures are decoded there
  Turn turn_;
  Upright upright_{Turn{}};
  std::optional<std::optional<std::int64_t>> held_;  // what next() answers without decoding
  std::int64_t first_time_ = AV_NOPTS_VALUE;
  PictureCount count_;
  std::uint64_t index_ = 0;
  bool any_ = false;                 // a picture has been made ready since the beginning
  std::int64_t last_ns_ = kNoTime;   // the last one's time
  std::int64_t taken_ns_ = kNoTime;  // decoding time of the last packet that was decoded or passed over
  FrameArrival arrival_;
  bool waits_for_another_ = false;  // a picture has been made ready since what arrival_ says was read
  bool packet_kept_ = false;        // packet_ is still to be decoded
};

}  // namespace

Result<std::unique_ptr<PictureSource>> open_video(const std::string& name, const SourceOptions& options) {
  auto video = std::make_unique<Video>(options);
  if (const Status opened = video->open(name); !opened.ok()) return Error{opened.error()};
  return std::unique_ptr<PictureSource>(std::move(video));
}

}  // namespace leat::tools
