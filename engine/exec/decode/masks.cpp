#include "engine/exec/decode/masks.h"

#include <algorithm>
#include <cmath>

#include "engine/exec/picture/preprocess.h"

namespace leat::exec {
namespace {

constexpr std::int64_t kMaxCoefficients = 256, kMaxGridSide = 1024;

std::uint32_t row_bytes(std::uint32_t columns) noexcept { return (columns + 7) / 8; }

// The first cell whose corner is at or behind this place, 0 to count.
std::uint32_t cell_from(float place, std::uint32_t count) noexcept {
  return static_cast<std::uint32_t>(std::clamp(std::ceil(place), 0.0f, static_cast<float>(count)));
}

}  // namespace

Result<Masks> Masks::open(std::span<const ItemTensor> outputs, std::uint32_t first) {
  Masks out;
  for (std::uint32_t i = 0; i < outputs.size(); ++i) {
    const ItemTensor& t = outputs[i];
    if (i == first || t.rank != 3 || t.count() == 0) continue;
    if (t.shape[0] > kMaxCoefficients || t.shape[1] > kMaxGridSide || t.shape[2] > kMaxGridSide)
      return Error{"extra=mask takes prototypes of up to 256 x 1024 x 1024, and they are " + t.text()};
    out.prototypes_ = i;
    out.rows_ = static_cast<std::uint32_t>(t.shape[1]), out.columns_ = static_cast<std::uint32_t>(t.shape[2]);
    out.c_.resize(static_cast<std::size_t>(t.shape[0]));
    out.line_.resize(out.columns_);
    return out;
  }
  return Error{"extra=mask needs an output [K, h, w] of prototypes beside the boxes"};
}

PartSpec Masks::part() const {
  PartSpec part{.kind = LEAT_PART_masks, .rank = 1, .bytes = LEAT_MAX_DETECTIONS * sizeof(leat_mask)};
  part.dims[0] = LEAT_MAX_DETECTIONS;
  part.tail = std::uint64_t{LEAT_MAX_DETECTIONS} * rows_ * row_bytes(columns_);
  part.name = "masks";
  return part;
}

void Masks::begin(const PostTarget& target, leat_part& part) noexcept {
  target_ = &target, entry_ = &part;
  count_ = used_ = 0;
}

bool Masks::draw(const ItemTensor& prototypes, const Box& box, float width, float height) noexcept {
  const PartSpec need = part();
  const PartPlace place = place_of(target_->result, *entry_, need, 0);
  if (place.array == nullptr || count_ == LEAT_MAX_DETECTIONS) return true;
  bool finite = true;
  const float across = static_cast<float>(columns_) / width, down = static_cast<float>(rows_) / height;
  const std::uint32_t x0 = cell_from(box.x0 * across, columns_), x1 = cell_from(box.x1 * across, columns_);
  const std::uint32_t y0 = cell_from(box.y0 * down, rows_), y1 = cell_from(box.y1 * down, rows_);
  leat_mask mask{};
  mask.offset = place.tail_offset + used_;
  if (x1 > x0 && y1 > y0) {
    const Placement& p = target_->placement;
    mask.x0 = p.offset_x + p.scale_x * static_cast<float>(x0) / across;
    mask.x1 = p.offset_x + p.scale_x * static_cast<float>(x1) / across;
    mask.y0 = p.offset_y + p.scale_y * static_cast<float>(y0) / down;
    mask.y1 = p.offset_y + p.scale_y * static_cast<float>(y1) / down;
    mask.width = x1 - x0, mask.height = y1 - y0;
    mask.bytes = mask.height * row_bytes(mask.width);
    auto* bits = reinterpret_cast<std::uint8_t*>(place.tail) + used_;
    std::fill_n(bits, mask.bytes, std::uint8_t{0});
    const std::size_t plane = std::size_t{rows_} * columns_;
    const auto* const floats = prototypes.dtype == LEAT_F32 ? static_cast<const float*>(prototypes.data) : nullptr;
    for (std::uint32_t y = y0; y < y1; ++y, bits += row_bytes(mask.width)) {
      std::fill_n(line_.begin(), mask.width, 0.0f);
      for (std::size_t k = 0; k < c_.size(); ++k) {
        const std::size_t from = k * plane + std::size_t{y} * columns_ + x0;
        for (std::uint32_t x = 0; x < mask.width; ++x)
          line_[x] += c_[k] * (floats != nullptr ? floats[from + x] : prototypes.at(from + x));
      }
      for (std::uint32_t x = 0; x < mask.width; ++x) finite = finite && std::isfinite(line_[x]);
      for (std::uint32_t x = 0; x < mask.width; ++x)
        if (line_[x] > 0 && line_[x] < INFINITY) bits[x / 8] = static_cast<std::uint8_t>(bits[x / 8] | 1u << x % 8);
    }
    used_ += mask.bytes;
  }
  reinterpret_cast<leat_mask*>(place.array)[count_++] = mask;
  return finite;
}

// The bits stay where they were put, behind room for all masks: the part is as long as to the last of them.
void Masks::end() noexcept { wrote(*entry_, count_, LEAT_MAX_DETECTIONS * sizeof(leat_mask) + used_); }

}  // namespace leat::exec
