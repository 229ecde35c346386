/* The same camera loop in C. Usage: camera [SOCKET] [PICTURES] */
#include <leat/leat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed(void) {
  fprintf(stderr, "%s\n", leat_last_error()); /* one line: what went wrong and what to do */
  return 1;
}

int main(int argc, char** argv) {
  leat_connect_options where = {.socket = argc > 1 ? argv[1] : NULL, .name = "camera"};
  leat_client* client;
  leat_stream* stream;
  leat_stream_options options;
  int left = argc > 2 ? atoi(argv[2]) : 100;
  if (leat_connect(&where, &client) != LEAT_ERROR_ok) return failed();
  leat_stream_options_init(&options);
  options.application = "shapes";
  options.format = LEAT_FORMAT_rgb24;
  options.width = 640, options.height = 360;
  options.waits_for_grants = 1;
  if (leat_open_stream(client, &options, &stream) != LEAT_ERROR_ok) return failed();

  for (; left > 0; --left) {
    leat_frame frame;
    leat_answer answer;
    /* At once, unless more comes than can be served: then when it is its turn. */
    leat_wait_wanted(stream, 0, 1000000000);
    if (leat_acquire(stream, &frame) == LEAT_ERROR_ok) { /* else every slot is in use: skip this picture */
      leat_submit_options taken = {.capture_ns = leat_now_ns()};
      uint32_t y;
      for (y = 0; y < frame.rows[0]; ++y)
        memset(frame.planes[0] + (size_t)y * frame.strides[0], left, frame.row_bytes[0]);
      if (leat_submit(&frame, &taken, NULL) != LEAT_ERROR_ok) return failed();
    }
    if (leat_next_answer(client, 1000000000, &answer) != LEAT_ERROR_ok) return failed();
    if (answer.result != NULL)
      printf("%u found after %.1f ms\n", answer.result->detection_count,
             (double)(answer.answered_ns - answer.capture_ns) / 1e6);
    else
      printf("%s: %s\n", leat_outcome_name(answer.outcome), leat_reason_text(answer.reason));
    leat_release(&answer); /* the slot is free again */
  }
  leat_disconnect(client);
  return 0;
}
