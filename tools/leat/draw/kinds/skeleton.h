// Which of an object's points belong together, told by how many there are: poses (COCO's 17, BlazePose's 33, 133 of the
// whole body), hands (21), faces (68 of iBUG, 98 of WFLW), line segments (2). Of other numbers the points alone are
// drawn. Pure.
#pragma once

#include <cstdint>
#include <span>

namespace leat::tools::draw {

struct Bone {
  std::uint16_t from, to;
  std::uint8_t group;  // those of one group have one colour: a side of the body, a finger, a part of the face
};
[[nodiscard]] std::span<const Bone> skeleton_of(std::uint32_t points);

}  // namespace leat::tools::draw
