// JPEG by nvJPEG: each file into a place's own memory, as interleaved RGB, whatever its chroma was.
#include "cuda/decode/access_unit.h"
#include "cuda/decode/decoder.h"
#include "cuda/decode/libraries.h"
#include "leat/frame_format.h"

namespace leat::cuda {
namespace {

constexpr std::uint32_t kRowAlignment = 64;

class JpegDecoder final : public Decoder {
 public:
  JpegDecoder(Device& device, const leat_decoder_options& options)
      : device_(device), nvjpeg_(*nvjpeg_library()), options_(options), places_(options.places) {
    stride_ = (options.width * 3 + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
    if (nvjpeg_.create(&handle_) != nvjpeg::kDone || nvjpeg_.create_state(handle_, &state_) != nvjpeg::kDone) {
      if (handle_ != nullptr) (void)nvjpeg_.destroy(handle_);
      throw Failed(LEAT_DEVICE_FAILED, "nvJPEG does not start; see the driver's log");
    }
    if (device.cuda().event_create(&read_, kEventBlocking | kEventNoTiming) != kSuccess) read_ = nullptr;
  }
  ~JpegDecoder() override {
    if (pending_) (void)device_.cuda().event_wait(read_);
    for (Place& place : places_) device_.release(place.memory);
    if (read_ != nullptr) (void)device_.cuda().event_destroy(read_);
    (void)nvjpeg_.destroy_state(state_);
    (void)nvjpeg_.destroy(handle_);
  }

  void decode(const leat_access_unit& given) override {
    Place& place = places_.at(given.place);
    place.there = false;
    // The state and the copy are what the file before is decoded from.
    if (pending_) device_.check("cuEventSynchronize", device_.cuda().event_wait(read_));
    pending_ = false;
    const leat_access_unit unit = copy_.take(given);
    int components = 0, subsampling = 0, widths[nvjpeg::kMaxComponents]{}, heights[nvjpeg::kMaxComponents]{};
    if (kind_of(options_.codec, {unit.data, unit.bytes}) == UnitKind::none ||
        nvjpeg_.info(handle_, unit.data, unit.bytes, &components, &subsampling, widths, heights) != nvjpeg::kDone)
      throw Failed(LEAT_DEVICE_FAILED, "a frame is no JPEG file");
    if (widths[0] != static_cast<int>(options_.width) || heights[0] != static_cast<int>(options_.height))
      throw Failed(LEAT_DEVICE_FAILED, "a JPEG has " + std::to_string(widths[0]) + "x" + std::to_string(heights[0]) +
                                           " pixels, its stream was opened for " + std::to_string(options_.width) +
                                           "x" + std::to_string(options_.height));
    if (place.memory.address == nullptr)
      place.memory = device_.allocate(std::uint64_t{stride_} * options_.height, false);
    nvjpeg::Image image{};
    image.channel[0] = static_cast<unsigned char*>(place.memory.address);
    image.pitch[0] = stride_;
    const nvjpeg::Status status =
        nvjpeg_.decode(handle_, state_, unit.data, unit.bytes, nvjpeg::kInterleavedRgb, &image, device_.stream());
    if (status != nvjpeg::kDone)
      throw Failed(LEAT_DEVICE_FAILED, "a JPEG cannot be decoded: nvJPEG's status " + std::to_string(status));
    device_.check("cuEventRecord", device_.cuda().event_record(read_, device_.stream()));
    pending_ = true;
    place.there = true;
  }

  leat_decoded picture(std::uint32_t index) override {
    const Place& place = places_.at(index);
    if (!place.there) throw Failed(LEAT_DEVICE_FAILED, "its JPEG was no picture");
    leat_decoded out{};
    out.planes[0] = static_cast<const std::uint8_t*>(place.memory.address);
    out.strides[0] = stride_;
    out.format = LEAT_FORMAT_rgb24;
    out.bytes = std::uint64_t{stride_} * options_.height;
    return out;
  }

 private:
  struct Place {
    leat_device_memory memory{};
    bool there = false;
  };
  Device& device_;
  const Nvjpeg& nvjpeg_;
  leat_decoder_options options_;
  std::uint32_t stride_ = 0;
  nvjpeg::Handle handle_ = nullptr;
  nvjpeg::State state_ = nullptr;
  Event read_ = nullptr;
  bool pending_ = false;
  std::vector<Place> places_;
  UnitCopy copy_;
};

}  // namespace

std::unique_ptr<Decoder> make_jpeg_decoder(Device& device, const leat_decoder_options& options) {
  return std::make_unique<JpegDecoder>(device, options);
}

}  // namespace leat::cuda
