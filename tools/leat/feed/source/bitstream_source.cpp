// Access units of a video as they lie in it: taken out of their container, decoded by nobody here. They come in
// decoding order, with parameter sets before key pictures.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavcodec/bsf.h>
#include <libavformat/avformat.h>
}

#include "tools/leat/feed/source/access_unit_size.h"
#include "tools/leat/feed/source/av_text.h"
#include "tools/leat/feed/source/picture_source.h"

namespace leat::tools {
namespace {

struct Codec {
  AVCodecID id;
  leat_codec codec;
  leat_format format;
  const char* filters;  // from how containers write it to how decoders take it
};
constexpr Codec kCodecs[] = {
    {AV_CODEC_ID_H264, LEAT_CODEC_h264, LEAT_FORMAT_nv12, "h264_mp4toannexb,dump_extra=freq=keyframe"},
    {AV_CODEC_ID_HEVC, LEAT_CODEC_hevc, LEAT_FORMAT_nv12, "hevc_mp4toannexb,dump_extra=freq=keyframe"},
    {AV_CODEC_ID_AV1, LEAT_CODEC_av1, LEAT_FORMAT_nv12, "null"},
    {AV_CODEC_ID_MJPEG, LEAT_CODEC_jpeg, LEAT_FORMAT_rgb24, "null"},
};
constexpr AVRational kNanoseconds{1, 1'000'000'000};

class Bitstream final : public PictureSource {
 public:
  explicit Bitstream(SourceOptions options) : options_(std::move(options)) {}
  ~Bitstream() override {
    closing_ = true;
    ::av_packet_free(&packet_);
    ::av_bsf_free(&filter_);
    ::avformat_close_input(&input_);
  }

  Status open(const std::string& name) {
    name_ = shown_name(name);
    AVDictionary* settings = nullptr;
    ::av_dict_set(&settings, "rtsp_transport", options_.transport.c_str(), 0);
    ::avformat_network_init();
    input_ = ::avformat_alloc_context();
    input_->interrupt_callback = {[](void* self) { return static_cast<Bitstream*>(self)->given_up() ? 1 : 0; }, this};
    const int opened = ::avformat_open_input(&input_, name.c_str(), nullptr, &settings);
    ::av_dict_free(&settings);
    if (opened < 0) return Error{"'" + name_ + "' cannot be opened: " + av_text(opened)};
    if (const int error = ::avformat_find_stream_info(input_, nullptr); error < 0)
      return Error{"'" + name_ + "' cannot be read: " + av_text(error)};
    stream_ = ::av_find_best_stream(input_, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
    if (stream_ < 0) return Error{"'" + name_ + "' has no video"};
    packet_ = ::av_packet_alloc();
    if (const Status described = describe(may_come_back(name)); !described.ok()) return described;
    return open_filter();
  }

  const PictureFormat& format() const override { return format_; }
  [[nodiscard]] std::uint64_t index() const override { return index_; }
  [[nodiscard]] FrameArrival arrival() const override { return format_.live ? arrival_ : FrameArrival{}; }
  [[nodiscard]] std::uint32_t unit_bytes() const override { return static_cast<std::uint32_t>(packet_->size); }

  Result<std::optional<std::int64_t>> next() override {
    ::av_packet_unref(packet_);
    for (;;) {
      const int got = ::av_bsf_receive_packet(filter_, packet_);
      if (got == 0) break;
      if (got == AVERROR_EOF) return std::optional<std::int64_t>{};
      if (got != AVERROR(EAGAIN)) return Error{"'" + name_ + "' is damaged: " + av_text(got)};
      auto more = read();
      if (!more.ok()) return Error{more.error()};
      (void)::av_bsf_send_packet(filter_, *more ? packet_ : nullptr);  // nullptr: the end
    }
    index_ = at_++;
    waits_for_another_ = true;
    if (const auto size = size_->of({packet_->data, static_cast<std::size_t>(packet_->size)}))
      format_.width = size->width, format_.height = size->height;
    const std::int64_t stamp = packet_->dts != AV_NOPTS_VALUE ? packet_->dts : packet_->pts;
    if (stamp == AV_NOPTS_VALUE) return std::optional<std::int64_t>(kNoTime);
    const std::int64_t time = ::av_rescale_q(stamp, filter_->time_base_out, kNanoseconds);
    if (first_time_ == AV_NOPTS_VALUE) first_time_ = time;
    return std::optional<std::int64_t>(time - first_time_);
  }

  Result<bool> write(const leat_frame& slot) override {
    const auto bytes = static_cast<std::uint64_t>(packet_->size);
    if (bytes > slot.row_bytes[0])
      return Error{"'" + name_ + "' has an access unit of " + std::to_string(bytes) + " bytes, a slot " +
                   std::to_string(slot.row_bytes[0]) + "; send pixels (leave --bitstream out)"};
    std::memcpy(slot.planes[0], packet_->data, bytes);
    return true;
  }

  Status rewind() override {
    if (format_.live) return Error{"'" + name_ + "' is live and cannot be played again; leave --loop out"};
    if (const int error = ::avformat_seek_file(input_, stream_, INT64_MIN, 0, 0, 0); error < 0)
      return Error{"'" + name_ + "' cannot be rewound: " + av_text(error)};
    ::av_bsf_flush(filter_);
    first_time_ = AV_NOPTS_VALUE;
    at_ = 0;
    return Done{};
  }

 private:
  [[nodiscard]] bool given_up() const { return closing_ || (options_.give_up && options_.give_up()); }

  Status describe(bool live) {
    const AVStream& stream = *input_->streams[stream_];
    const AVCodecParameters& p = *stream.codecpar;
    for (const Codec& c : kCodecs)
      if (c.id == p.codec_id) codec_ = &c;
    if (codec_ == nullptr)
      return Error{"'" + name_ + "' is " + ::avcodec_get_name(p.codec_id) +
                   ", and leatd decodes H.264, HEVC, AV1 and JPEG; leave --bitstream out"};
    const AVRational rate = ::av_guess_frame_rate(input_, input_->streams[stream_], nullptr);
    format_.format = codec_->format;
    format_.codec = codec_->codec;
    format_.width = static_cast<std::uint32_t>(std::max(p.width, 0));
    format_.height = static_cast<std::uint32_t>(std::max(p.height, 0));
    size_ = std::make_unique<AccessUnitSize>(p);
    format_.coding = overridden(format_.coding, options_.color);  // else leatd reads it from the stream
    format_.live = live;
    untimed_ = live && (input_->iformat->flags & AVFMT_NOTIMESTAMPS) != 0;
    format_.rate = rate.num > 0 && rate.den > 0 ? ::av_q2d(rate) : 0;
    format_.pictures = stream.nb_frames > 0 ? static_cast<std::uint64_t>(stream.nb_frames) : 0;
    return Done{};
  }

  Status open_filter() {
    const AVStream& stream = *input_->streams[stream_];
    int error = ::av_bsf_list_parse_str(codec_->filters, &filter_);
    if (error >= 0) error = ::avcodec_parameters_copy(filter_->par_in, stream.codecpar);
    if (error >= 0) {
      filter_->time_base_in = untimed_ ? kNanoseconds : stream.time_base;
      error = ::av_bsf_init(filter_);
    }
    if (error < 0) return Error{"'" + name_ + "': its access units cannot be taken out: " + av_text(error)};
    return Done{};
  }

  // The next packet of our stream. False: the end.
  Result<bool> read() {
    if (std::exchange(waits_for_another_, false)) arrival_.waited_ns = 0;
    const std::int64_t from_ns = ::leat_now_ns();
    for (;;) {
      const int got = ::av_read_frame(input_, packet_);
      if (got < 0 && given_up()) return Error{"'" + name_ + "' was given up"};
      if (got < 0 && got != AVERROR_EOF && format_.live) return Error{"'" + name_ + "' broke off: " + av_text(got)};
      if (got < 0) return false;
      if (packet_->stream_index == stream_) {
        arrival_.read(from_ns, ::leat_now_ns());
        if (untimed_) packet_->pts = packet_->dts = arrival_.at_ns;
        return true;
      }
      ::av_packet_unref(packet_);
    }
  }

  SourceOptions options_;
  std::string name_;
  PictureFormat format_;
  AVFormatContext* input_ = nullptr;
  AVBSFContext* filter_ = nullptr;
  AVPacket* packet_ = nullptr;
  const Codec* codec_ = nullptr;
  std::unique_ptr<AccessUnitSize> size_;
  int stream_ = -1;
  bool untimed_ = false;  // as in video_source.cpp
  bool closing_ = false;
  std::int64_t first_time_ = AV_NOPTS_VALUE;
  std::uint64_t at_ = 0, index_ = 0;
  FrameArrival arrival_;
  bool waits_for_another_ = false;  // as in video_source.cpp
};

}  // namespace

Result<std::unique_ptr<PictureSource>> open_bitstream(const std::string& name, const SourceOptions& options) {
  auto source = std::make_unique<Bitstream>(options);
  if (const Status opened = source->open(name); !opened.ok()) return Error{opened.error()};
  return std::unique_ptr<PictureSource>(std::move(source));
}

}  // namespace leat::tools
