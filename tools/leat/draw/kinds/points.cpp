#include "tools/leat/draw/kinds/kinds.h"
#include "tools/leat/draw/kinds/skeleton.h"

namespace leat::tools::draw {
namespace {

constexpr float kSure = 0.3F;        // points below are not drawn
constexpr std::uint32_t kMany = 40;  // points of an object: landmarks, drawn smaller
constexpr Colour kSegment{230, 159, 0};

// Left, right and middle; five fingers; parts of a face. Of the palette, far apart in lightness and hue.
constexpr Colour kGroups[] = {{86, 180, 233}, {230, 159, 0}, {0, 158, 115}, {240, 228, 66}, {204, 121, 167}};
Colour colour_of_group(std::size_t group) { return kGroups[group % std::size(kGroups)]; }

}  // namespace

void draw_points(Work& work, Pen& pen, const leat_part_view& part) {
  const std::uint32_t each = part.rank > 1 ? part.dims[1] : 1;
  if (each == 0) return;
  const auto bones = skeleton_of(each);
  const double line = each >= kMany ? work.style.line * 0.75 : work.style.line;
  const double radius = each >= kMany ? work.style.line * 0.8 : work.style.line * 1.5;
  std::vector<leat_keypoint> points(each);
  for (std::uint64_t object = 0; object < part.count / each; ++object) {
    for (std::uint32_t k = 0; k < each; ++k) points[k] = element<leat_keypoint>(part, object * each + k);
    if (each == 2) {  // a segment, whose score has a threshold of its own
      if (!(points[0].score > 0)) continue;
      const Point a = work.view.at(points[0].x, points[0].y), b = work.view.at(points[1].x, points[1].y);
      pen.line(a, b, line, kSegment);
      for (const Point& end : {a, b}) pen.disc(end, line, kWhite);
      continue;
    }
    std::vector<std::size_t> group_of(each, each <= std::size(kGroups) ? each : 0);
    for (const Bone& bone : bones) {
      const leat_keypoint &a = points[bone.from], &b = points[bone.to];
      group_of[bone.from] = group_of[bone.to] = bone.group;
      if (a.score > kSure && b.score > kSure)
        pen.line(work.view.at(a.x, a.y), work.view.at(b.x, b.y), line, colour_of_group(bone.group));
    }
    for (std::uint32_t k = 0; k < each; ++k) {
      const std::size_t group = each <= std::size(kGroups) ? k : group_of[k];
      if (points[k].score > kSure)
        pen.disc(work.view.at(points[k].x, points[k].y), radius,
                 bones.empty() || each >= kMany ? colour_of_group(group) : kWhite);
    }
  }
}

}  // namespace leat::tools::draw
