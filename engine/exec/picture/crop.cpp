#include "engine/exec/picture/crop.h"

#include <algorithm>
#include <cmath>

#include "leat/result_parts.h"

namespace leat::exec {
namespace {

constexpr float kTall = 1.5f;
constexpr float kFaceSide = 112;
constexpr std::array<Point, 5> kFace = {
    {{38.2946f, 51.6963f}, {73.5318f, 51.5014f}, {56.0252f, 71.7366f}, {41.5493f, 92.3655f}, {70.7299f, 92.2041f}}};

float length(const Point& a, const Point& b) noexcept { return std::hypot(b.x - a.x, b.y - a.y); }

// Row `row` of the first part of a kind that has it; `each`: entries of a row.
template <class T>
const T* row_of(const leat_result* result, std::uint64_t slot_bytes, std::uint32_t kind, std::uint32_t each,
                std::uint32_t row) noexcept {
  leat_part_view view;
  for (std::uint32_t i = 0; leat_next_part(result, slot_bytes, &i, &view) != 0;) {
    const bool rows = each == 1 ? view.rank == 1 : view.rank == 2 && view.dims[1] == each;
    if (view.kind == kind && rows && row < view.dims[0])
      return static_cast<const T*>(view.data) + std::size_t{row} * each;
  }
  return nullptr;
}

bool upside_down(const leat_detection& d, float surer_than) noexcept {
  return std::any_of(d.labels, d.labels + std::min<std::uint32_t>(d.label_count, LEAT_MAX_LABELS),
                     [&](const leat_label& l) { return l.class_id == 1 && l.score > surer_than; });
}

bool take_quad(const leat_result* result, std::uint64_t slot_bytes, std::uint32_t detection, float flip,
               Region* out) noexcept {
  const auto* const turned = row_of<leat_oriented_box>(result, slot_bytes, LEAT_PART_oriented, 1, detection);
  const Box& b = out->box;
  Quad q = turned != nullptr ? corners_of(*turned) : Quad{{{b.x0, b.y0}, {b.x1, b.y0}, {b.x1, b.y1}, {b.x0, b.y1}}};
  const auto sides = [&] {
    out->width = std::max(length(q[0], q[1]), length(q[3], q[2]));
    out->height = std::max(length(q[0], q[3]), length(q[1], q[2]));
  };
  sides();
  if (out->height >= kTall * out->width) {
    std::rotate(q.begin(), q.begin() + 1, q.end());
    sides();
  }
  if (upside_down(result->detections[detection], flip)) std::rotate(q.begin(), q.begin() + 2, q.end());
  return project_to_quad(q, out->width, out->height, &out->to_frame);
}

}  // namespace

Quad Region::corners() const noexcept {
  if (!projected) return {{{box.x0, box.y0}, {box.x1, box.y0}, {box.x1, box.y1}, {box.x0, box.y1}}};
  return {{to_frame.of(0, 0), to_frame.of(width, 0), to_frame.of(width, height), to_frame.of(0, height)}};
}

bool region_of(const leat_result* result, std::int32_t detection, const CropSpec& spec, Region* out,
               std::uint64_t slot_bytes) noexcept {
  *out = {};
  if (detection < 0) return true;
  const auto at = static_cast<std::uint32_t>(detection);
  if (result == nullptr || at >= LEAT_MAX_DETECTIONS || at >= result->detection_count) return false;
  const leat_detection& d = result->detections[at];
  out->whole = false;
  out->box = {d.x0, d.y0, d.x1, d.y1};
  if (!spec.projected()) return true;
  out->projected = true;
  if (spec.quad) return take_quad(result, slot_bytes, at, spec.flip, out);
  const auto* const points = row_of<leat_keypoint>(result, slot_bytes, LEAT_PART_keypoints, kFace.size(), at);
  if (points == nullptr) return false;
  std::array<Point, kFace.size()> face;
  for (std::size_t i = 0; i < face.size(); ++i) face[i] = {points[i].x, points[i].y};
  out->width = out->height = kFaceSide;
  return similarity(kFace, face, &out->to_frame);
}

}  // namespace leat::exec
