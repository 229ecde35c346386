/* The result of one frame, as post-processing writes it and the client reads it, read-only: a head of 8192 bytes, and
 * behind it, where the application's models answer more than the head holds, a directory of up to 16 parts and their
 * payload. A result slot's size is settled when the models are loaded; leat_answer says the room of a slot.
 *
 *   [0, 8192)      leat_result: detections, classes, checksum
 *   [8192, 9472)   leat_part[LEAT_MAX_PARTS], of which the first part_count are used
 *   [9472, ...)    payload: part p is bytes [parts[p].offset, + parts[p].bytes) of the slot
 *
 * Coordinates are pixels of the client's frame (not of the model's input), origin top left, x1 and y1 exclusive; boxes
 * are clipped to the frame. Read parts with leat_part_at() (result_parts.h), which checks every bound.
 *
 * Writers: the worker that runs the detector (or a top-k classifier) fills the header and its array; the worker that
 * runs a later module on detection i appends to detections[i].labels only, so different detections may be labelled by
 * different workers at once. A part has one module that writes it; where a part has a row for each detection, row i is
 * written by whoever runs that module on detections[i]. The daemon makes the whole visible by pushing the completion;
 * no reader looks earlier. Part of the wire format: change LEAT_RESULT_VERSION with the layout. */
#ifndef LEAT_RESULT_TYPES_H
#define LEAT_RESULT_TYPES_H

#include <stdint.h>

#include "leat/tensor_types.h"

#define LEAT_RESULT_VERSION 2u
#define LEAT_MAX_DETECTIONS 100
#define LEAT_MAX_LABELS 4
#define LEAT_MAX_CLASSES 16
#define LEAT_MAX_PARTS 16
#define LEAT_PART_NAME_BYTES 32

#ifdef __cplusplus
extern "C" {
#endif

/* What a frame's final module answered. */
typedef enum leat_result_kind {
  LEAT_RESULT_NONE = 0,       /* nothing was written (dropped, rejected, failed) */
  LEAT_RESULT_DETECTIONS = 1, /* detections[0..detection_count) */
  LEAT_RESULT_CLASSES = 2,    /* classes[0..class_count), best first */
  LEAT_RESULT_CHECKSUM = 3,   /* `checksum` of the input's bytes (the emulated executor) */
  LEAT_RESULT_PARTS = 4       /* the parts alone */
} leat_result_kind;

/* leat_result.flags. */
/* Some of the model's numbers were NaN or infinite: boxes, points, labels and cells that they decide are left out, and
 * tensors hold them as they are. Where nothing was left the frame is failed(not_finite). */
#define LEAT_RESULT_NOT_FINITE 1u

/* What a part's payload is. LEAT_PART_KINDS(X): X(name, value, text) */
#define LEAT_PART_KINDS(X)                                                                     \
  X(none, 0, "nothing was written for this frame")                                             \
  X(boxes, 1, "leat_box[dims[0]], best first")                                                 \
  X(oriented, 2, "leat_oriented_box[dims[0]], best first")                                     \
  X(keypoints, 3, "leat_keypoint[dims[0]][dims[1]]: objects, points of each")                  \
  X(masks, 4, "leat_mask[dims[0]], then their bits")                                           \
  X(text, 5, "leat_text[dims[0]], then their UTF-8")                                           \
  X(classes, 6, "leat_class[dims[0]][dims[1]], best first; a zero score fills up")             \
  X(embedding, 7, "values of `dtype` in `dims`: one vector, or one a detection")               \
  X(map, 8, "values of `dtype` in `dims`, the last two height and width; it covers the frame") \
  X(tensor, 9, "values of `dtype` in `dims`, as the model gave them, without the batch")

typedef enum leat_part_kind {
#define X(name, value, text) LEAT_PART_##name = value,
  LEAT_PART_KINDS(X)
#undef X
} leat_part_kind;

typedef enum leat_part_item {
  LEAT_ITEM_FRAME = 0, /* about the whole frame */
  LEAT_ITEM_EACH = 1   /* its first dimension goes over detections: row i belongs to detections[i] */
} leat_part_item;

/* One entry of the directory. */
typedef struct leat_part {
  uint16_t kind;    /* leat_part_kind */
  uint16_t module;  /* which of the application's modules wrote it */
  uint32_t item;    /* leat_part_item */
  uint32_t dtype;   /* leat_dtype, where kind says so; else 0 */
  uint32_t rank;    /* used dims, 0..4. A tensor of more dimensions has its leading ones multiplied into the first */
  uint32_t dims[4]; /* as written for this frame */
  uint64_t offset;  /* from the result's first byte, a multiple of 64 */
  uint64_t bytes;   /* written for this frame */
  char name[LEAT_PART_NAME_BYTES]; /* of the model's output or the answer, NUL-terminated, cut to fit */
} leat_part;

/* Elements of parts. */
typedef struct leat_box {
  float x0, y0, x1, y1; /* frame pixels */
  float score;          /* 0..1 */
  int32_t class_id;
  uint32_t reserved[2];
} leat_box;

typedef struct leat_oriented_box {
  float cx, cy, width, height; /* frame pixels */
  float angle;                 /* radians from the frame's x axis to the width's side, clockwise on the screen */
  float score;
  int32_t class_id;
  uint32_t reserved;
} leat_oriented_box;

typedef struct leat_keypoint {
  float x, y; /* frame pixels; not clipped */
  float score;
} leat_keypoint;

typedef struct leat_mask {
  float x0, y0, x1, y1;   /* frame pixels that the grid of bits covers */
  uint32_t width, height; /* of the grid; a row begins with a byte of its own, bit 0 first */
  uint32_t offset, bytes; /* of the bits, from the part's first byte */
} leat_mask;

typedef struct leat_text {
  float quad[8];           /* corners in frame pixels, from the text's top left on, clockwise: x0 y0 x1 y1 ... */
  float score;             /* 0..1 */
  uint32_t offset, length; /* of the UTF-8 from the part's first byte, in bytes, without a NUL */
  uint32_t reserved;
} leat_text;

/* One label a later module gave to a detection. */
typedef struct leat_label {
  uint32_t head;    /* which of the application's labelling outputs: for `shapes`, 0 = shape, 1 = colour */
  int32_t class_id; /* index into that head's names */
  float score;      /* 0..1 */
} leat_label;

typedef struct leat_detection {
  float x0, y0, x1, y1; /* frame pixels */
  float score;          /* 0..1 */
  int32_t class_id;
  uint32_t label_count; /* labels[0..label_count), in no order */
  uint32_t reserved;    /* the workers': whose each label is */
  leat_label labels[LEAT_MAX_LABELS];
} leat_detection;

typedef struct leat_class {
  int32_t class_id;
  float score;
} leat_class;

typedef struct leat_result {
  uint32_t version; /* LEAT_RESULT_VERSION */
  uint32_t kind;    /* leat_result_kind */
  uint32_t detection_count;
  uint32_t detections_left_out; /* found, but over LEAT_MAX_DETECTIONS */
  uint32_t class_count;
  uint32_t frame_width, frame_height;
  uint32_t part_count; /* entries of the directory behind this head */
  uint64_t checksum;
  /* Which version of the application's models answered: the first 64 bits of the model file's SHA-256 (with several
   * models, or weights in files of their own, of all their hashes: `leat status --json`). 0: it has no model file */
  uint64_t model_version;
  uint32_t flags; /* LEAT_RESULT_NOT_FINITE, or 0 */
  uint32_t reserved1[3];
  leat_class classes[LEAT_MAX_CLASSES];
  leat_detection detections[LEAT_MAX_DETECTIONS]; /* best score first */
} leat_result;

#define LEAT_PARTS_OFFSET 8192u   /* of the directory */
#define LEAT_PAYLOAD_OFFSET 9472u /* of the payload */

#ifdef __cplusplus
}
static_assert(sizeof(leat_label) == 12 && sizeof(leat_detection) == 80 && sizeof(leat_class) == 8);
static_assert(sizeof(leat_result) == LEAT_PARTS_OFFSET, "the head is two pages");
static_assert(sizeof(leat_part) == 80 && LEAT_PARTS_OFFSET + LEAT_MAX_PARTS * sizeof(leat_part) == LEAT_PAYLOAD_OFFSET);
static_assert(sizeof(leat_box) == 32 && sizeof(leat_oriented_box) == 32 && sizeof(leat_keypoint) == 12);
static_assert(sizeof(leat_mask) == 32 && sizeof(leat_text) == 48);
#endif
#endif
