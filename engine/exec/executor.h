/* The executor interface: a C ABI, so that an executor can be a plug-in loaded with dlopen (leat_executor_entry).
 *
 * A worker process loads one executor per module block range ("session"), then runs batches. The executor reads its
 * inputs and writes its outputs in place, in memory the worker names (a client's frame slot, a feature slot, a result
 * slot): no copies are made for it. Thread rule: a session is used by one thread; different sessions may be used by
 * different threads. Ownership: the caller owns every buffer; the executor owns its session until close().
 * Errors: a non-zero return; `error` receives one line of text (what and what to do), at most error_bytes with the NUL. */
#ifndef LEAT_EXECUTOR_H
#define LEAT_EXECUTOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LEAT_EXECUTOR_ABI 1u

enum leat_memory { LEAT_MEMORY_HOST = 0, LEAT_MEMORY_DEVICE = 1 };
enum leat_dtype { LEAT_F32 = 0, LEAT_F16 = 1, LEAT_U8 = 2, LEAT_I64 = 3, LEAT_I32 = 4 };

typedef struct leat_tensor {
  void* data;            /* dense, row-major; batch is dimension 0 */
  uint64_t bytes;        /* room at data */
  int64_t shape[8];      /* filled for inputs by the caller, for outputs by describe() with shape[0] = batch */
  uint32_t rank;
  uint8_t dtype;         /* enum leat_dtype */
  uint8_t memory;        /* enum leat_memory */
  uint8_t reserved[2];
} leat_tensor;

typedef struct leat_session_options {
  const char* model_path;      /* ONNX file, or profile for `emulated` */
  uint32_t first_block, end_block;
  uint32_t batch_max;
  uint32_t threads;            /* compute threads; the caller has pinned the process already */
  const char* extra;           /* executor-specific key=value lines, may be NULL */
} leat_session_options;

typedef struct leat_session leat_session;

typedef struct leat_executor {
  uint32_t abi;                /* LEAT_EXECUTOR_ABI */
  const char* name;            /* "onnx", "emulated", "cuda" */
  int (*open)(const leat_session_options* options, leat_session** out, char* error, size_t error_bytes);
  void (*close)(leat_session* session);
  /* Shapes of inputs and outputs at a batch size. counts are in/out: room, then number.
   * An executor may take raw items, bytes of any length where they lie: it then describes one input of type LEAT_U8, rank 2 and
   * shape {batch, 0}, and run() gets `batch` inputs of rank 1, one an item. */
  int (*describe)(leat_session* session, uint32_t batch, leat_tensor* inputs, uint32_t* input_count, leat_tensor* outputs,
                  uint32_t* output_count, char* error, size_t error_bytes);
  /* Runs one batch and returns when its outputs are written. */
  int (*run)(leat_session* session, uint32_t batch, const leat_tensor* inputs, uint32_t input_count,
             leat_tensor* outputs, uint32_t output_count, char* error, size_t error_bytes);
} leat_executor;

/* The one symbol a plug-in exports. */
const leat_executor* leat_executor_entry(void);

#ifdef __cplusplus
}
#endif
#endif
