/* An executor of one's own: says of each picture whether it is dark or bright. Built as a library and named in a
 * configuration by its path (executor.toml beside this file):
 *   executor = "./libbrightness.so"
 *   options = { threshold = 0.4 }
 */
#include <leat/executor.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 32, CHANNELS = 3, CLASSES = 2 };

/* The interface leaves the type to us; its handle is a pointer to this. */
struct brightness {
  float threshold;
};

/* extra: the configuration's options as lines key=value. */
static int open_session(const leat_session_options* options, leat_session** out, char* error, size_t error_bytes) {
  const char* given = options->extra != NULL ? strstr(options->extra, "threshold=") : NULL;
  struct brightness* session = malloc(sizeof *session);
  if (session == NULL) return snprintf(error, error_bytes, "no memory"), 1;
  session->threshold = given != NULL ? strtof(given + strlen("threshold="), NULL) : 0.5f;
  if (!(session->threshold > 0 && session->threshold < 1)) {
    free(session);
    return snprintf(error, error_bytes, "threshold must lie between 0 and 1"), 1;
  }
  *out = (leat_session*)session;
  return 0;
}

static void close_session(leat_session* session) { free(session); }

/* One picture in, planar float32; one row of scores out. */
static int describe(leat_session* session, uint32_t batch, leat_tensor* inputs, uint32_t* input_count,
                    leat_tensor* outputs, uint32_t* output_count, char* error, size_t error_bytes) {
  const leat_tensor picture = {.shape = {batch, CHANNELS, SIDE, SIDE}, .rank = 4, .dtype = LEAT_F32, .name = "picture"};
  const leat_tensor scores = {.shape = {batch, CLASSES}, .rank = 2, .dtype = LEAT_F32, .name = "scores"};
  (void)session;
  if (*input_count < 1 || *output_count < 1) return snprintf(error, error_bytes, "no room for the shapes"), 1;
  inputs[0] = picture, outputs[0] = scores;
  inputs[0].bytes = (uint64_t)batch * CHANNELS * SIDE * SIDE * sizeof(float);
  outputs[0].bytes = (uint64_t)batch * CLASSES * sizeof(float);
  *input_count = *output_count = 1;
  return 0;
}

/* Reads and writes where it is told to: nothing is copied. */
static int run(leat_session* handle, uint32_t batch, const leat_tensor* inputs, uint32_t input_count,
               leat_tensor* outputs, uint32_t output_count, char* error, size_t error_bytes) {
  const struct brightness* session = (const struct brightness*)handle;
  const float* pixels = inputs[0].data;
  float* scores = outputs[0].data;
  uint32_t row;
  (void)error, (void)error_bytes, (void)input_count, (void)output_count;
  for (row = 0; row < batch; ++row) {
    const size_t count = (size_t)CHANNELS * SIDE * SIDE;
    double sum = 0;
    size_t i;
    for (i = 0; i < count; ++i) sum += (double)pixels[row * count + i];
    const int bright = sum / (double)count > (double)session->threshold;
    scores[row * CLASSES] = bright ? 0.f : 1.f;
    scores[row * CLASSES + 1] = bright ? 1.f : 0.f;
  }
  return 0;
}

const leat_executor* leat_executor_entry(void) {
  static const leat_executor executor = {.abi = LEAT_EXECUTOR_ABI,
                                         .name = "brightness",
                                         .open = open_session,
                                         .close = close_session,
                                         .describe = describe,
                                         .run = run};
  return &executor;
}
