#include "cuda/decode/decoder.h"

#include "cuda/decode/libraries.h"
#include "leat/frame_format.h"

namespace leat::cuda {

std::unique_ptr<Decoder> make_decoder(Device& device, const leat_decoder_options& options) {
  constexpr std::uint32_t kMostPlaces = 32;
  if (options.codec >= 32 || (device.info().codecs >> options.codec & 1u) == 0)
    throw Failed(LEAT_DEVICE_FAILED, "this device does not decode streams of codec " + std::to_string(options.codec) +
                                         "; see codecs in `leat status --json`");
  if (options.places == 0 || options.places > kMostPlaces)
    throw Failed(LEAT_DEVICE_FAILED, "a decoder keeps 1 to 32 pictures; open the stream with fewer slots");
  return options.codec == LEAT_CODEC_jpeg ? make_jpeg_decoder(device, options) : make_video_decoder(device, options);
}

leat_access_unit UnitCopy::take(const leat_access_unit& unit) {
  bytes_.assign(unit.data, unit.data + unit.bytes);
  return {bytes_.data(), unit.bytes, unit.place, unit.gap};
}

}  // namespace leat::cuda
