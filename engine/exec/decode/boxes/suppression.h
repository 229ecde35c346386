// Non-maximum suppression, the same for every layout of boxes: of boxes of one class that share much, the best stays.
// No allocation; any thread.
#pragma once

#include <cstdint>
#include <span>

#include "engine/exec/picture/box.h"

namespace leat::exec {

// A box that a model proposes, in pixels of the model's input.
struct Candidate {
  float cx = 0, cy = 0, w = 0, h = 0;
  float angle = 0;  // in radians; 0: upright
  float score = 0;
  std::int32_t class_id = 0;
  std::uint32_t output = 0, source = 0;  // the output or level, and the row there: where what belongs to it stands

  [[nodiscard]] Box corners() const noexcept { return {cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2}; }
};

// The probabilistic intersection over union of turned boxes: Llerena, Zeni, Kristen and Jung, "Gaussian Bounding Boxes
// and Probabilistic Intersection-over-Union for Object Detection", 2021.
[[nodiscard]] float probabilistic_iou(const Candidate& a, const Candidate& b) noexcept;

enum class Overlap : std::uint8_t { upright, turned };  // which intersection over union is taken

// Sorts candidates by falling score (of equals the one whose source comes first), and keeps those that share at most
// iou_max with every better one of their class; at most `max`. Returns how many of the first entries are kept. An
// iou_max of 1 keeps all.
std::uint32_t suppress(std::span<Candidate> candidates, float iou_max, std::uint32_t max,
                       Overlap overlap = Overlap::upright) noexcept;

}  // namespace leat::exec
