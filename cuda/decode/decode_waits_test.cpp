// Each wait of the decoders, left out once (forgotten_waits.h).
#include <cstring>
#include <vector>

#include "cuda/decode/test_streams.h"
#include "cuda/device/forgotten_waits.h"
#include "leat/frame_format.h"

namespace leat {
namespace {

using test::coded_stream;
using test::CodedStream;

class Decoding : public Scenario {
 public:
  Decoding(std::uint32_t codec, std::uint32_t places) : Scenario(LEAT_PICTURE_MEASURED) {
    for (const char* library : {LEAT_FAKE_NVCUVID, LEAT_FAKE_NVJPEG})
      need(::dlopen(library, RTLD_NOW | RTLD_GLOBAL) != nullptr);
    coded = coded_stream({.codec = codec, .pictures = 2});
    if (coded.units.empty()) ::_exit(kNoEncoder);
    d = open(LEAT_PICTURE_UPLOADED);
    const leat_decoder_options options{codec, coded.width, coded.height, places};
    need(api->decoder_open(d, &options, &decoder, nullptr, 0) == LEAT_DEVICE_OK);
    delays(kWaitDelayUs);
  }
  void decode(std::size_t unit, std::uint32_t place) const {
    const leat_access_unit given{coded.units[unit].data(), coded.units[unit].size(), place, 0};
    need(api->decode(d, decoder, &given, nullptr, 0) == LEAT_DEVICE_OK);
  }
  leat_decoded at(std::uint32_t place) const {
    leat_decoded out{};
    need(api->decoded(d, decoder, place, &out, nullptr, 0) == LEAT_DEVICE_OK);
    return out;
  }
  CodedStream coded;
  leat_decoder* decoder = nullptr;
};

// A picture is unmapped behind the stream that fills it, though nobody has read it.
void a_picture_is_filled_before_it_is_unmapped(int forgotten) {
  Decoding s(LEAT_CODEC_h264, 1);
  s.decode(0, 0);
  (void)s.at(0);
  s.mutate(forgotten);
  s.decode(1, 0);
  s.end(1);
  (void)s.at(0);
  need(s.api->wait(s.d, nullptr, 0) == LEAT_DEVICE_OK);
}

// The copy of a file, and the decoder's state, are the next one's behind the stream that reads them.
void a_file_is_read_before_the_next_is_copied(int forgotten) {
  Decoding s(LEAT_CODEC_jpeg, 2);
  s.decode(0, 0);
  s.decode(0, 1);  // its memory is there
  need(s.api->wait(s.d, nullptr, 0) == LEAT_DEVICE_OK);
  s.decode(0, 0);
  s.mutate(forgotten);
  s.decode(1, 1);
  s.end(1);
  need(s.api->wait(s.d, nullptr, 0) == LEAT_DEVICE_OK);
  const leat_decoded first = s.at(0);
  const std::size_t row_bytes = std::size_t{s.coded.width} * 3;
  for (std::uint32_t y = 0; y < s.coded.height; ++y)
    need(std::memcmp(first.planes[0] + std::size_t{y} * first.strides[0], &s.coded.i420[0][y * row_bytes], row_bytes) ==
         0);
}

// What a decoder has on the stream ends before its memory does.
void a_decoder_ends_behind_its_last_picture(int forgotten) {
  Decoding s(LEAT_CODEC_jpeg, 1);
  s.decode(0, 0);
  need(s.api->wait(s.d, nullptr, 0) == LEAT_DEVICE_OK);
  s.decode(1, 0);
  s.mutate(forgotten);
  s.api->decoder_close(s.d, s.decoder);
  s.end(1);
  need(s.api->wait(s.d, nullptr, 0) == LEAT_DEVICE_OK);
}

INSTANTIATE_TEST_SUITE_P(
    OfDecoders, LeftOut,
    testing::Values(Wait{"APictureIsFilledBeforeItIsUnmapped", a_picture_is_filled_before_it_is_unmapped, 0},
                    Wait{"AFileIsReadBeforeTheNextIsCopied", a_file_is_read_before_the_next_is_copied, 0},
                    Wait{"ADecoderEndsBehindItsLastPicture", a_decoder_ends_behind_its_last_picture, 0}),
    [](const auto& p) { return std::string(p.param.name); });

}  // namespace
}  // namespace leat
