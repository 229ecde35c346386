// Prints where the members of leat.h's structures lie, one `structure member offset size` a line, and the formats: the
// Python package's test compares its own declarations.
#include <cstddef>
#include <cstdio>

#include "leat/certainty.h"
#include "leat/leat.h"
#include "leat/track_ids.h"

#define MEMBER(structure, member) \
  std::printf("%s %s %zu %zu\n", #structure, #member, offsetof(structure, member), sizeof(structure::member))

int main() {
  MEMBER(leat_connect_options, socket);
  MEMBER(leat_connect_options, name);
  MEMBER(leat_connect_options, timeout_ns);
  MEMBER(leat_connect_options, wait);
  MEMBER(leat_connect_options, reserved);
  MEMBER(leat_stream_options, application);
  MEMBER(leat_stream_options, format);
  MEMBER(leat_stream_options, width);
  MEMBER(leat_stream_options, height);
  MEMBER(leat_stream_options, strides);
  MEMBER(leat_stream_options, depth);
  MEMBER(leat_stream_options, slots);
  MEMBER(leat_stream_options, overload);
  MEMBER(leat_stream_options, priority);
  MEMBER(leat_stream_options, slo_ns);
  MEMBER(leat_stream_options, max_age_ns);
  MEMBER(leat_stream_options, period_ns);
  MEMBER(leat_stream_options, memory);
  MEMBER(leat_stream_options, codec);
  MEMBER(leat_frame, stream);
  MEMBER(leat_frame, slot);
  MEMBER(leat_frame, generation);
  MEMBER(leat_frame, format);
  MEMBER(leat_frame, width);
  MEMBER(leat_frame, height);
  MEMBER(leat_tensor_shape, dtype);
  MEMBER(leat_tensor_shape, rank);
  MEMBER(leat_tensor_shape, dims);
  MEMBER(leat_stream_options, tensors);
  MEMBER(leat_stream_options, tensor_count);
  MEMBER(leat_stream_options, sla_drop_ppm);
  MEMBER(leat_stream_options, task_group);
  MEMBER(leat_stream_options, task_weight);
  MEMBER(leat_stream_options, local_drop_ppm);
  MEMBER(leat_stream_options, waits_for_grants);
  MEMBER(leat_stream_options, name);
  MEMBER(leat_stream_options, color_range);
  MEMBER(leat_stream_options, color_matrix);
  MEMBER(leat_frame, plane_count);
  MEMBER(leat_frame, tensor_count);
  MEMBER(leat_frame, reserved);
  MEMBER(leat_frame, tensors);
  MEMBER(leat_frame, tensor_bytes);
  MEMBER(leat_frame, color_range);
  MEMBER(leat_frame, color_matrix);
  MEMBER(leat_answer, result_bytes);
  MEMBER(leat_frame, planes);
  MEMBER(leat_frame, strides);
  MEMBER(leat_frame, rows);
  MEMBER(leat_frame, row_bytes);
  MEMBER(leat_frame, bytes);
  MEMBER(leat_submit_options, capture_ns);
  MEMBER(leat_submit_options, deadline_ns);
  MEMBER(leat_submit_options, cookie);
  MEMBER(leat_submit_options, key);
  MEMBER(leat_submit_options, items);
  MEMBER(leat_submit_options, flags);
  MEMBER(leat_submit_options, bytes);
  MEMBER(leat_submit_options, color_range);
  MEMBER(leat_submit_options, color_matrix);
  MEMBER(leat_answer, stream);
  MEMBER(leat_answer, ticket);
  MEMBER(leat_answer, cookie);
  MEMBER(leat_answer, outcome);
  MEMBER(leat_answer, reason);
  MEMBER(leat_answer, flags);
  MEMBER(leat_answer, reserved);
  MEMBER(leat_answer, slot);
  MEMBER(leat_answer, generation);
  MEMBER(leat_answer, where);
  MEMBER(leat_answer, capture_ns);
  MEMBER(leat_answer, deadline_ns);
  MEMBER(leat_answer, answered_ns);
  MEMBER(leat_answer, result);
  MEMBER(leat_track_ids_options, min_score);
  MEMBER(leat_track_ids_options, high_score);
  MEMBER(leat_track_ids_options, new_score);
  MEMBER(leat_track_ids_options, class_count);
  MEMBER(leat_track_ids_options, classes);
  MEMBER(leat_track_ids_options, lost_ns);
  MEMBER(leat_track_ids_options, any_class);
  MEMBER(leat_track_ids_options, reserved);
  MEMBER(leat_certainty, tracker);
  MEMBER(leat_certainty, asks);
  MEMBER(leat_certainty, weight);
  MEMBER(leat_label, head);
  MEMBER(leat_label, class_id);
  MEMBER(leat_label, score);
  std::printf("leat_detection box %zu %zu\n", offsetof(leat_detection, x0), 4 * sizeof(float));
  MEMBER(leat_detection, score);
  MEMBER(leat_detection, class_id);
  MEMBER(leat_detection, label_count);
  MEMBER(leat_detection, reserved);
  MEMBER(leat_detection, labels);
  MEMBER(leat_class, class_id);
  MEMBER(leat_class, score);
  MEMBER(leat_result, version);
  MEMBER(leat_result, kind);
  MEMBER(leat_result, detection_count);
  MEMBER(leat_result, detections_left_out);
  MEMBER(leat_result, class_count);
  MEMBER(leat_result, frame_width);
  MEMBER(leat_result, frame_height);
  MEMBER(leat_result, part_count);
  MEMBER(leat_result, checksum);
  MEMBER(leat_result, model_version);
  MEMBER(leat_result, flags);
  MEMBER(leat_result, reserved1);
  MEMBER(leat_result, classes);
  MEMBER(leat_result, detections);
  MEMBER(leat_part, kind);
  MEMBER(leat_part, module);
  MEMBER(leat_part, item);
  MEMBER(leat_part, dtype);
  MEMBER(leat_part, rank);
  MEMBER(leat_part, dims);
  MEMBER(leat_part, offset);
  MEMBER(leat_part, bytes);
  MEMBER(leat_part, name);
  MEMBER(leat_oriented_box, cx);
  MEMBER(leat_oriented_box, cy);
  MEMBER(leat_oriented_box, width);
  MEMBER(leat_oriented_box, height);
  MEMBER(leat_oriented_box, angle);
  MEMBER(leat_oriented_box, score);
  MEMBER(leat_oriented_box, class_id);
  MEMBER(leat_oriented_box, reserved);
  MEMBER(leat_keypoint, x);
  MEMBER(leat_keypoint, y);
  MEMBER(leat_keypoint, score);
  MEMBER(leat_text, quad);
  MEMBER(leat_text, score);
  MEMBER(leat_text, offset);
  MEMBER(leat_text, length);
  MEMBER(leat_text, reserved);
  std::printf("leat_box box %zu %zu\n", offsetof(leat_box, x0), 4 * sizeof(float));
  MEMBER(leat_box, score);
  MEMBER(leat_box, class_id);
  MEMBER(leat_box, reserved);
  std::printf("leat_mask box %zu %zu\n", offsetof(leat_mask, x0), 4 * sizeof(float));
  MEMBER(leat_mask, width);
  MEMBER(leat_mask, height);
  MEMBER(leat_mask, offset);
  MEMBER(leat_mask, bytes);
#define X(name, value, bytes, text) std::printf("dtype %s %d %d\n", text, value, bytes);
  LEAT_DTYPES(X)
#undef X
#define X(name, value, planes, text) std::printf("format %s %d 0\n", #name, value);
  LEAT_FORMATS(X)
#undef X
}
