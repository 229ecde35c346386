// H.264, HEVC and AV1 by NVDEC. Its parser takes an access unit, chooses a surface and says what is to be decoded into
// it; decoding goes on beside us. A picture is mapped, which makes it readable, when it is asked for, or when the
// parser is about to use its surface for another: so whoever is never asked for is never waited for. Pictures are
// taken in decoding order, as their access units come; what the parser shows, and when, is looked at for AV1 alone,
// where an access unit may show a picture that an earlier one has decoded.
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "cuda/decode/access_unit.h"
#include "cuda/decode/decoder.h"
#include "cuda/decode/libraries.h"
#include "leat/frame_format.h"
#include "shm/src/protocol/color.h"

namespace leat::cuda {
namespace {

using nvdec::PictureParameters;
using nvdec::VideoFormat;

constexpr int kNone = -1;
constexpr unsigned kSpareSurfaces = 4, kMostSurfaces = 32;
constexpr std::size_t kMostSessions = 2;  // decoders of one stream: the one in use, and one whose pictures are read
constexpr std::uint32_t kMostPlaces = 32;

int codec_of(std::uint32_t codec) noexcept {
  return codec == LEAT_CODEC_h264 ? nvdec::kH264 : codec == LEAT_CODEC_hevc ? nvdec::kHevc : nvdec::kAv1;
}

// A sequence that is silent about its colors has a matrix of 2 (H.273: unspecified). It has the flag for the range then
// too, 0 for limited, which is what the default rule says.
shm::Color color_of(const VideoFormat& format) noexcept {
  const bool full = (format.signal & nvdec::kFullRange) != 0;
  return {static_cast<std::uint8_t>(full ? LEAT_COLOR_RANGE_full : LEAT_COLOR_RANGE_limited),
          shm::matrix_of_h273(format.matrix)};
}

// NVDEC's decoder, made anew where the parser needs more surfaces. What lies in them is read until its places are used
// again, so it may outlive its time.
struct Session {
  Session(Device& d, const Nvdec& n) : device(d), library(n) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() {
    if (decoder != nullptr) (void)library.destroy(decoder);
  }
  struct Surface {
    int place = kNone;      // whose picture it holds, unmapped
    bool unproved = false;  // decoded, as far as anybody has asked
    std::uint64_t serial = 0;
    std::uint32_t run = 0;
  };
  Device& device;
  const Nvdec& library;
  nvdec::Decoder decoder = nullptr;
  std::array<Surface, kMostSurfaces> surfaces{};
  unsigned count = 0;
};

class VideoDecoder final : public Decoder {
 public:
  VideoDecoder(Device& device, const leat_decoder_options& options);
  ~VideoDecoder() override;
  void decode(const leat_access_unit& given) override;
  leat_decoded picture(std::uint32_t index) override;

 private:
  struct Place {
    std::shared_ptr<Session> session;  // none: there is no picture
    int surface = kNone;               // while it is not mapped
    unsigned long long mapped = 0;
    unsigned pitch = 0;
    std::uint64_t serial = 0;
    std::uint32_t run = 0;
    bool damaged = false;  // it, or what it may refer to
    shm::Color color;
  };
  // The parser's calls, within decode(). Nothing may be thrown through it: it is kept until it has returned.
  template <class Act>
  int kept(Act act) noexcept {
    try {
      return act();
    } catch (const Failed& e) {
      trouble_ = std::make_unique<Failed>(e);
    } catch (const std::exception& e) {
      trouble_ = std::make_unique<Failed>(LEAT_DEVICE_FAILED, e.what());
    }
    return 0;
  }
  int begin(const VideoFormat& format);
  void refuse_other_than_served(const VideoFormat& format) const;
  int decode_into(PictureParameters& picture);
  void leave(Place& place) noexcept;
  void map(Place& place);
  void prove(Session& session, int surface);
  void note_damage(std::uint32_t run, std::uint64_t serial) noexcept;
  [[noreturn]] void give_up(const std::string& why) {
    keys_.lost();
    throw Failed(LEAT_DEVICE_FAILED, why + "; there are no pictures before the next key picture");
  }

  Device& device_;
  const Nvdec& library_;
  leat_decoder_options options_;
  nvdec::Parser parser_ = nullptr;
  KeyPictures keys_;
  UnitCopy copy_;
  std::array<Place, kMostPlaces> places_{};
  std::array<Event, kMostPlaces> filled_{};  // [place]: its mapped picture is there
  std::shared_ptr<Session> session_;
  shm::Color color_;  // that the sequence in hand states
  std::array<std::weak_ptr<Session>, kMostSessions> sessions_;
  std::uint64_t serial_ = 0;  // of the access unit in hand
  int decoded_ = kNone, shown_ = kNone;
  std::unique_ptr<Failed> trouble_;
};

VideoDecoder::VideoDecoder(Device& device, const leat_decoder_options& options)
    : device_(device), library_(*nvdec_library()), options_(options) {
  nvdec::ParserParameters p{};
  p.codec = codec_of(options.codec);
  p.most_surfaces = 1;      // the sequence says how many
  p.error_threshold = 100;  // what is damaged is decoded too: nothing is left out without our knowing
  p.user = this;
  p.sequence = [](void* self, VideoFormat* format) {
    auto& d = *static_cast<VideoDecoder*>(self);
    return d.kept([&] { return d.begin(*format); });
  };
  p.decode = [](void* self, PictureParameters* picture) {
    auto& d = *static_cast<VideoDecoder*>(self);
    return d.kept([&] { return d.decode_into(*picture); });
  };
  p.show = [](void* self, nvdec::Shown* shown) {
    if (shown != nullptr) static_cast<VideoDecoder*>(self)->shown_ = shown->picture;
    return 1;
  };
  device_.check("cuvidCreateVideoParser", library_.create_parser(&parser_, &p));
}

VideoDecoder::~VideoDecoder() {
  for (Place& place : places_) leave(place);
  for (const Event event : filled_)
    if (event != nullptr) (void)device_.cuda().event_destroy(event);
  (void)library_.destroy_parser(parser_);
}

void VideoDecoder::leave(Place& place) noexcept {
  if (place.mapped != 0) {  // nobody need have read it, so nobody need have waited
    (void)device_.cuda().event_wait(filled_[static_cast<std::size_t>(&place - places_.data())]);
    (void)library_.unmap(place.session->decoder, place.mapped);
  }
  if (place.surface != kNone) place.session->surfaces[static_cast<std::size_t>(place.surface)].place = kNone;
  place = {};
}

// ---- what the parser says ----

void VideoDecoder::refuse_other_than_served(const VideoFormat& format) const {
  const int width = format.display.right - format.display.left, height = format.display.bottom - format.display.top;
  if (width != static_cast<int>(options_.width) || height != static_cast<int>(options_.height))
    throw Failed(LEAT_DEVICE_FAILED, "its pictures have " + std::to_string(width) + "x" + std::to_string(height) +
                                         " pixels, the stream was opened for " + std::to_string(options_.width) + "x" +
                                         std::to_string(options_.height));
  if (format.chroma != nvdec::kChroma420 || format.luma_bits_less_8 != 0 || format.chroma_bits_less_8 != 0)
    throw Failed(LEAT_DEVICE_FAILED, "its pictures are not 8 bits of 4:2:0; encode it so, or send pixels");
}

int VideoDecoder::begin(const VideoFormat& format) {
  refuse_other_than_served(format);
  color_ = color_of(format);
  const unsigned wanted = std::min(format.least_surfaces + kSpareSurfaces, kMostSurfaces);
  if (session_ != nullptr && session_->count >= wanted) return static_cast<int>(session_->count);
  const auto room = std::ranges::find_if(sessions_, [](const auto& s) { return s.expired(); });
  session_.reset();
  if (room == sessions_.end()) throw Failed(LEAT_DEVICE_FAILED, "it begins anew faster than its pictures are answered");
  nvdec::DecoderParameters p{};
  p.width = format.coded_width, p.height = format.coded_height;
  p.surfaces = wanted;
  p.codec = codec_of(options_.codec);
  p.chroma = nvdec::kChroma420;
  p.flags = nvdec::kDedicatedEngines;
  p.max_width = p.width, p.max_height = p.height;
  p.display = {static_cast<short>(format.display.left), static_cast<short>(format.display.top),
               static_cast<short>(format.display.right), static_cast<short>(format.display.bottom)};
  p.output = nvdec::kSurfaceNv12;
  p.deinterlace = nvdec::kWeave;
  p.target_width = options_.width, p.target_height = options_.height;
  p.output_surfaces = options_.places;
  auto made = std::make_shared<Session>(device_, library_);
  device_.check("cuvidCreateDecoder", library_.create(&made->decoder, &p));
  made->count = wanted;
  *room = made;
  session_ = std::move(made);
  return static_cast<int>(wanted);
}

int VideoDecoder::decode_into(PictureParameters& picture) {
  if (session_ == nullptr) throw Failed(LEAT_DEVICE_FAILED, "a picture comes before its parameter sets");
  const int index = picture.picture;
  if (index < 0 || static_cast<unsigned>(index) >= session_->count)
    throw Failed(LEAT_DEVICE_FAILED, "the parser names a surface that there is not");
  Session::Surface& surface = session_->surfaces[static_cast<std::size_t>(index)];
  if (picture.second_field == 0 || surface.serial != serial_) {
    if (surface.place != kNone) {
      Place& reader = places_[static_cast<std::size_t>(surface.place)];
      if (reader.damaged)
        leave(reader);
      else
        map(reader);
    }
    prove(*session_, index);
    surface = {.place = kNone, .unproved = true, .serial = serial_, .run = keys_.runs()};
  }
  device_.check("cuvidDecodePicture", library_.decode(session_->decoder, &picture));
  decoded_ = index;
  return 1;
}

// ---- pictures ----

void VideoDecoder::note_damage(std::uint32_t run, std::uint64_t serial) noexcept {
  for (Place& place : places_) place.damaged = place.damaged || (place.run == run && place.serial >= serial);
  if (run == keys_.runs()) keys_.lost();
}

// Asks how decoding went, once it has: behind a mapped picture that is at once. Those that cannot be asked are
// believed.
void VideoDecoder::prove(Session& session, int index) {
  Session::Surface& surface = session.surfaces[static_cast<std::size_t>(index)];
  if (!std::exchange(surface.unproved, false)) return;
  constexpr std::chrono::microseconds kBetweenLooks{200};
  nvdec::DecodeStatus status{};
  if (library_.status(session.decoder, index, &status) != kSuccess) return;
  while (status.state == nvdec::kDecoding) {
    std::this_thread::sleep_for(kBetweenLooks);
    if (library_.status(session.decoder, index, &status) != kSuccess) return;
  }
  if (status.state == nvdec::kDecodeError || status.state == nvdec::kErrorConcealed)
    note_damage(surface.run, surface.serial);
}

// Waits until it is decoded, as all that were before it are then.
void VideoDecoder::map(Place& place) {
  nvdec::MapParameters p{};
  p.progressive = 1;
  p.stream = device_.stream();
  Session& session = *place.session;
  unsigned long long address = 0;
  device_.check("cuvidMapVideoFrame64", library_.map(session.decoder, place.surface, &address, &place.pitch, &p));
  place.mapped = address;
  session.surfaces[static_cast<std::size_t>(place.surface)].place = kNone;
  place.surface = kNone;
  Event& filled = filled_[static_cast<std::size_t>(&place - places_.data())];
  if (filled == nullptr)
    device_.check("cuEventCreate", device_.cuda().event_create(&filled, kEventBlocking | kEventNoTiming));
  device_.check("cuEventRecord", device_.cuda().event_record(filled, device_.stream()));
  for (unsigned s = 0; s < session.count; ++s)
    if (session.surfaces[s].serial <= place.serial) prove(session, static_cast<int>(s));
}

void VideoDecoder::decode(const leat_access_unit& given) {
  if (given.place >= options_.places) throw Failed(LEAT_DEVICE_FAILED, "there is no such place");
  Place& place = places_[given.place];
  leave(place);
  const leat_access_unit unit = copy_.take(given);
  const UnitKind kind = kind_of(options_.codec, {unit.data, unit.bytes});
  const std::uint32_t runs = keys_.runs();
  if (!keys_.decodable(kind, unit.gap != 0))
    throw Failed(LEAT_DEVICE_FAILED, "access units are missing; there are no pictures before the next key picture");
  ++serial_;
  decoded_ = shown_ = kNone;
  trouble_.reset();
  nvdec::Packet packet{};
  packet.flags = nvdec::kEndOfPicture | nvdec::kTimestamp | (runs != keys_.runs() ? nvdec::kDiscontinuity : 0UL);
  packet.data = unit.data;
  packet.bytes = unit.bytes;
  packet.timestamp = static_cast<long long>(serial_);
  const Status status = library_.parse(parser_, &packet);
  if (trouble_ != nullptr && trouble_->status == LEAT_DEVICE_LOST) throw Failed(*trouble_);
  if (is_lost(status)) device_.check("cuvidParseVideoData", status);
  if (trouble_ != nullptr) give_up(trouble_->what());
  if (keys_.waits()) give_up("an earlier picture is damaged");
  const int index = options_.codec == LEAT_CODEC_av1 ? shown_ : decoded_;
  if (status != kSuccess || session_ == nullptr || index < 0 || static_cast<unsigned>(index) >= session_->count)
    give_up("an access unit has no picture");
  Session::Surface& surface = session_->surfaces[static_cast<std::size_t>(index)];
  if (surface.place != kNone) map(places_[static_cast<std::size_t>(surface.place)]);  // shown once more
  surface.place = static_cast<int>(given.place);
  place.session = session_;
  place.surface = index;
  place.serial = serial_;
  place.run = keys_.runs();
  place.color = color_;
}

leat_decoded VideoDecoder::picture(std::uint32_t index) {
  if (index >= options_.places) throw Failed(LEAT_DEVICE_FAILED, "there is no such place");
  Place& place = places_[index];
  if (place.session != nullptr && place.mapped == 0 && !place.damaged) map(place);
  if (place.session == nullptr || place.damaged) throw Failed(LEAT_DEVICE_FAILED, "its picture could not be decoded");
  leat_decoded out{};
  const auto* const at = reinterpret_cast<const std::uint8_t*>(place.mapped);
  out.planes[0] = at;
  out.planes[1] = at + std::uint64_t{place.pitch} * options_.height;
  out.strides[0] = out.strides[1] = place.pitch;
  out.format = LEAT_FORMAT_nv12;
  out.color_range = place.color.range, out.color_matrix = place.color.matrix;
  out.bytes = std::uint64_t{place.pitch} * options_.height * 3 / 2;
  return out;
}

}  // namespace

std::unique_ptr<Decoder> make_video_decoder(Device& device, const leat_decoder_options& options) {
  return std::make_unique<VideoDecoder>(device, options);
}

}  // namespace leat::cuda
