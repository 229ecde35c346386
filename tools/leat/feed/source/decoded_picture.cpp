#include "tools/leat/feed/source/decoded_picture.h"

#include <algorithm>
#include <cstring>

extern "C" {
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
}

namespace leat::tools {
namespace {

// The older names say the range, which stands beside the format today.
AVPixelFormat plain(AVPixelFormat pixels) {
  switch (pixels) {
    case AV_PIX_FMT_YUVJ420P:
      return AV_PIX_FMT_YUV420P;
    case AV_PIX_FMT_YUVJ422P:
      return AV_PIX_FMT_YUV422P;
    case AV_PIX_FMT_YUVJ444P:
      return AV_PIX_FMT_YUV444P;
    case AV_PIX_FMT_YUVJ440P:
      return AV_PIX_FMT_YUV440P;
    case AV_PIX_FMT_YUVJ411P:
      return AV_PIX_FMT_YUV411P;
    default:
      return pixels;
  }
}

Coding::Family family_of(AVPixelFormat pixels) {
  const AVPixFmtDescriptor* const d = ::av_pix_fmt_desc_get(pixels);
  if (d == nullptr || (d->flags & AV_PIX_FMT_FLAG_HWACCEL) != 0) return Coding::Family::yuv;
  if ((d->flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL)) != 0) return Coding::Family::rgb;
  return d->nb_components <= 2 ? Coding::Family::gray : Coding::Family::yuv;
}

leat_format slot_format(AVPixelFormat pixels) {
  const AVPixFmtDescriptor* const d = ::av_pix_fmt_desc_get(pixels);
  if (d == nullptr) return LEAT_FORMAT_i420;
  if ((d->flags & AV_PIX_FMT_FLAG_HWACCEL) != 0 || pixels == AV_PIX_FMT_NV12) return LEAT_FORMAT_nv12;
  if (pixels == AV_PIX_FMT_BGR24) return LEAT_FORMAT_bgr24;
  const Coding::Family family = family_of(pixels);
  if (family == Coding::Family::gray) return LEAT_FORMAT_gray8;
  const bool halved = d->log2_chroma_w == 1 && d->log2_chroma_h == 1;
  return family == Coding::Family::yuv && halved ? LEAT_FORMAT_i420 : LEAT_FORMAT_rgb24;
}

AVPixelFormat pixels_of(std::uint32_t format) {
  switch (format) {
    case LEAT_FORMAT_nv12:
      return AV_PIX_FMT_NV12;
    case LEAT_FORMAT_rgb24:
      return AV_PIX_FMT_RGB24;
    case LEAT_FORMAT_bgr24:
      return AV_PIX_FMT_BGR24;
    case LEAT_FORMAT_gray8:
      return AV_PIX_FMT_GRAY8;
    default:
      return AV_PIX_FMT_YUV420P;
  }
}

// Whether the first planes of a picture are those of the other format as they are; an alpha plane is left out.
bool lies_as(AVPixelFormat pixels, AVPixelFormat other) {
  return pixels == other || (pixels == AV_PIX_FMT_YUVA420P && other == AV_PIX_FMT_YUV420P);
}

// A video says limited by saying nothing (H.273); a gray image is full range, as its RGB is.
bool says_limited_by_silence(AVCodecID codec) {
  return codec == AV_CODEC_ID_H264 || codec == AV_CODEC_ID_HEVC || codec == AV_CODEC_ID_AV1;
}

int coefficients_of(std::uint8_t matrix) {
  return matrix == LEAT_COLOR_MATRIX_bt709    ? SWS_CS_ITU709
         : matrix == LEAT_COLOR_MATRIX_bt2020 ? SWS_CS_BT2020
                                              : SWS_CS_ITU601;
}

}  // namespace

DecodedForm form_of(const AVFrame& picture) {
  return {static_cast<AVPixelFormat>(picture.format), picture.width, picture.height, picture.color_range,
          picture.colorspace};
}
DecodedForm form_of(const AVCodecContext& decoder) {
  return {decoder.pix_fmt, decoder.width, decoder.height, decoder.color_range, decoder.colorspace};
}

Coding coding_of(const DecodedForm& form, AVCodecID codec) {
  Coding coding{.family = family_of(form.pixels)};
  if (coding.family == Coding::Family::rgb) return coding;
  const bool full = form.range == AVCOL_RANGE_JPEG || plain(form.pixels) != form.pixels;
  if (full) coding.color.range = LEAT_COLOR_RANGE_full;
  if (form.range == AVCOL_RANGE_MPEG) coding.color.range = LEAT_COLOR_RANGE_limited;
  if (coding.family == Coding::Family::yuv)
    coding.color.matrix = shm::matrix_of_h273(static_cast<unsigned>(form.matrix));
  if (coding.color != shm::Color{}) coding.from = Coding::From::stream;
  if (codec == AV_CODEC_ID_MJPEG && full) coding.from = Coding::From::jpeg;
  if (coding.family != Coding::Family::gray || coding.color.range != LEAT_COLOR_RANGE_unspecified) return coding;
  const bool limited = says_limited_by_silence(codec);
  coding.color.range = limited ? LEAT_COLOR_RANGE_limited : LEAT_COLOR_RANGE_full;
  coding.from = limited ? Coding::From::stream : Coding::From::image;
  return coding;
}

void set_slots(const DecodedForm& form, const Turn& turn, PictureFormat& format) {
  format.format = slot_format(plain(form.pixels));
  if (!turn.nothing() && format.format == LEAT_FORMAT_nv12) format.format = LEAT_FORMAT_i420;
  const bool halved = shm::has_matrix(format.format);
  const std::uint32_t mask = halved ? ~1U : ~0U;
  format.width = static_cast<std::uint32_t>(std::max(form.width, 0)) & mask;
  format.height = static_cast<std::uint32_t>(std::max(form.height, 0)) & mask;
  if (turn.swaps_sides()) std::swap(format.width, format.height);
}

DecodedPictures::~DecodedPictures() {
  ::sws_freeContext(scaler_);
  ::av_frame_free(&stored_);
}

Status DecodedPictures::write(const AVFrame& picture, const Coding& coding, const Turn& turn, const leat_frame& slot) {
  const AVPixelFormat to = pixels_of(slot.format);
  if (!turn.nothing()) {
    const bool swapped = turn.swaps_sides();
    const auto stored = to_turn(picture, coding, to, static_cast<int>(swapped ? slot.height : slot.width),
                                static_cast<int>(swapped ? slot.width : slot.height));
    if (!stored.ok()) return Error{stored.error()};
    const AVFrame& from = **stored;
    if (!(upright_.turn() == turn)) upright_ = Upright(turn);
    upright_.write({.planes = {from.data[0], from.data[1], from.data[2]},
                    .strides = {from.linesize[0], from.linesize[1], from.linesize[2]},
                    .width = from.width,
                    .height = from.height},
                   slot);
    return Done{};
  }
  if (lies_as(plain(static_cast<AVPixelFormat>(picture.format)), to)) {
    for (std::uint32_t p = 0; p < slot.plane_count; ++p)
      for (std::uint32_t row = 0; row < slot.rows[p]; ++row)
        std::memcpy(slot.planes[p] + std::uint64_t{row} * slot.strides[p],
                    picture.data[p] + std::int64_t{row} * picture.linesize[p], slot.row_bytes[p]);
    return Done{};
  }
  std::uint8_t* planes[4] = {};
  int strides[4] = {};
  for (std::uint32_t p = 0; p < slot.plane_count; ++p)
    planes[p] = slot.planes[p], strides[p] = static_cast<int>(slot.strides[p]);
  return convert(picture, coding, to, static_cast<int>(slot.width), static_cast<int>(slot.height), planes, strides);
}

Result<const AVFrame*> DecodedPictures::to_turn(const AVFrame& picture, const Coding& coding, AVPixelFormat to,
                                                int width, int height) {
  if (lies_as(plain(static_cast<AVPixelFormat>(picture.format)), to)) return &picture;
  if (stored_ == nullptr) stored_ = ::av_frame_alloc();
  if (stored_->width != width || stored_->height != height || stored_->format != to) {
    ::av_frame_unref(stored_);
    stored_->format = to;
    stored_->width = width;
    stored_->height = height;
    if (::av_frame_get_buffer(stored_, 0) < 0) return Error{"no memory to turn its pictures"};
  }
  const Status converted = convert(picture, coding, to, width, height, stored_->data, stored_->linesize);
  if (!converted.ok()) return Error{converted.error()};
  return static_cast<const AVFrame*>(stored_);
}

Status DecodedPictures::convert(const AVFrame& picture, const Coding& coding, AVPixelFormat to, int width, int height,
                                std::uint8_t* const planes[4], const int strides[4]) {
  // swscale's bilinear puts chroma half a line too low where it makes RGB of fewer chroma lines, not where it makes YUV
  // (findings/swscale_chroma_half_a_line.sh).
  if (plain(static_cast<AVPixelFormat>(picture.format)) == AV_PIX_FMT_YUV440P && to == AV_PIX_FMT_RGB24) {
    if (lines_ == nullptr) lines_ = std::make_unique<DecodedPictures>();
    const auto all = lines_->to_turn(picture, coding, AV_PIX_FMT_YUV444P, width, height);
    if (!all.ok()) return Error{all.error()};
    return convert(**all, coding, to, width, height, planes, strides);
  }
  const Conversion wanted{
      .from = plain(static_cast<AVPixelFormat>(picture.format)),
      .to = to,
      .width = width,
      .height = height,
      .color = shm::color_of(coding.color, {}, LEAT_FORMAT_i420, static_cast<std::uint32_t>(picture.height))};
  if (!(wanted == conversion_) || scaler_ == nullptr) {
    ::sws_freeContext(scaler_);
    scaler_ = ::sws_alloc_context();
    conversion_ = wanted;
    const int full = wanted.color.range == LEAT_COLOR_RANGE_full ? 1 : 0;
    const std::pair<const char*, int> options[] = {
        {"srcw", width},
        {"srch", height},
        {"src_format", wanted.from},
        {"dstw", width},
        {"dsth", height},
        {"dst_format", to},
        {"src_range", full},
        {"dst_range", full},
        {"sws_flags", SWS_BILINEAR | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP}};
    for (const auto& [name, value] : options) (void)::av_opt_set_int(scaler_, name, value, 0);
    if (::sws_init_context(scaler_, nullptr, nullptr) < 0) {
      ::sws_freeContext(std::exchange(scaler_, nullptr));
      return Error{"pictures of this pixel format cannot be converted"};
    }
    const int* const matrix = ::sws_getCoefficients(coefficients_of(wanted.color.matrix));
    (void)::sws_setColorspaceDetails(scaler_, matrix, full, matrix, full, 0, 1 << 16, 1 << 16);
  }
  ::sws_scale(scaler_, picture.data, picture.linesize, 0, height, planes, strides);
  return Done{};
}

}  // namespace leat::tools
