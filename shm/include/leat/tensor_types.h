/* Element types of tensors, in and out. One table: the C ABI, the results, the executors and the control protocol read
 * it. Values are part of the wire format: append only.
 *
 * LEAT_DTYPES(X): X(name, value, bytes of an element, text) */
#ifndef LEAT_TENSOR_TYPES_H
#define LEAT_TENSOR_TYPES_H

#include <stdint.h>

#define LEAT_DTYPES(X)     \
  X(F32, 0, 4, "float32")  \
  X(F16, 1, 2, "float16")  \
  X(U8, 2, 1, "uint8")     \
  X(I64, 3, 8, "int64")    \
  X(I32, 4, 4, "int32")    \
  X(I8, 5, 1, "int8")      \
  X(U16, 6, 2, "uint16")   \
  X(I16, 7, 2, "int16")    \
  X(U32, 8, 4, "uint32")   \
  X(U64, 9, 8, "uint64")   \
  X(F64, 10, 8, "float64") \
  X(BOOL, 11, 1, "bool")   \
  X(BF16, 12, 2, "bfloat16")

#ifdef __cplusplus
extern "C" {
#endif

enum leat_dtype {
#define X(name, value, bytes, text) LEAT_##name = value,
  LEAT_DTYPES(X)
#undef X
};

#define LEAT_MAX_TENSORS 8 /* inputs of one request */
#define LEAT_MAX_TENSOR_RANK 8

/* One input tensor of a stream: dense, row-major, one item with every dimension the model has but the batch. */
typedef struct leat_tensor_shape {
  uint32_t dtype; /* leat_dtype */
  uint32_t rank;  /* 0 (one value) .. 8 */
  uint32_t dims[LEAT_MAX_TENSOR_RANK];
} leat_tensor_shape;

/* Bytes of one element; 0: not in the table. */
static inline uint32_t leat_dtype_bytes(uint32_t dtype) {
  switch (dtype) {
#define X(name, value, bytes, text) \
  case value:                       \
    return bytes;
    LEAT_DTYPES(X)
#undef X
    default:
      return 0;
  }
}
/* "float32"; NULL: not in the table. Static. */
static inline const char* leat_dtype_name(uint32_t dtype) {
  switch (dtype) {
#define X(name, value, bytes, text) \
  case value:                       \
    return text;
    LEAT_DTYPES(X)
#undef X
    default:
      return 0;
  }
}

#ifdef __cplusplus
}
#endif
#endif
