#include "tools/leat/bridge/detector_messages.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "tools/base/json/json.h"
#include "tools/base/text/formatted.h"

namespace leat::tools {
namespace {

// The tensor's floats may lie anywhere in a message.
float float_at(const std::byte* at) {
  float value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::uint8_t byte_of(float value, float scale) {
  const float scaled = value * scale + 0.5F;
  return scaled >= 255.F ? 255 : scaled > 0.F ? static_cast<std::uint8_t>(scaled) : 0;  // NaN: 0
}

Result<CropLayout> read_layout(const Json& header, std::size_t body_bytes) {
  const auto shape = header.at("shape").get<std::vector<std::uint32_t>>();
  const auto dtype = header.at("dtype").get<std::string>();
  if (dtype != "uint8" && dtype != "float32")
    return Error{"a tensor is uint8 or float32, not '" + dtype.substr(0, 32) + "'"};
  if (shape.size() != 4 || shape[0] != 1 || (shape[3] != 3 && shape[1] != 3))
    return Error{"a tensor is [1, height, width, 3] or [1, 3, height, width]"};
  CropLayout layout;
  layout.planes = shape[3] != 3;
  layout.height = shape[layout.planes ? 2 : 1];
  layout.width = shape[layout.planes ? 3 : 2];
  layout.floats = dtype == "float32";
  if (layout.width < 1 || layout.height < 1 || layout.width > kMostSide || layout.height > kMostSide)
    return Error{formatted("a tensor's sides are 1 to %u", kMostSide)};
  if (layout.bytes() != body_bytes)
    return Error{formatted("the tensor's shape is %zu bytes, but %zu came", layout.bytes(), body_bytes)};
  return layout;
}

}  // namespace

Result<DetectorMessage> read_message(std::string_view header, std::size_t body_bytes) try {
  if (header.size() > kMostHeaderBytes) return Error{"the header is longer than any of Frigate's"};
  const Json json = Json::parse(header);
  if (!json.is_object()) return Error{"the header is not a JSON object"};
  if (json.value("model_request", false)) return DetectorMessage(ModelRequest{json.value("model_name", "")});
  if (json.value("model_data", false)) return DetectorMessage(ModelData{json.value("model_name", "")});
  auto layout = read_layout(json, body_bytes);
  if (!layout.ok()) return Error{layout.error()};
  return DetectorMessage(*layout);
} catch (const JsonError& error) {
  return Error{std::string("the header is not one of Frigate's: ") + error.what()};
}

std::string model_reply(bool available) {
  return Json{{"model_available", available}, {"model_loaded", available}}.dump();
}
std::string model_data_reply(bool serving) { return Json{{"model_saved", serving}, {"model_loaded", serving}}.dump(); }

DetectionTable table_of(const leat_result& result) {
  DetectionTable table{};
  if (result.kind != LEAT_RESULT_DETECTIONS || result.frame_width == 0 || result.frame_height == 0) return table;
  std::array<std::uint32_t, LEAT_MAX_DETECTIONS> order{};
  const std::uint32_t count = std::min<std::uint32_t>(result.detection_count, LEAT_MAX_DETECTIONS);
  std::iota(order.begin(), order.begin() + count, 0U);
  std::stable_sort(order.begin(), order.begin() + count, [&](std::uint32_t a, std::uint32_t b) {
    return result.detections[a].score > result.detections[b].score;
  });
  const auto part = [](float value, std::uint32_t whole) {
    return std::clamp(value / static_cast<float>(whole), 0.F, 1.F);
  };
  for (std::uint32_t row = 0; row < std::min<std::uint32_t>(count, kRows); ++row) {
    const leat_detection& d = result.detections[order[row]];
    const float values[kColumns] = {static_cast<float>(d.class_id),  std::clamp(d.score, 0.F, 1.F),
                                    part(d.y0, result.frame_height), part(d.x0, result.frame_width),
                                    part(d.y1, result.frame_height), part(d.x1, result.frame_width)};
    std::copy_n(values, kColumns, table.begin() + std::ptrdiff_t{row} * kColumns);
  }
  return table;
}

FloatRange range_of(std::span<const std::byte> floats) {
  float most = 0;
  for (std::size_t i = 0; i < floats.size(); i += sizeof(float)) most = std::max(most, float_at(&floats[i]));
  return most > 1.5F ? FloatRange::byte : FloatRange::one;
}

void write_pixels(const CropLayout& layout, std::span<const std::byte> tensor, FloatRange range, std::uint8_t* rows,
                  std::size_t stride) {
  const std::size_t row_values = std::size_t{layout.width} * 3, plane = std::size_t{layout.width} * layout.height;
  const float scale = range == FloatRange::one ? 255.F : 1.F;
  for (std::size_t y = 0; y < layout.height; ++y) {
    std::uint8_t* const to = rows + y * stride;
    if (!layout.planes && !layout.floats) {
      std::memcpy(to, tensor.data() + y * row_values, row_values);
    } else if (!layout.planes) {
      const std::byte* const from = tensor.data() + y * row_values * sizeof(float);
      for (std::size_t i = 0; i < row_values; ++i) to[i] = byte_of(float_at(from + i * sizeof(float)), scale);
    } else {
      for (std::size_t c = 0; c < 3; ++c) {
        const std::size_t first = c * plane + y * layout.width;
        for (std::size_t x = 0; x < layout.width; ++x)
          to[x * 3 + c] = layout.floats ? byte_of(float_at(tensor.data() + (first + x) * sizeof(float)), scale)
                                        : static_cast<std::uint8_t>(tensor[first + x]);
      }
    }
  }
}

}  // namespace leat::tools
