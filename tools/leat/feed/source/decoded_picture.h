// A decoded picture (libavcodec's AVFrame) on its way into a slot: what keeps what it shows, and the copy, conversion
// and turn that write it.
//
// 4:2:0 of any depth stays 4:2:0, in the range that it has. What has more chroma than that (4:2:2, 4:4:4) or is RGB
// becomes rgb24, so that nothing of it is lost. Thread rule: one thread per object. Errors: the end of a line, without
// the source's name.
#pragma once

#include <cstdint>
#include <memory>

extern "C" {
#include <libavcodec/avcodec.h>
}

#include "tools/leat/feed/source/picture_source.h"
#include "tools/leat/feed/source/upright.h"

struct SwsContext;

namespace leat::tools {

// What a decoder says of a picture, or of its pictures before the first one.
struct DecodedForm {
  AVPixelFormat pixels = AV_PIX_FMT_NONE;
  int width = 0, height = 0;  // as stored
  AVColorRange range = AVCOL_RANGE_UNSPECIFIED;
  AVColorSpace matrix = AVCOL_SPC_UNSPECIFIED;
};
[[nodiscard]] DecodedForm form_of(const AVFrame& picture);
[[nodiscard]] DecodedForm form_of(const AVCodecContext& decoder);

// How such pictures are coded, as a decoder of that codec states it.
[[nodiscard]] Coding coding_of(const DecodedForm& form, AVCodecID codec);

// Sets format, width and height of slots for such pictures, shown turned. Sides of 4:2:0 are even: an odd row or column
// at the end is left out.
void set_slots(const DecodedForm& form, const Turn& turn, PictureFormat& format);

class DecodedPictures {
 public:
  DecodedPictures() = default;
  ~DecodedPictures();
  DecodedPictures(const DecodedPictures&) = delete;
  DecodedPictures& operator=(const DecodedPictures&) = delete;
  // Precondition: the slot is as set_slots() says, `coding` is the picture's.
  Status write(const AVFrame& picture, const Coding& coding, const Turn& turn, const leat_frame& slot);

 private:
  // Of the picture as stored, without what set_slots() leaves out.
  Result<const AVFrame*> to_turn(const AVFrame& picture, const Coding& coding, AVPixelFormat to, int width, int height);
  Status convert(const AVFrame& picture, const Coding& coding, AVPixelFormat to, int width, int height,
                 std::uint8_t* const planes[4], const int strides[4]);

  struct Conversion {
    AVPixelFormat from = AV_PIX_FMT_NONE, to = AV_PIX_FMT_NONE;
    int width = 0, height = 0;
    shm::Color color;
    bool operator==(const Conversion&) const = default;
  } conversion_;  // that scaler_ is for
  SwsContext* scaler_ = nullptr;
  AVFrame* stored_ = nullptr;  // converted, before it is turned
  Upright upright_{Turn{}};
  std::unique_ptr<DecodedPictures> lines_;  // makes chroma lines as many as luma's, where that needs a separate step
};

}  // namespace leat::tools
