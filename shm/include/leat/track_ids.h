/* Which detection is which object: an identity for every detection of a stream's answers, by where the boxes are.
 *
 * Two passes over each answer, after Zhang et al., "ByteTrack: Multi-Object Tracking by Associating Every Detection
 * Box" (2022), algorithm 1: what is known is matched with the sure detections first and then with the doubtful ones,
 * so that an object that is half hidden keeps its identity and a doubtful detection begins none. Between answers boxes
 * move on by a Kalman filter, in time and not in frames: answers that are dropped leave no more than a longer step.
 *
 *   leat_track_ids* tracks;         leat_track_ids_create(NULL, &tracks);      one for each stream
 *   uint64_t ids[LEAT_MAX_DETECTIONS];
 *   leat_track_ids_update(tracks, answer.capture_ns, answer.result->detections, answer.result->detection_count, ids);
 *
 * Ownership: everything is copied. Thread rule: one thread at a time for each leat_track_ids; it needs no client, and
 * no leatd. Errors: a leat_error, its text from leat_last_error(). */
#ifndef LEAT_TRACK_IDS_H
#define LEAT_TRACK_IDS_H

#include <stdint.h>

#include "leat/leat.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct leat_track_ids leat_track_ids;

typedef struct leat_track_ids_options {
  float min_score;        /* what scores less has no identity */
  float high_score;       /* from here on a detection is sure; below it only continues what is known */
  float new_score;        /* from here on a detection may be a new object */
  uint32_t class_count;   /* of `classes`; 0: every class */
  const int32_t* classes; /* those that have identities; read by leat_track_ids_create */
  int64_t lost_ns;        /* how long an object that is not seen is waited for */
  uint32_t any_class;     /* not 0: an object may be of one class now and of another later */
  uint32_t reserved;      /* 0 */
} leat_track_ids_options;

/* Scores .1, .6 and .7, every class, one second (the paper's: 30 frames at 30 a second), classes apart. */
LEAT_API void leat_track_ids_options_init(leat_track_ids_options* options);
/* `options` may be NULL. On LEAT_ERROR_ok *out is the caller's (leat_track_ids_destroy). */
LEAT_API leat_error leat_track_ids_create(const leat_track_ids_options* options, leat_track_ids** out);
LEAT_API void leat_track_ids_destroy(leat_track_ids* tracks); /* NULL is allowed */
/* ids[i] is that of detections[i]: from 1 on, never given twice; 0: it has none. An object has one from the second time
 * on that it is seen, in the first answer of all at once. `capture_ns` is the frame's (leat_answer), in any order: an
 * answer about an older frame than the last one's is given the identities of that time, and changes nothing. */
LEAT_API leat_error leat_track_ids_update(leat_track_ids* tracks, int64_t capture_ns, const leat_detection* detections,
                                          uint32_t count, uint64_t* ids);

#ifdef __cplusplus
}
#endif
#endif
