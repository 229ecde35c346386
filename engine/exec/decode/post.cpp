#include "engine/exec/decode/post.h"

#include <cstring>

#include "engine/exec/picture/half.h"

namespace leat::exec {
namespace {

template <class T>
float value_at(const void* data, std::size_t i) noexcept {
  T v;
  std::memcpy(&v, static_cast<const std::byte*>(data) + i * sizeof v, sizeof v);
  return static_cast<float>(v);
}

}  // namespace

float ItemTensor::at(std::size_t i) const noexcept {
  switch (dtype) {
    case LEAT_F32:
      return value_at<float>(data, i);
    case LEAT_F64:
      return value_at<double>(data, i);
    case LEAT_U8:
    case LEAT_BOOL:
      return value_at<std::uint8_t>(data, i);
    case LEAT_I8:
      return value_at<std::int8_t>(data, i);
    case LEAT_U16:
      return value_at<std::uint16_t>(data, i);
    case LEAT_I16:
      return value_at<std::int16_t>(data, i);
    case LEAT_U32:
      return value_at<std::uint32_t>(data, i);
    case LEAT_I32:
      return value_at<std::int32_t>(data, i);
    case LEAT_U64:
      return value_at<std::uint64_t>(data, i);
    case LEAT_I64:
      return value_at<std::int64_t>(data, i);
    default:
      break;
  }
  std::uint16_t bits;
  std::memcpy(&bits, static_cast<const std::byte*>(data) + i * 2, 2);
  return dtype == LEAT_BF16 ? float_of_bfloat16(bits) : float_of_half(bits);
}

std::string ItemTensor::text() const {
  std::string out = "[";
  for (std::uint32_t d = 0; d < rank; ++d) {
    out += d == 0 ? "" : ", ";
    out += shape[d] < 0 ? "?" : std::to_string(shape[d]);
  }
  const char* type = leat_dtype_name(dtype);
  return out + "] " + (type != nullptr ? type : "?");
}

ItemTensor item_of(const leat_tensor& t, std::int32_t row) noexcept {
  ItemTensor out;
  out.dtype = t.dtype;
  if (t.name != nullptr) out.name = t.name;
  const bool batched = (t.flags & LEAT_TENSOR_UNBATCHED) == 0 && t.rank > 0;
  std::uint32_t first = batched ? 1 : 0;
  if (!batched)
    while (t.rank - first > 2 && t.shape[first] == 1) ++first;
  out.rank = t.rank - first;
  for (std::uint32_t d = 0; d < out.rank; ++d) out.shape[d] = t.shape[first + d];
  if (row >= 0 && t.data != nullptr)
    out.data = static_cast<const std::byte*>(t.data) +
               (batched ? static_cast<std::size_t>(row) * out.count() * leat_dtype_bytes(t.dtype) : 0);
  return out;
}

}  // namespace leat::exec
