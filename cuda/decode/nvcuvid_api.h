// The part of NVDEC's interface that Leat calls (libnvcuvid.so.1 of the driver: parsers and decoders), in declarations
// of our own. Layouts are those of version 9 of the interface and later, which has kept them; what later versions have
// named of what was reserved is not used. Sizes are asserted, since there is no header here to compare with.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/driver/api.h"

namespace leat::cuda::nvdec {

using Parser = void*;
using Decoder = void*;
using ULong = unsigned long;

enum Codec : int { kH264 = 4, kHevc = 8, kAv1 = 11 };
inline constexpr int kChroma420 = 1;
inline constexpr int kSurfaceNv12 = 0;
inline constexpr int kWeave = 0;
inline constexpr ULong kDedicatedEngines = 4;  // cudaVideoCreate_PreferCUVID
enum PacketFlag : ULong { kTimestamp = 2, kDiscontinuity = 4, kEndOfPicture = 8 };
enum DecodeState : int { kDecoding = 1, kDecoded = 2, kDecodeError = 8, kErrorConcealed = 9 };

struct Rectangle {
  int left, top, right, bottom;
};
struct ShortRectangle {
  short left, top, right, bottom;
};

struct VideoFormat {  // CUVIDEOFORMAT
  int codec;
  unsigned rate_numerator, rate_denominator;
  unsigned char progressive, luma_bits_less_8, chroma_bits_less_8, least_surfaces;
  unsigned coded_width, coded_height;
  Rectangle display;
  int chroma;
  unsigned bit_rate;
  int aspect_x, aspect_y;
  unsigned char signal;                       // three bits of the format, then video_full_range_flag (kFullRange)
  unsigned char primaries, transfer, matrix;  // H.273
  unsigned header_bytes;
};
static_assert(sizeof(VideoFormat) == 64 && offsetof(VideoFormat, display) == 24);

inline constexpr unsigned char kFullRange = 8;  // of VideoFormat::signal

struct Packet {  // CUVIDSOURCEDATAPACKET
  ULong flags, bytes;
  const unsigned char* data;
  long long timestamp;
};
static_assert(sizeof(Packet) == 32);

// Of CUVIDPICPARAMS what comes first, the same for every codec. It is the parser's; the rest goes to the decoder as it
// is.
struct PictureParameters {
  int width_in_blocks, height_in_blocks;
  int picture;  // the surface it is decoded into
  int field, bottom_field, second_field;
  unsigned bytes;
  const unsigned char* data;
};
static_assert(offsetof(PictureParameters, picture) == 8 && offsetof(PictureParameters, data) == 32);

struct Shown {  // CUVIDPARSERDISPINFO
  int picture, progressive, top_field_first, repeat_first_field;
  long long timestamp;
};
static_assert(sizeof(Shown) == 24);

struct ParserParameters {  // CUVIDPARSERPARAMS
  int codec;
  unsigned most_surfaces, clock_rate, error_threshold, display_delay;
  unsigned annex_b;  // AV1's; one bit
  unsigned reserved[4];
  void* user;
  int (*sequence)(void* user, VideoFormat* format);  // 0: failed; above 1: so many surfaces
  int (*decode)(void* user, PictureParameters* picture);
  int (*show)(void* user, Shown* shown);
  void *operating_point, *sei;
  void* reserved2[5];
  void* sequence_header;
};
static_assert(sizeof(ParserParameters) == 136 && offsetof(ParserParameters, user) == 40);

struct Capabilities {  // CUVIDDECODECAPS
  int codec, chroma;
  unsigned bits_less_8;
  unsigned reserved[3];
  unsigned char supported, reserved2[3];
  unsigned max_width, max_height, max_blocks;
  unsigned short min_width, min_height;
  unsigned reserved3[11];
};
static_assert(sizeof(Capabilities) == 88 && offsetof(Capabilities, supported) == 24);

struct DecoderParameters {  // CUVIDDECODECREATEINFO
  ULong width, height, surfaces;
  int codec, chroma;
  ULong flags, bits_less_8, intra_only, max_width, max_height, reserved;
  ShortRectangle display;
  int output, deinterlace;
  ULong target_width, target_height, output_surfaces;
  void* lock;
  ShortRectangle target;
  ULong reserved2[5];
};
static_assert(sizeof(DecoderParameters) == 176 && offsetof(DecoderParameters, display) == 80);

struct MapParameters {  // CUVIDPROCPARAMS
  int progressive, second_field, top_field_first, unpaired_field;
  unsigned flags, zero;
  unsigned long long raw_input;
  unsigned raw_input_pitch, raw_input_format;
  unsigned long long raw_output;
  unsigned raw_output_pitch, reserved;
  Stream stream;
  unsigned reserved2[46];
  void* reserved3[2];
};
static_assert(sizeof(MapParameters) == 264 && offsetof(MapParameters, stream) == 56);

struct DecodeStatus {  // CUVIDGETDECODESTATUS
  int state;
  unsigned reserved[31];
  void* reserved2[8];
};
static_assert(sizeof(DecodeStatus) == 192);

// name in our table, symbol in the library, result and arguments.
#define LEAT_NVDEC_FUNCTIONS(X)                                                                \
  X(capabilities, cuvidGetDecoderCaps, (Capabilities*))                                        \
  X(create, cuvidCreateDecoder, (Decoder*, DecoderParameters*))                                \
  X(destroy, cuvidDestroyDecoder, (Decoder))                                                   \
  X(decode, cuvidDecodePicture, (Decoder, PictureParameters*))                                 \
  X(status, cuvidGetDecodeStatus, (Decoder, int, DecodeStatus*))                               \
  X(map, cuvidMapVideoFrame64, (Decoder, int, unsigned long long*, unsigned*, MapParameters*)) \
  X(unmap, cuvidUnmapVideoFrame64, (Decoder, unsigned long long))                              \
  X(create_parser, cuvidCreateVideoParser, (Parser*, ParserParameters*))                       \
  X(parse, cuvidParseVideoData, (Parser, Packet*))                                             \
  X(destroy_parser, cuvidDestroyVideoParser, (Parser))

}  // namespace leat::cuda::nvdec
