/* The result of one frame, as post-processing writes it and the client reads it: one fixed block of 8192 bytes in a
 * result slot. The client sees it read-only. Coordinates are pixels of the client's frame (not of the model's input),
 * origin top left, x1 and y1 exclusive, clipped to the frame.
 *
 * Writers: the worker that runs the detector (or a top-k classifier) fills the header and its array; the worker that
 * runs a later module on detection i appends to detections[i].labels only, so different detections may be labelled by
 * different workers at once. The daemon makes the whole visible by pushing the completion; no reader looks earlier.
 * Part of the wire format: change LEAT_RESULT_VERSION with the layout. */
#ifndef LEAT_RESULT_TYPES_H
#define LEAT_RESULT_TYPES_H

#include <stdint.h>

#define LEAT_RESULT_VERSION 1u
#define LEAT_MAX_DETECTIONS 100
#define LEAT_MAX_LABELS 4
#define LEAT_MAX_CLASSES 16

#ifdef __cplusplus
extern "C" {
#endif

/* What a frame's final module answered. */
typedef enum leat_result_kind {
  LEAT_RESULT_NONE = 0,        /* nothing was written (dropped, rejected, failed) */
  LEAT_RESULT_DETECTIONS = 1,  /* detections[0..detection_count) */
  LEAT_RESULT_CLASSES = 2,     /* classes[0..class_count), best first */
  LEAT_RESULT_CHECKSUM = 3     /* `checksum` of the input's bytes (the emulated executor) */
} leat_result_kind;

/* One label a later module gave to a detection. */
typedef struct leat_label {
  uint32_t head;     /* which of the module's outputs: for `shapes`, 0 = shape, 1 = colour */
  int32_t class_id;  /* index into that head's names */
  float score;       /* 0..1 */
} leat_label;

typedef struct leat_detection {
  float x0, y0, x1, y1; /* frame pixels */
  float score;          /* 0..1 */
  int32_t class_id;
  uint32_t label_count; /* labels[0..label_count) */
  uint32_t reserved;
  leat_label labels[LEAT_MAX_LABELS];
} leat_detection;

typedef struct leat_class {
  int32_t class_id;
  float score;
} leat_class;

typedef struct leat_result {
  uint32_t version;            /* LEAT_RESULT_VERSION */
  uint32_t kind;               /* leat_result_kind */
  uint32_t detection_count;
  uint32_t detections_left_out; /* found, but over LEAT_MAX_DETECTIONS or the application's fan-out cap */
  uint32_t class_count;
  uint32_t frame_width, frame_height;
  uint32_t reserved0;
  uint64_t checksum;
  uint64_t reserved1[3];
  leat_class classes[LEAT_MAX_CLASSES];
  leat_detection detections[LEAT_MAX_DETECTIONS]; /* best score first */
} leat_result;

#ifdef __cplusplus
}
static_assert(sizeof(leat_label) == 12 && sizeof(leat_detection) == 80 && sizeof(leat_class) == 8);
static_assert(sizeof(leat_result) == 8192, "a result slot is two pages");
#endif
#endif
