// A stand-in for libnvcuvid.so.1 that decodes with libavcodec. As strict as the real one is said to be, and stricter: a
// surface is used again as soon as its picture was shown, what is mapped is there when the stream comes to it and not
// before, what is decoded is said to be still in hand when it is first asked about, what is unmapped is overwritten and
// nothing that the stream still fills, and there are as many outputs as were asked for. What it cannot show: the
// engines' own limits and speed, and what a driver does with damaged streams.
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/pixdesc.h>
}

#include "cuda/decode/nvcuvid_api.h"

#define LEAT_EXPORT extern "C" __attribute__((visibility("default")))

namespace leat::fake {
namespace {

using namespace cuda::nvdec;
using cuda::Status;

constexpr unsigned kLeastSurfaces = 17;
constexpr unsigned kPitchAlignment = 256;
constexpr std::uint8_t kUnmapped = 0xee;

struct FreeFrame {
  void operator()(AVFrame* f) const { ::av_frame_free(&f); }
};
using FramePtr = std::shared_ptr<AVFrame>;

struct FakeDecoder {
  DecoderParameters parameters{};
  struct Surface {
    FramePtr frame;
    bool damaged = false, in_hand = false;
  };
  std::vector<Surface> surfaces;
  struct Output {
    std::unique_ptr<std::uint8_t[]> memory;
    bool mapped = false;
    std::atomic<bool> filled{true};  // what the stream puts there has come
  };
  std::deque<Output> outputs;
  [[nodiscard]] unsigned pitch() const {
    return (static_cast<unsigned>(parameters.target_width) / kPitchAlignment + 2) * kPitchAlignment;
  }
  [[nodiscard]] std::size_t bytes() const { return std::size_t{pitch()} * parameters.target_height * 3 / 2; }
};

struct FakeParser {
  ParserParameters parameters{};
  AVCodecContext* codec = nullptr;
  AVPacket* packet = nullptr;
  bool has_sequence = false;
  int coded_width = 0, coded_height = 0, width = 0, height = 0;
  AVColorRange range = AVCOL_RANGE_UNSPECIFIED;
  AVColorSpace matrix = AVCOL_SPC_UNSPECIFIED;
  unsigned surfaces = 0;
  std::map<const std::uint8_t*, int> waiting;  // decoded and not shown: the picture's first byte, its surface
  std::map<int, FramePtr> decoded;             // [surface]: the last
  // Within parse(): what is being decoded.
  FramePtr in_hand;
  FakeDecoder* decoder = nullptr;
  int surface = -1;
};
thread_local FakeParser* parsing = nullptr;

FramePtr reference(const AVFrame* frame) { return {::av_frame_clone(frame), FreeFrame{}}; }

bool begin_sequence(FakeParser& p, const AVCodecContext& c, AVPixelFormat pixels, int coded_width, int coded_height) {
  const bool same_size = p.has_sequence && p.coded_width == coded_width && p.coded_height == coded_height &&
                         p.width == c.width && p.height == c.height;
  if (same_size && p.range == c.color_range && p.matrix == c.colorspace) return true;
  const AVPixFmtDescriptor* const d = ::av_pix_fmt_desc_get(pixels);
  if (d == nullptr) return false;
  VideoFormat format{};
  format.codec = p.parameters.codec;
  format.progressive = 1;
  format.luma_bits_less_8 = format.chroma_bits_less_8 = static_cast<unsigned char>(d->comp[0].depth - 8);
  format.least_surfaces = kLeastSurfaces;
  format.coded_width = static_cast<unsigned>(coded_width);
  format.coded_height = static_cast<unsigned>(coded_height);
  format.display = {0, 0, c.width, c.height};
  format.signal = c.color_range == AVCOL_RANGE_JPEG ? kFullRange : 0;
  format.matrix = static_cast<unsigned char>(c.colorspace);
  format.chroma = d->nb_components < 3 ? 0 : d->log2_chroma_w == 1 && d->log2_chroma_h == 1 ? kChroma420 : 3;
  const int said = p.parameters.sequence(p.parameters.user, &format);
  if (said == 0) return false;
  p.range = c.color_range, p.matrix = c.colorspace;
  if (same_size && (said == 1 || static_cast<unsigned>(said) == p.surfaces)) return true;
  p.has_sequence = true;
  p.coded_width = coded_width, p.coded_height = coded_height, p.width = c.width, p.height = c.height;
  p.surfaces = said > 1 ? static_cast<unsigned>(said) : p.parameters.most_surfaces;
  p.waiting.clear();
  p.decoded.clear();
  return true;
}

// The lowest surface that nobody waits to be shown, so that one is used again as early as can be.
int free_surface(const FakeParser& p) {
  for (int s = 0; s < static_cast<int>(p.surfaces); ++s) {
    bool taken = false;
    for (const auto& [at, surface] : p.waiting) taken = taken || surface == s;
    if (!taken) return s;
  }
  return -1;
}

bool begin_picture(FakeParser& p, const AVFrame* frame) {
  const int surface = free_surface(p);
  if (surface < 0) return false;
  p.in_hand = reference(frame);
  p.surface = surface;
  PictureParameters picture{};
  picture.picture = surface;
  picture.data = p.packet->data;
  picture.bytes = static_cast<unsigned>(p.packet->size);
  if (p.parameters.decode(p.parameters.user, &picture) == 0) return false;
  p.waiting[frame->data[0]] = surface;
  p.decoded[surface] = p.in_hand;
  return true;
}

// Whether it is a picture that an earlier access unit has decoded, and whose surface holds it still.
bool is_shown_again(FakeParser& p, const AVFrame* frame) {
  for (const auto& [surface, held] : p.decoded) {
    if (held->data[0] != frame->data[0]) continue;
    p.waiting[frame->data[0]] = surface;
    return true;
  }
  return false;
}

void show(FakeParser& p, const std::uint8_t* at, long long timestamp) {
  const auto found = p.waiting.find(at);
  if (found == p.waiting.end()) return;
  Shown shown{.picture = found->second,
              .progressive = 1,
              .top_field_first = 0,
              .repeat_first_field = 0,
              .timestamp = timestamp};
  p.waiting.erase(found);
  if (p.parameters.show != nullptr) (void)p.parameters.show(p.parameters.user, &shown);
}

// libavcodec begins a picture: it knows its parameter sets by now, and fills the memory until send() returns.
int get_buffer(AVCodecContext* c, AVFrame* frame, int flags) {
  FakeParser& p = *parsing;
  if (!begin_sequence(p, *c, static_cast<AVPixelFormat>(frame->format), frame->width, frame->height))
    return AVERROR_EXTERNAL;
  if (const int error = ::avcodec_default_get_buffer2(c, frame, flags); error < 0) return error;
  return begin_picture(p, frame) ? 0 : AVERROR_EXTERNAL;
}

bool shows_in_order(const FakeParser& p) { return p.parameters.codec != kAv1; }

void parse(FakeParser& p) {
  int status = ::avcodec_send_packet(p.codec, p.packet);
  bool damaged = status < 0;
  const std::unique_ptr<AVFrame, FreeFrame> frame(::av_frame_alloc());
  while ((status = ::avcodec_receive_frame(p.codec, frame.get())) >= 0) {
    // Decoders that bring memory of their own show what they have decoded at once.
    if (!shows_in_order(p) && !is_shown_again(p, frame.get()) &&
        !(begin_sequence(p, *p.codec, static_cast<AVPixelFormat>(frame->format), frame->width, frame->height) &&
          begin_picture(p, frame.get())))
      break;
    show(p, frame->data[0], frame->pts);
    ::av_frame_unref(frame.get());
  }
  damaged = damaged || (status != AVERROR(EAGAIN) && status < 0);
  if (!damaged || p.decoder == nullptr || p.surface < 0) return;
  p.decoder->surfaces[static_cast<std::size_t>(p.surface)].damaged = true;
  show(p, p.decoded[p.surface]->data[0], p.packet->pts);  // all the same
}

AVCodecID id_of(int codec) {
  return codec == kH264 ? AV_CODEC_ID_H264 : codec == kHevc ? AV_CODEC_ID_HEVC : AV_CODEC_ID_AV1;
}

struct Fill {
  FramePtr frame;
  std::uint8_t* to;
  std::atomic<bool>* filled;
  unsigned pitch, width, height;
};
// On the stream: the picture as NV12.
void fill(void* argument) {
  const std::unique_ptr<Fill> job(static_cast<Fill*>(argument));
  const AVFrame& f = *job->frame;
  for (unsigned y = 0; y < job->height; ++y)
    std::memcpy(job->to + std::size_t{y} * job->pitch, f.data[0] + std::ptrdiff_t{y} * f.linesize[0], job->width);
  std::uint8_t* const chroma = job->to + std::size_t{job->pitch} * job->height;
  for (unsigned y = 0; y < job->height / 2; ++y)
    for (unsigned x = 0; x < job->width / 2; ++x) {
      chroma[std::size_t{y} * job->pitch + 2 * x] = f.data[1][std::ptrdiff_t{y} * f.linesize[1] + x];
      chroma[std::size_t{y} * job->pitch + 2 * x + 1] = f.data[2][std::ptrdiff_t{y} * f.linesize[2] + x];
    }
  job->filled->store(true);
}

Status on_stream(cuda::Stream stream, void (*function)(void*), void* argument) {
  static const auto kLaunch = reinterpret_cast<Status (*)(cuda::Stream, void (*)(void*), void*)>(
      ::dlsym(::dlopen("libcuda.so.1", RTLD_NOW), "cuLaunchHostFunc"));
  return kLaunch(stream, function, argument);
}

}  // namespace
}  // namespace leat::fake

using namespace leat::fake;
using namespace leat::cuda::nvdec;
using leat::cuda::kInvalidValue;
using leat::cuda::kSuccess;
using leat::cuda::Status;

LEAT_EXPORT Status cuvidGetDecoderCaps(Capabilities* asked) {
  const bool there = asked->chroma == kChroma420 && asked->bits_less_8 == 0 &&
                     (asked->codec == kH264 || asked->codec == kHevc || asked->codec == kAv1) &&
                     ::avcodec_find_decoder(id_of(asked->codec)) != nullptr;
  asked->supported = there ? 1 : 0;
  asked->max_width = asked->max_height = there ? 8192 : 0;
  return kSuccess;
}
LEAT_EXPORT Status cuvidCreateDecoder(Decoder* out, DecoderParameters* p) {
  if (p->surfaces == 0 || p->surfaces > 32 || p->output_surfaces == 0 || p->output_surfaces > 64 ||
      p->target_width % 2 != 0 || p->output != kSurfaceNv12)
    return kInvalidValue;
  auto* const made = new FakeDecoder;
  made->parameters = *p;
  made->surfaces.resize(p->surfaces);
  for (unsigned i = 0; i < p->output_surfaces; ++i) made->outputs.emplace_back();
  *out = made;
  return kSuccess;
}
LEAT_EXPORT Status cuvidDestroyDecoder(Decoder decoder) {
  delete static_cast<FakeDecoder*>(decoder);
  return kSuccess;
}
LEAT_EXPORT Status cuvidDecodePicture(Decoder decoder, PictureParameters* picture) {
  auto& d = *static_cast<FakeDecoder*>(decoder);
  if (parsing == nullptr || picture->picture < 0 || static_cast<std::size_t>(picture->picture) >= d.surfaces.size())
    return kInvalidValue;
  d.surfaces[static_cast<std::size_t>(picture->picture)] = {.frame = parsing->in_hand, .in_hand = true};
  parsing->decoder = &d;
  return kSuccess;
}
LEAT_EXPORT Status cuvidGetDecodeStatus(Decoder decoder, int picture, DecodeStatus* out) {
  auto& d = *static_cast<FakeDecoder*>(decoder);
  if (picture < 0 || static_cast<std::size_t>(picture) >= d.surfaces.size()) return kInvalidValue;
  FakeDecoder::Surface& surface = d.surfaces[static_cast<std::size_t>(picture)];
  out->state = std::exchange(surface.in_hand, false) ? kDecoding : surface.damaged ? kDecodeError : kDecoded;
  return kSuccess;
}
LEAT_EXPORT Status cuvidMapVideoFrame64(Decoder decoder, int picture, unsigned long long* out, unsigned* pitch,
                                        MapParameters* p) {
  auto& d = *static_cast<FakeDecoder*>(decoder);
  if (picture < 0 || static_cast<std::size_t>(picture) >= d.surfaces.size()) return kInvalidValue;
  for (FakeDecoder::Surface& s : d.surfaces) s.in_hand = false;  // all that came before it are decoded too
  const FramePtr& frame = d.surfaces[static_cast<std::size_t>(picture)].frame;
  if (frame == nullptr || p->progressive == 0 || static_cast<unsigned>(frame->width) < d.parameters.target_width ||
      static_cast<unsigned>(frame->height) < d.parameters.target_height)
    return kInvalidValue;
  for (FakeDecoder::Output& o : d.outputs) {
    if (o.mapped) continue;
    if (o.memory == nullptr) o.memory = std::make_unique<std::uint8_t[]>(d.bytes());
    o.mapped = true;
    o.filled = false;
    *pitch = d.pitch();
    *out = reinterpret_cast<unsigned long long>(o.memory.get());
    return on_stream(
        p->stream, fill,
        new Fill{frame, o.memory.get(), &o.filled, d.pitch(), static_cast<unsigned>(d.parameters.target_width),
                 static_cast<unsigned>(d.parameters.target_height)});
  }
  return kInvalidValue;  // more are mapped than were asked for
}
LEAT_EXPORT Status cuvidUnmapVideoFrame64(Decoder decoder, unsigned long long at) {
  auto& d = *static_cast<FakeDecoder*>(decoder);
  for (FakeDecoder::Output& o : d.outputs) {
    if (!o.mapped || reinterpret_cast<unsigned long long>(o.memory.get()) != at) continue;
    if (!o.filled) return kInvalidValue;  // what a driver makes of it is not said anywhere: here it stays mapped
    std::memset(o.memory.get(), kUnmapped, d.bytes());
    o.mapped = false;
    return kSuccess;
  }
  return kInvalidValue;
}

LEAT_EXPORT Status cuvidCreateVideoParser(Parser* out, ParserParameters* p) {
  ::av_log_set_level(AV_LOG_QUIET);
  const AVCodec* const codec = ::avcodec_find_decoder(id_of(p->codec));
  if (codec == nullptr || p->sequence == nullptr || p->decode == nullptr) return kInvalidValue;
  auto made = std::make_unique<FakeParser>();
  made->parameters = *p;
  made->codec = ::avcodec_alloc_context3(codec);
  made->codec->thread_count = 1;
  made->codec->err_recognition = AV_EF_EXPLODE | AV_EF_CRCCHECK | AV_EF_BITSTREAM | AV_EF_BUFFER;
  made->codec->flags |= AV_CODEC_FLAG_LOW_DELAY;
  if (p->codec != kAv1) made->codec->get_buffer2 = get_buffer;
  made->packet = ::av_packet_alloc();
  if (::avcodec_open2(made->codec, codec, nullptr) < 0) {
    ::av_packet_free(&made->packet);
    ::avcodec_free_context(&made->codec);
    return kInvalidValue;
  }
  *out = made.release();
  return kSuccess;
}
LEAT_EXPORT Status cuvidParseVideoData(Parser parser, Packet* packet) {
  auto& p = *static_cast<FakeParser*>(parser);
  if ((packet->flags & kEndOfPicture) == 0) return kInvalidValue;
  if ((packet->flags & kDiscontinuity) != 0) {
    ::avcodec_flush_buffers(p.codec);
    p.waiting.clear();
  }
  if (::av_new_packet(p.packet, static_cast<int>(packet->bytes)) < 0) return leat::cuda::kOutOfMemory;
  std::memcpy(p.packet->data, packet->data, packet->bytes);
  p.packet->pts = packet->timestamp;
  p.decoder = nullptr;
  p.surface = -1;
  parsing = &p;
  leat::fake::parse(p);
  parsing = nullptr;
  p.in_hand.reset();
  ::av_packet_unref(p.packet);
  return kSuccess;
}
LEAT_EXPORT Status cuvidDestroyVideoParser(Parser parser) {
  const std::unique_ptr<FakeParser> p(static_cast<FakeParser*>(parser));
  parsing = p.get();
  ::avcodec_free_context(&p->codec);
  parsing = nullptr;
  ::av_packet_free(&p->packet);
  return kSuccess;
}
