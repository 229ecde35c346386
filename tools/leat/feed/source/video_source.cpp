// Video through libavformat and libavcodec: files, V4L2 devices, network streams. The decoder keeps its own reference
// pictures; each decoded picture is copied or converted once, into the slot (decoded_picture.h).
#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavdevice/version.h>
#include <libavformat/avformat.h>
#include <libavutil/display.h>
}

#include "tools/leat/feed/source/av_text.h"
#include "tools/leat/feed/source/damage.h"
#include "tools/leat/feed/source/decoded_picture.h"
#include "tools/leat/feed/source/hardware_decoder.h"
#include "tools/leat/feed/source/jpeg_end.h"
#include "tools/leat/feed/source/picture_count.h"
#include "tools/leat/feed/source/picture_source.h"
#include "tools/leat/feed/source/upright.h"

namespace leat::tools {
namespace {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;
constexpr std::int64_t kMaxGapNs = 10 * kNsPerSecond;  // between packets: beyond it times have stepped

constexpr std::size_t kMaxAhead = 16;  // pictures decoded before they are asked for
constexpr int kMaxErrors = 64;         // of a decoder in a row, with no packet between

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
    leave_ahead();
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
    if (codec->id == AV_CODEC_ID_MJPEG) decoder_->err_recognition |= AV_EF_EXPLODE;  // send() asks again without
    // libjpeg's own, as Pillow and OpenCV have it: the default one is up to .7 of 255 darker in the mean, and quicker.
    if (codec->id == AV_CODEC_ID_MJPEG && still()) decoder_->idct_algo = FF_IDCT_INT;
#ifdef AV_CODEC_FLAG_COPY_OPAQUE
    decoder_->flags |= AV_CODEC_FLAG_COPY_OPAQUE;
#endif
    if (options_.decoder != "cpu") decode_on_device(codec);
    if (const int error = ::avcodec_open2(decoder_, codec, nullptr); error < 0)
      return Error{"'" + name_ + "': the decoder does not start: " + av_text(error)};
    picture_ = ::av_frame_alloc();
    packet_ = ::av_packet_alloc();
    const bool opens_itself = (input_->iformat->flags & AVFMT_NOFILE) != 0 && !still();  // a camera, or a picture
    const bool seekable = input_->pb != nullptr && (input_->pb->seekable & AVIO_SEEKABLE_NORMAL) != 0;
    const bool endless = may_come_back(name) && !seekable && input_->duration == AV_NOPTS_VALUE;
    if (device && decoder_->codec_id == AV_CODEC_ID_RAWVIDEO) device_color_ = color_of_device(name);
    describe_stream(device || opens_itself || endless || name.find("rtsp://") == 0 || name.find("udp://") == 0 ||
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
    if (const Status decoded = decode_ahead(); !decoded.ok()) return Error{decoded.error()};
    if (ahead_.empty() && !any_)
      return Error{"'" + name_ + "' ended before a picture of it could be decoded; it is damaged or cut short"};
    if (ahead_.empty()) return std::optional<std::int64_t>{};
    ::av_frame_free(&picture_);
    const Placed next = ahead_.front();
    ahead_.pop_front();
    picture_ = next.picture;
    index_ = next.index;
    damaged_ = damage_.reaches(packet_of(*picture_), time_in_stream(*picture_));
    describe(form_of(*picture_));
    return std::optional<std::int64_t>(next.time_ns);
  }
  [[nodiscard]] bool damaged() const override { return damaged_; }
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
    passed = {ahead_.size() + count_.emptied(), last_ns_};
    flush();
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
    if (slot.format != static_cast<std::uint32_t>(format_.format) || slot.width != format_.width ||
        slot.height != format_.height)
      return Error{"'" + name_ + "' changed its pictures to " + std::to_string(format_.width) + "x" +
                   std::to_string(format_.height) + " " + name_of(format_.format) + "; cut it there"};
    const Status written = pictures_.write(*picture_, format_.coding, turn_, slot);
    if (!written.ok()) return Error{"'" + name_ + "': " + written.error()};
    return true;
  }

  Status rewind() override {
    held_.reset();
    if (format_.live) return Error{"'" + name_ + "' is live and cannot be played again; leave --loop out"};
    flush();
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
    describe(held_ && *held_ ? form_of(*picture_) : form_of(*decoder_));
    return Done{};
  }

  // ---- decoding, and which of its pictures show errors (damage.h) ----

  struct Placed {
    AVFrame* picture;
    std::uint64_t index;
    std::int64_t time_ns;
  };
  // The oldest of ahead_ is the next picture: of a file, once it is known whether an error reaches it, which may be in
  // a picture that is decoded before it and shown after it. A live source is never kept waiting for that.
  Status decode_ahead() {
    while (!drained_ && (ahead_.empty() || !next_is_known())) {
      AVFrame* frame = ::av_frame_alloc();
      const auto received = receive(frame);
      if (received.ok() && *received) {
        ahead_.push_back(placed(frame));
        continue;
      }
      ::av_frame_free(&frame);
      if (!received.ok()) return Error{received.error()};
      drained_ = true;
    }
    return Done{};
  }
  [[nodiscard]] bool next_is_known() const {
    if (format_.live || ahead_.size() > kMaxAhead) return true;
    std::int64_t newest = Damage::kNoTime;
    for (const Placed& p : ahead_) newest = std::max(newest, time_in_stream(*p.picture));
    return newest == Damage::kNoTime || newest >= damage_.known_from(packet_of(*ahead_.front().picture));
  }
  // The next decoded picture, in memory. False: there are no more.
  Result<bool> receive(AVFrame* frame) {
    for (int errors = 0;;) {
      if (given_up()) return Error{gave_up()};
      const int got = ::avcodec_receive_frame(decoder_, frame);
      if (got == 0) {
        if (const Status fetched = to_memory(frame); !fetched.ok()) return Error{"'" + name_ + "': " + fetched.error()};
        if (frame->decode_error_flags != 0 || (frame->flags & AV_FRAME_FLAG_CORRUPT) != 0)
          damage_.damaged(packet_of(*frame));
        return true;
      }
      if (got == AVERROR_EOF) return false;
      if (got == AVERROR_INVALIDDATA && ++errors < kMaxErrors) {
        damage_.damaged(sent_);
        continue;
      }
      if (got != AVERROR(EAGAIN)) return Error{"'" + name_ + "' cannot be decoded: " + av_text(got)};
      errors = 0;
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
      send();
      count_.sent();
      ::av_packet_unref(packet_);
    }
  }
  // A damaged packet costs its pictures, not the stream.
  void send() {
    sent_ = damage_.packet((packet_->flags & AV_PKT_FLAG_KEY) != 0, packet_->pts);
    if ((packet_->flags & AV_PKT_FLAG_CORRUPT) != 0) damage_.damaged(sent_);
#ifdef AV_CODEC_FLAG_COPY_OPAQUE
    packet_->opaque = reinterpret_cast<void*>(static_cast<std::uintptr_t>(sent_));
#else
    decoder_->reordered_opaque = static_cast<std::int64_t>(sent_);
#endif
    const bool jpeg = decoder_->codec_id == AV_CODEC_ID_MJPEG;
    if (jpeg && lacks_scans({packet_->data, static_cast<std::size_t>(packet_->size)})) damage_.damaged(sent_);
    const int error = ::avcodec_send_packet(decoder_, packet_);
    if (error >= 0 || error == AVERROR(EAGAIN)) return;
    damage_.damaged(sent_);
    if (!jpeg) return;
    // What its decoder refuses where it is told to be exact it decodes as far as the data goes where it is not.
    decoder_->err_recognition &= ~AV_EF_EXPLODE;
    (void)::avcodec_send_packet(decoder_, packet_);
    decoder_->err_recognition |= AV_EF_EXPLODE;
  }
  [[nodiscard]] std::uint64_t packet_of(const AVFrame& frame) const {
#ifdef AV_CODEC_FLAG_COPY_OPAQUE
    const auto number = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(frame.opaque));
#else
    const auto number = static_cast<std::uint64_t>(frame.reordered_opaque);
#endif
    return number > 0 && number <= sent_ ? number : sent_;  // a decoder that does not carry it through
  }
  static std::int64_t time_in_stream(const AVFrame& frame) {
    return frame.pts != AV_NOPTS_VALUE ? frame.pts : Damage::kNoTime;
  }
  static_assert(Damage::kNoTime == AV_NOPTS_VALUE);
  void leave_ahead() {
    for (Placed& p : ahead_) ::av_frame_free(&p.picture);
    ahead_.clear();
  }
  void flush() {
    ::avcodec_flush_buffers(decoder_);
    leave_ahead();
    damage_.flush();
    drained_ = false;
  }

  // ---- what its pictures are ----

  void describe(const DecodedForm& form) {
    set_slots(form, turn_, format_);
    Coding coding = coding_of(form, decoder_->codec_id);
    if (coding.family != Coding::Family::rgb && device_color_ != shm::Color{}) {
      coding.color = shm::color_or(coding.color, device_color_);
      coding.from = Coding::From::device;
    }
    format_.coding = overridden(coding, options_.color);
  }

  void describe_stream(bool live) {
    const AVStream* stream = input_->streams[stream_];
    const AVRational rate = ::av_guess_frame_rate(input_, input_->streams[stream_], nullptr);
    format_.live = live;
    untimed_ = live && (input_->iformat->flags & AVFMT_NOTIMESTAMPS) != 0;
    format_.rate = rate.num > 0 && rate.den > 0 ? ::av_q2d(rate) : 0;
    format_.pictures = stream->nb_frames > 0 ? static_cast<std::uint64_t>(stream->nb_frames) : 0;
    DecodedForm form = form_of(*decoder_);
    if (on_device_) form.pixels = AV_PIX_FMT_NV12;
    describe(form);
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

  // A decoded picture with its time; its place is counted.
  Placed placed(AVFrame* picture) {
    any_ = waits_for_another_ = true;
    const std::int64_t timestamp = picture->best_effort_timestamp, before_ns = last_ns_;
    if (first_time_ == AV_NOPTS_VALUE && timestamp != AV_NOPTS_VALUE) first_time_ = in_ns(timestamp);
    last_ns_ = time_of(timestamp);
    const bool timed = last_ns_ != kNoTime && before_ns != kNoTime;
    return {picture,
            count_.received(timed ? std::llround(static_cast<double>(last_ns_ - before_ns) * format_.rate / 1e9) : 0),
            last_ns_};
  }

  std::string name_;
  PictureFormat format_;
  AVFormatContext* input_ = nullptr;
  AVCodecContext* decoder_ = nullptr;
  AVFrame* picture_ = nullptr;
  std::deque<Placed> ahead_;  // decoded, and to be made ready after picture_
  AVPacket* packet_ = nullptr;
  int stream_ = -1;
  SourceOptions options_;
  bool untimed_ = false;  // a live stream without times, such as JPEGs over HTTP: a picture's is when it came
  bool closing_ = false;
  bool on_device_ = false;  // pictures are decoded there
  Turn turn_;
  DecodedPictures pictures_;
  shm::Color device_color_;
  Damage damage_;
  std::uint64_t sent_ = 0;                           // the latest packet that the decoder has
  bool damaged_ = false;                             // picture_
  bool drained_ = false;                             // the decoder has given its last picture
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
