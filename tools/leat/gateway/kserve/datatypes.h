// The words of KServe's protocol for element types, beside Leat's own (leat/tensor_types.h). One table.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "leat/tensor_types.h"

// LEAT_KSERVE_TYPES(X): X(leat_dtype, word of a request and of metadata, word of a model's configuration)
#define LEAT_KSERVE_TYPES(X)           \
  X(LEAT_F32, "FP32", "TYPE_FP32")     \
  X(LEAT_F16, "FP16", "TYPE_FP16")     \
  X(LEAT_U8, "UINT8", "TYPE_UINT8")    \
  X(LEAT_I64, "INT64", "TYPE_INT64")   \
  X(LEAT_I32, "INT32", "TYPE_INT32")   \
  X(LEAT_I8, "INT8", "TYPE_INT8")      \
  X(LEAT_U16, "UINT16", "TYPE_UINT16") \
  X(LEAT_I16, "INT16", "TYPE_INT16")   \
  X(LEAT_U32, "UINT32", "TYPE_UINT32") \
  X(LEAT_U64, "UINT64", "TYPE_UINT64") \
  X(LEAT_F64, "FP64", "TYPE_FP64")     \
  X(LEAT_BOOL, "BOOL", "TYPE_BOOL")    \
  X(LEAT_BF16, "BF16", "TYPE_BF16")

namespace leat::gateway {

// "FP32"; "": not in the table.
constexpr std::string_view datatype_of(std::uint32_t dtype) noexcept {
#define X(value, word, config) \
  if (dtype == (value)) return word;
  LEAT_KSERVE_TYPES(X)
#undef X
  return "";
}
constexpr std::string_view config_type_of(std::uint32_t dtype) noexcept {
#define X(value, word, config) \
  if (dtype == (value)) return config;
  LEAT_KSERVE_TYPES(X)
#undef X
  return "";
}
constexpr std::optional<std::uint32_t> dtype_of_datatype(std::string_view datatype) noexcept {
#define X(value, word, config) \
  if (datatype == (word)) return value;
  LEAT_KSERVE_TYPES(X)
#undef X
  return std::nullopt;
}

}  // namespace leat::gateway
