/* The executor interface: a C ABI, so that an executor can be a plug-in loaded with dlopen (leat_executor_entry).
 *
 * A worker process loads one executor per module block range ("session"), then runs batches. The executor reads its
 * inputs and writes its outputs in place, in memory the worker names (a client's frame slot, a feature slot, a result
 * slot): no copies are made for it. Thread rule: a session is used by one thread; different sessions may be used by
 * different threads. Ownership: the caller owns every buffer; the executor owns its session until close().
 * Errors: a non-zero return; `error` receives one line of text (what and what to do), at most error_bytes with the NUL.
 */
#ifndef LEAT_EXECUTOR_H
#define LEAT_EXECUTOR_H

#include <stddef.h>
#include <stdint.h>

#include "leat/tensor_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LEAT_EXECUTOR_ABI 2u

enum leat_memory { LEAT_MEMORY_HOST = 0, LEAT_MEMORY_DEVICE = 1 };

/* Of a tensor's flags. */
#define LEAT_TENSOR_UNBATCHED 1u /* dimension 0 is not the batch: the tensor belongs to the run as a whole */

typedef struct leat_tensor {
  void* data;       /* dense, row-major. Outputs: NULL asks the executor to lend memory until its next run() */
  uint64_t bytes;   /* room at data; of an output after run(): what was written */
  int64_t shape[8]; /* by describe(); dimension 0 is the batch unless UNBATCHED; -1: open, so run() is told (inputs)
                       or tells (outputs) */
  uint32_t rank;
  uint8_t dtype;  /* enum leat_dtype */
  uint8_t memory; /* enum leat_memory */
  uint8_t flags;  /* LEAT_TENSOR_* */
  uint8_t reserved;
  const char* name; /* by describe(): the model's; the session's until close() */
} leat_tensor;

/* What run() returns beside 0, done, and 1, failed. */
#define LEAT_RUN_TOO_LARGE 2 /* an output needs more room than it was given; nothing else is wrong */

typedef struct leat_session_options {
  const char* model_path; /* ONNX file, or profile for `emulated` */
  uint32_t first_block, end_block;
  uint32_t batch_max;
  uint32_t threads;  /* compute threads; the caller has pinned the process already */
  const char* extra; /* executor-specific key=value lines, may be NULL */
  /* Where to run; NULL: this host. An executor that can uses the device's memory and stream then, which
   * describe() says by LEAT_MEMORY_DEVICE; one that cannot stays on the host. */
  const struct leat_device_api* device_api;
  struct leat_device* device;
} leat_session_options;

/* A handle. Behind it lies a type of the executor's own, under a name of its own: executors meet in one program. */
typedef struct leat_session leat_session;

typedef struct leat_executor {
  uint32_t abi;     /* LEAT_EXECUTOR_ABI */
  const char* name; /* "onnx", "emulated", "cuda" */
  int (*open)(const leat_session_options* options, leat_session** out, char* error, size_t error_bytes);
  void (*close)(leat_session* session);
  /* Shapes of inputs and outputs at a batch size. counts are in/out: room, then number.
   * An executor may take raw items, bytes of any length where they lie: it then describes one input of type LEAT_U8,
   * rank 2 and shape {batch, 0}, and run() gets `batch` inputs of rank 1, one an item. */
  int (*describe)(leat_session* session, uint32_t batch, leat_tensor* inputs, uint32_t* input_count,
                  leat_tensor* outputs, uint32_t* output_count, char* error, size_t error_bytes);
  /* Runs one batch and returns when its outputs are written; on a device, when the work is on the device's stream.
   * Inputs carry their shapes, outputs get theirs. Where an input is UNBATCHED, batch is 1. */
  int (*run)(leat_session* session, uint32_t batch, const leat_tensor* inputs, uint32_t input_count,
             leat_tensor* outputs, uint32_t output_count, char* error, size_t error_bytes);
  /* On a device, after its wait(): how the runs since the last call of this went. NULL: run() has said all. */
  int (*finish)(leat_session* session, char* error, size_t error_bytes);
} leat_executor;

/* The one symbol a plug-in exports. */
const leat_executor* leat_executor_entry(void);

#ifdef __cplusplus
}
#endif
#endif
