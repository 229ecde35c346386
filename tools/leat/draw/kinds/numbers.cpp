#include <cmath>
#include <cstdio>
#include <iterator>

#include "tools/leat/draw/canvas/ramp.h"
#include "tools/leat/draw/kinds/kinds.h"

namespace leat::tools::draw {
namespace {

constexpr std::size_t kCells = 96;  // of an embedding's strip

std::string shape_of(const leat_part_view& part) {
  static constexpr const char* kTypes[] = {
#define X(name, value, bytes, text) text,
      LEAT_DTYPES(X)
#undef X
  };
  std::string text;
  for (std::uint32_t d = 0; d < part.rank; ++d) text += (d > 0 ? " x " : "") + std::to_string(part.dims[d]);
  return text + (part.dtype < std::size(kTypes) ? std::string(" ") + kTypes[part.dtype] : "");
}

// The first vector's values as cells of colour: alike vectors look alike.
std::vector<Colour> strip_of(const leat_part_view& part) {
  const std::size_t length = part.rank > 0 ? part.dims[part.rank - 1] : 0;
  if (part.dtype != LEAT_F32 || length < 2 || part.count < length) return {};
  std::vector<float> values(std::min(length, kCells));
  float max = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = element<float>(part, i * length / values.size());
    if (std::isfinite(values[i])) max = std::max(max, std::abs(values[i]));
  }
  std::vector<Colour> out;
  for (const float v : values) out.push_back(ramp(max > 0 ? 0.5 + static_cast<double>(v / max) / 2 : 0.5));
  return out;
}

}  // namespace

void list_numbers(Work& work, const leat_part_view& part) {
  if (part.kind != LEAT_PART_embedding && part.kind != LEAT_PART_tensor) return;
  work.marks.rows.push_back({.text = part.name[0] != '\0' ? part.name : "output", .value = shape_of(part)});
  if (part.kind != LEAT_PART_embedding) return;
  if (auto strip = strip_of(part); !strip.empty()) work.marks.rows.push_back({.strip = std::move(strip)});
}

void list_checksum(Work& work) {
  char text[24];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(work.answer.result->checksum));
  work.marks.rows.push_back({.text = "checksum", .value = text});
}

}  // namespace leat::tools::draw
