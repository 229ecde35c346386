// The C functions of leat/track_ids.h.
#include <algorithm>
#include <memory>
#include <new>

#include "shm/src/client/client_errors.h"
#include "shm/src/tracks/track_ids.h"

struct leat_track_ids {
  leat::tracks::TrackIds tracks;
};

extern "C" {

void leat_track_ids_options_init(leat_track_ids_options* options) {
  const leat::tracks::Settings usual;
  *options = {};
  options->min_score = usual.min_score;
  options->high_score = usual.high_score;
  options->new_score = usual.new_score;
  options->lost_ns = usual.lost_ns;
}

leat_error leat_track_ids_create(const leat_track_ids_options* options, leat_track_ids** out) try {
  leat_track_ids_options usual;
  leat_track_ids_options_init(&usual);
  const leat_track_ids_options& o = options != nullptr ? *options : usual;
  const auto wrong = [](const char* text) { return leat::shm::fail(LEAT_ERROR_invalid_argument, text); };
  if (!(o.min_score >= 0 && o.min_score <= o.high_score && o.high_score <= o.new_score && o.new_score <= 1))
    return wrong("scores of tracks must be 0 <= min_score <= high_score <= new_score <= 1");
  if (o.lost_ns < 0) return wrong("lost_ns must be 0 or more");
  if (o.class_count > 0 && o.classes == nullptr) return wrong("classes is NULL, but class_count is not 0");
  leat::tracks::Settings settings{.min_score = o.min_score,
                                  .high_score = o.high_score,
                                  .new_score = o.new_score,
                                  .classes = {},
                                  .lost_ns = o.lost_ns,
                                  .any_class = o.any_class != 0};
  settings.classes.assign(o.classes, o.classes + o.class_count);
  std::sort(settings.classes.begin(), settings.classes.end());
  *out = std::make_unique<leat_track_ids>(leat_track_ids{leat::tracks::TrackIds(std::move(settings))}).release();
  return LEAT_ERROR_ok;
} catch (const std::bad_alloc&) {
  return leat::shm::fail_static(LEAT_ERROR_no_memory);
}

void leat_track_ids_destroy(leat_track_ids* tracks) { delete tracks; }

leat_error leat_track_ids_update(leat_track_ids* tracks, int64_t capture_ns, const leat_detection* detections,
                                 uint32_t count, uint64_t* ids) try {
  tracks->tracks.update(capture_ns, {detections, count}, {ids, count});
  return LEAT_ERROR_ok;
} catch (const std::bad_alloc&) {
  return leat::shm::fail_static(LEAT_ERROR_no_memory);
}

}  // extern "C"
