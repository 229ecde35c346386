// A stream's decoder behind leat_decoder (engine/exec/device.h): NVDEC's for video, nvJPEG's for JPEG. Thread rule and
// errors: the device's; a failed call throws Failed.
#pragma once

#include <memory>
#include <vector>

#include "cuda/device/device.h"

namespace leat::cuda {

class Decoder {
 public:
  virtual ~Decoder() = default;
  // unit.data is ours by now.
  virtual void decode(const leat_access_unit& unit) = 0;
  virtual leat_decoded picture(std::uint32_t place) = 0;
};

std::unique_ptr<Decoder> make_video_decoder(Device& device, const leat_decoder_options& options);
std::unique_ptr<Decoder> make_jpeg_decoder(Device& device, const leat_decoder_options& options);
std::unique_ptr<Decoder> make_decoder(Device& device, const leat_decoder_options& options);

// An access unit out of memory that its client may still write.
class UnitCopy {
 public:
  leat_access_unit take(const leat_access_unit& unit);

 private:
  std::vector<std::uint8_t> bytes_;
};

}  // namespace leat::cuda
