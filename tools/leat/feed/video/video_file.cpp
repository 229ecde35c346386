#include "tools/leat/feed/video/video_file.h"

#include "tools/leat/feed/source/av_text.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/opt.h>
}

namespace leat::tools {

VideoFile::~VideoFile() {
  ::av_packet_free(&packet_);
  ::av_frame_free(&picture_);
  ::avcodec_free_context(&encoder_);
  if (output_ != nullptr) ::avio_closep(&output_->pb);
  ::avformat_free_context(output_);
}

bool VideoFile::takes(const std::string& path) { return ::av_guess_format(nullptr, path.c_str(), nullptr) != nullptr; }

Status VideoFile::open(const std::string& path, draw::Size size, double rate) {
  path_ = path;
  size_ = {size.width & ~1U, size.height & ~1U};
  ::av_log_set_level(AV_LOG_FATAL);
  ::avformat_alloc_output_context2(&output_, nullptr, nullptr, path.c_str());
  if (output_ == nullptr) return Error{"'" + path + "': no container has this ending; use .mp4 or .mkv"};
  const AVCodec* codec = ::avcodec_find_encoder_by_name("libx264");
  if (codec == nullptr) codec = ::avcodec_find_encoder(AV_CODEC_ID_H264);
  if (codec == nullptr) codec = ::avcodec_find_encoder(AV_CODEC_ID_MPEG4);
  if (codec == nullptr) return Error{"libavcodec has no encoder for H.264 or MPEG-4; install its full build"};
  stream_ = ::avformat_new_stream(output_, codec);
  encoder_ = ::avcodec_alloc_context3(codec);
  encoder_->width = static_cast<int>(size_.width);
  encoder_->height = static_cast<int>(size_.height);
  encoder_->pix_fmt = AV_PIX_FMT_YUV420P;
  encoder_->color_range = AVCOL_RANGE_MPEG;    // as draw::to_i420 makes them; players take large pictures that say
  encoder_->colorspace = AVCOL_SPC_SMPTE170M;  // nothing for BT.709
  encoder_->time_base = ::av_inv_q(::av_d2q(rate > 0 ? rate : 30, 1'000'000));
  encoder_->framerate = ::av_inv_q(encoder_->time_base);
  encoder_->thread_count = 1;
  encoder_->gop_size = 60;
  if ((output_->oformat->flags & AVFMT_GLOBALHEADER) != 0) encoder_->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  ::av_opt_set(encoder_->priv_data, "preset", "ultrafast", 0);
  ::av_opt_set(encoder_->priv_data, "crf", "20", 0);
  int error = ::avcodec_open2(encoder_, codec, nullptr);
  if (error >= 0) error = ::avcodec_parameters_from_context(stream_->codecpar, encoder_);
  stream_->time_base = encoder_->time_base;
  if (error >= 0) error = ::avio_open(&output_->pb, path.c_str(), AVIO_FLAG_WRITE);
  if (error >= 0) error = ::avformat_write_header(output_, nullptr);
  if (error < 0)
    return Error{"'" + path + "' cannot be written: " + av_text(error) + "; name a writable file with room"};
  picture_ = ::av_frame_alloc();
  packet_ = ::av_packet_alloc();
  return Done{};
}

Status VideoFile::write(std::uint64_t time, const draw::Picture& picture) {
  picture_->format = AV_PIX_FMT_YUV420P;
  picture_->width = encoder_->width;
  picture_->height = encoder_->height;
  picture_->pts = static_cast<std::int64_t>(time);
  if (error_ >= 0) error_ = std::min(0, ::av_frame_get_buffer(picture_, 0));
  if (error_ >= 0) {
    const draw::Planes planes{picture_->data[0],     picture_->data[1],     picture_->data[2],
                              picture_->linesize[0], picture_->linesize[1], picture_->linesize[2]};
    const bool fits = picture.size.width >> 1 == size_.width >> 1 && picture.size.height >> 1 == size_.height >> 1;
    draw::to_i420(fits ? picture : draw::letterboxed(picture, size_), planes);
    error_ = send(picture_);
  }
  ::av_frame_unref(picture_);
  return error_ < 0 ? Status(Error{"'" + path_ + "' cannot be written: " + av_text(error_) + "; is the disk full?"})
                    : Status(Done{});
}

int VideoFile::send(const AVFrame* picture) {
  int error = ::avcodec_send_frame(encoder_, picture);
  while (error >= 0) {
    error = ::avcodec_receive_packet(encoder_, packet_);
    if (error == AVERROR(EAGAIN) || error == AVERROR_EOF) return 0;
    if (error < 0) return error;
    if (packet_->duration == 0) packet_->duration = 1;  // without it the last picture has no length and is not shown
    ::av_packet_rescale_ts(packet_, encoder_->time_base, stream_->time_base);
    packet_->stream_index = stream_->index;
    error = ::av_interleaved_write_frame(output_, packet_);
  }
  return error;
}

Status VideoFile::finish() {
  if (error_ >= 0) error_ = send(nullptr);
  if (error_ >= 0) error_ = ::av_write_trailer(output_);
  if (error_ < 0) return Error{"'" + path_ + "' could not be completed: " + av_text(error_) + "; is the disk full?"};
  return Done{};
}

}  // namespace leat::tools
