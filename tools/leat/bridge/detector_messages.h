// The messages of Frigate's detector over ZeroMQ (its plug-in `zmq`), as the other end reads and writes them.
//
//   {"model_request": true, "model_name": N}                  -> {"model_available": B, "model_loaded": B}
//   {"model_data": true, "model_name": N} and the file        -> {"model_saved": B, "model_loaded": B}
//   {"shape": [...], "dtype": T, "model_type": M} and a tensor -> 20 rows of 6 float32: class, score, y0, x0, y1, x1
//
// A tensor is one square crop: [1, height, width, 3] or [1, 3, height, width], uint8 or float32. Whether its floats go
// to 1 or to 255 is not said, see FloatRange. Everything here comes from another process, perhaps another host: sizes
// are checked against what came. Thread rule: values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "leat/result.hpp"
#include "leat/result_types.h"

namespace leat::tools {

inline constexpr std::size_t kMostHeaderBytes = 4096;
inline constexpr std::uint32_t kMostSide = 2048;

struct CropLayout {
  std::uint32_t width = 0, height = 0;  // pixels
  bool planes = false;                  // three planes behind each other (nchw), else three bytes a pixel (nhwc)
  bool floats = false;                  // float32, else uint8
  [[nodiscard]] std::size_t bytes() const { return std::size_t{width} * height * 3 * (floats ? 4 : 1); }
  bool operator==(const CropLayout&) const = default;
};

struct ModelRequest {
  std::string model;
};
struct ModelData {
  std::string model;
};
using DetectorMessage = std::variant<ModelRequest, ModelData, CropLayout>;

// `body`: bytes of the second part; 0: there is none. Errors: one line that says what is wrong with the message.
Result<DetectorMessage> read_message(std::string_view header, std::size_t body_bytes);
std::string model_reply(bool available);  // to ModelRequest
std::string model_data_reply(
    bool serving);  // to ModelData: files are never taken, the model may be served all the same

inline constexpr std::size_t kRows = 20, kColumns = 6;
using DetectionTable = std::array<float, kRows * kColumns>;  // rows in use first, the rest zero

// Best score first, coordinates of the frame's sides in 0..1. Readers stop at the first row that scores too little, so
// the order matters.
DetectionTable table_of(const leat_result& result);

// Floats up to 1 until a value says otherwise; a model's stays at byte once it was.
enum class FloatRange : std::uint8_t { one, byte };
FloatRange range_of(std::span<const std::byte> floats);

// Pixels as three bytes each into `rows` of `stride` bytes. Precondition: tensor has layout.bytes() bytes.
void write_pixels(const CropLayout& layout, std::span<const std::byte> tensor, FloatRange range, std::uint8_t* rows,
                  std::size_t stride);

}  // namespace leat::tools
