/* Reading the parts of a result, with every bound checked: a view is given only where the directory entry, its
 * dimensions and its bytes lie within the slot and agree with each other.
 *
 *   leat_part_view view;
 *   for (uint32_t i = 0; leat_part_at(answer.result, answer.result_bytes, i, &view); ++i)
 *     if (view.kind == LEAT_PART_text) ...
 *
 * Ownership: views point into the result slot and are valid until leat_release(). Thread rule: pure functions. Errors:
 * 0 (false) and an empty view. */
#ifndef LEAT_RESULT_PARTS_H
#define LEAT_RESULT_PARTS_H

#include <stddef.h>
#include <string.h>

#include "leat/result_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct leat_part_view {
  const void* data; /* 64-byte aligned */
  const char* name; /* NUL-terminated */
  uint64_t bytes;
  uint64_t count; /* product of dims[0..rank) */
  uint32_t kind;  /* leat_part_kind, never none */
  uint32_t item;  /* leat_part_item */
  uint32_t module;
  uint32_t dtype;
  uint32_t rank;
  uint32_t dims[4]; /* for LEAT_ITEM_EACH the first is cut to the detections there are */
} leat_part_view;

/* Bytes of one element of a part's array; 0: kind or dtype is unknown. */
static inline uint64_t leat_part_element_bytes(uint32_t kind, uint32_t dtype) {
  switch (kind) {
    case LEAT_PART_boxes:
      return sizeof(leat_box);
    case LEAT_PART_oriented:
      return sizeof(leat_oriented_box);
    case LEAT_PART_keypoints:
      return sizeof(leat_keypoint);
    case LEAT_PART_masks:
      return sizeof(leat_mask);
    case LEAT_PART_text:
      return sizeof(leat_text);
    case LEAT_PART_classes:
      return sizeof(leat_class);
    case LEAT_PART_embedding:
    case LEAT_PART_map:
    case LEAT_PART_tensor:
      return leat_dtype_bytes(dtype);
    default:
      return 0;
  }
}

/* Directory entry `index` of a result in `room` bytes. 0: there is none, nothing was written for it, or it is not
 * sound. Entries that were not written are skipped by leat_next_part(). */
static inline int leat_part_at(const leat_result* result, uint64_t room, uint32_t index, leat_part_view* out) {
  leat_part part;
  uint64_t count = 1, element;
  uint32_t d;
  memset(out, 0, sizeof *out);
  if (result == NULL || room < LEAT_PAYLOAD_OFFSET || index >= LEAT_MAX_PARTS || index >= result->part_count) return 0;
  memcpy(&part, (const char*)result + LEAT_PARTS_OFFSET + index * sizeof part, sizeof part);
  element = leat_part_element_bytes(part.kind, part.dtype);
  if (element == 0 || part.rank > 4 || part.offset < LEAT_PAYLOAD_OFFSET || part.offset % 64 != 0) return 0;
  if (part.offset > room || part.bytes > room - part.offset || part.name[LEAT_PART_NAME_BYTES - 1] != '\0') return 0;
  if (part.item == LEAT_ITEM_EACH && part.rank > 0 && result->kind == LEAT_RESULT_DETECTIONS &&
      part.dims[0] > result->detection_count)
    part.dims[0] = result->detection_count;
  for (d = 0; d < part.rank; ++d) {
    if (part.dims[d] != 0 && count > room / part.dims[d]) return 0;
    count *= part.dims[d];
  }
  if (count > part.bytes / element) return 0;
  out->data = (const char*)result + part.offset;
  out->name = (const char*)result + LEAT_PARTS_OFFSET + index * sizeof part + offsetof(leat_part, name);
  out->bytes = part.bytes;
  out->count = count;
  out->kind = part.kind, out->item = part.item, out->module = part.module, out->dtype = part.dtype;
  out->rank = part.rank;
  memcpy(out->dims, part.dims, sizeof out->dims);
  return 1;
}

/* The next sound part from *index on; *index is then the one behind it. 0: no more.
 * Start with uint32_t index = 0. */
static inline int leat_next_part(const leat_result* result, uint64_t room, uint32_t* index, leat_part_view* out) {
  while (result != NULL && *index < result->part_count && *index < LEAT_MAX_PARTS)
    if (leat_part_at(result, room, (*index)++, out)) return 1;
  memset(out, 0, sizeof *out);
  return 0;
}

/* The first part of a kind; name NULL: of any name. */
static inline int leat_find_part(const leat_result* result, uint64_t room, uint32_t kind, const char* name,
                                 leat_part_view* out) {
  uint32_t i = 0;
  while (leat_next_part(result, room, &i, out))
    if (out->kind == kind && (name == NULL || strncmp(name, out->name, LEAT_PART_NAME_BYTES - 1) == 0)) return 1;
  return 0;
}

/* Text `row` of a text part: its UTF-8, not NUL-terminated, and its length. NULL: no such row, or not sound. */
static inline const char* leat_text_at(const leat_part_view* part, uint32_t row, leat_text* out) {
  memset(out, 0, sizeof *out);
  if (part->kind != LEAT_PART_text || row >= part->count) return NULL;
  memcpy(out, (const char*)part->data + row * sizeof *out, sizeof *out);
  if (out->offset > part->bytes || out->length > part->bytes - out->offset) {
    memset(out, 0, sizeof *out);
    return NULL;
  }
  return (const char*)part->data + out->offset;
}

/* The bits of mask `row`: `height` rows of (width + 7) / 8 bytes. NULL: no such row, or not sound. */
static inline const uint8_t* leat_mask_at(const leat_part_view* part, uint32_t row, leat_mask* out) {
  memset(out, 0, sizeof *out);
  if (part->kind != LEAT_PART_masks || row >= part->count) return NULL;
  memcpy(out, (const char*)part->data + row * sizeof *out, sizeof *out);
  if (out->offset > part->bytes || out->bytes > part->bytes - out->offset || out->width > 65535 ||
      (uint64_t)out->height * ((out->width + 7) / 8) > out->bytes) {
    memset(out, 0, sizeof *out);
    return NULL;
  }
  return (const uint8_t*)part->data + out->offset;
}

#ifdef __cplusplus
}
#endif
#endif
