/* Pixel formats and kinds of slot memory. One table: the C ABI, the control protocol, the pool layout and the
 * pre-processing read it. Values are part of the wire format: append only.
 *
 * LEAT_FORMATS(X): X(name, value, planes, text) */
#ifndef LEAT_FRAME_FORMAT_H
#define LEAT_FRAME_FORMAT_H

#include <stdint.h>

#define LEAT_FORMATS(X)                                                                     \
  X(nv12, 1, 2, "4:2:0, a plane of Y, a plane of interleaved U V at half width and height") \
  X(i420, 2, 3, "4:2:0, planes of Y, U, V; U and V at half width and height")               \
  X(rgb24, 3, 1, "one plane, 3 bytes a pixel: R, G, B")                                     \
  X(bgr24, 4, 1, "one plane, 3 bytes a pixel: B, G, R")                                     \
  X(gray8, 5, 1, "one plane, 1 byte a pixel")                                               \
  X(tensors, 6, 1, "no picture: tensors as the model takes them (leat_tensor_shape), each at a multiple of 64 bytes")

#define LEAT_MAX_PLANES 3

#ifdef __cplusplus
extern "C" {
#endif

typedef enum leat_format {
  LEAT_FORMAT_unknown = 0,
#define X(name, value, planes, text) LEAT_FORMAT_##name = value,
  LEAT_FORMATS(X)
#undef X
} leat_format;

/* What a slot holds. Handles to device memory are not served yet; they keep their place in the descriptors. */
typedef enum leat_slot_memory {
  LEAT_SLOT_HOST = 0,     /* pixels in the stream's frame segment */
  LEAT_SLOT_DEVICE = 1,   /* a handle to device memory */
  LEAT_SLOT_BITSTREAM = 2 /* an access unit in the frame segment, decoded on the serving device */
} leat_slot_memory;

/* How the access units of a LEAT_SLOT_BITSTREAM stream are coded, and the format of the pictures that they become.
 * LEAT_CODECS(X): X(name, value, format, text) */
#define LEAT_CODECS(X)                                                                                \
  X(h264, 1, nv12, "H.264: NAL units behind start codes (Annex B), parameter sets with key pictures") \
  X(hevc, 2, nv12, "HEVC: NAL units behind start codes (Annex B), parameter sets with key pictures")  \
  X(av1, 3, nv12, "AV1: a temporal unit of OBUs with sizes, the sequence header with key pictures")   \
  X(jpeg, 4, rgb24, "JPEG: a whole file, each a key picture")

typedef enum leat_codec {
  LEAT_CODEC_none = 0,
#define X(name, value, format, text) LEAT_CODEC_##name = value,
  LEAT_CODECS(X)
#undef X
} leat_codec;

/* How Y, U and V stand for colors: facts of the frame, as its decoder or camera states them (H.273, V4L2, JFIF).
 * LEAT_COLOR_RANGES(X), LEAT_COLOR_MATRICES(X): X(name, value, text).
 *
 * unspecified, the default: the stream's, where a frame says nothing; then the default rule. Its range is limited for
 * nv12 and i420, full for gray8. Its matrix is bt709 for frames of 720 lines and more, else bt601. JPEG is full range
 * and bt601: a program that decodes it into nv12 or i420 says so. rgb24 and bgr24 have neither: what is said is
 * ignored.
 */
#define LEAT_COLOR_RANGES(X)                                     \
  X(unspecified, 0, "not stated")                                \
  X(limited, 1, "black is Y = 16, white 235; U and V 16 to 240") \
  X(full, 2, "black is Y = 0, white 255; U and V 0 to 255")
#define LEAT_COLOR_MATRICES(X)                                            \
  X(unspecified, 0, "not stated")                                         \
  X(bt601, 1, "BT.601 (SMPTE 170M, BT.470BG): standard definition, JPEG") \
  X(bt709, 2, "BT.709: high definition")                                  \
  X(bt2020, 3, "BT.2020, non-constant luminance: ultra-high definition")

typedef enum leat_color_range {
#define X(name, value, text) LEAT_COLOR_RANGE_##name = value,
  LEAT_COLOR_RANGES(X)
#undef X
} leat_color_range;

typedef enum leat_color_matrix {
#define X(name, value, text) LEAT_COLOR_MATRIX_##name = value,
  LEAT_COLOR_MATRICES(X)
#undef X
} leat_color_matrix;

#ifdef __cplusplus
}
#endif
#endif
