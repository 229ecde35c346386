#include "tools/leat/draw/kinds/skeleton.h"

#include <initializer_list>
#include <utility>
#include <vector>

namespace leat::tools::draw {
namespace {

constexpr unsigned kLeft = 0, kRight = 1, kMiddle = 2;

using Bones = std::vector<Bone>;

void chain(Bones& out, unsigned first, unsigned last, bool closed, unsigned group) {
  for (unsigned i = first; i < last; ++i)
    out.push_back({static_cast<std::uint16_t>(i), static_cast<std::uint16_t>(i + 1), static_cast<std::uint8_t>(group)});
  if (closed)
    out.push_back(
        {static_cast<std::uint16_t>(last), static_cast<std::uint16_t>(first), static_cast<std::uint8_t>(group)});
}

void pairs(Bones& out, unsigned group, std::initializer_list<std::pair<unsigned, unsigned>> list) {
  for (const auto& [a, b] : list)
    out.push_back({static_cast<std::uint16_t>(a), static_cast<std::uint16_t>(b), static_cast<std::uint8_t>(group)});
}

// Microsoft COCO's keypoints: nose, eyes, ears, shoulders, elbows, wrists, hips, knees, ankles, the left one first.
void body17(Bones& out) {
  pairs(out, kLeft, {{0, 1}, {1, 3}, {5, 7}, {7, 9}, {5, 11}, {11, 13}, {13, 15}});
  pairs(out, kRight, {{0, 2}, {2, 4}, {6, 8}, {8, 10}, {6, 12}, {12, 14}, {14, 16}});
  pairs(out, kMiddle, {{5, 6}, {11, 12}});
}

// MediaPipe's BlazePose.
void body33(Bones& out) {
  pairs(out, kLeft,
        {{0, 1},
         {1, 2},
         {2, 3},
         {3, 7},
         {11, 13},
         {13, 15},
         {15, 17},
         {15, 19},
         {15, 21},
         {17, 19},
         {11, 23},
         {23, 25},
         {25, 27},
         {27, 29},
         {29, 31},
         {27, 31}});
  pairs(out, kRight,
        {{0, 4},
         {4, 5},
         {5, 6},
         {6, 8},
         {12, 14},
         {14, 16},
         {16, 18},
         {16, 20},
         {16, 22},
         {18, 20},
         {12, 24},
         {24, 26},
         {26, 28},
         {28, 30},
         {30, 32},
         {28, 32}});
  pairs(out, kMiddle, {{9, 10}, {11, 12}, {23, 24}});
}

// The wrist, then four joints a finger from the thumb on.
void hand21(Bones& out, unsigned at) {
  for (unsigned finger = 0; finger < 5; ++finger) {
    pairs(out, finger, {{at, at + 1 + 4 * finger}});
    chain(out, at + 1 + 4 * finger, at + 4 + 4 * finger, false, finger);
  }
}

// iBUG's 68: jaw, brows, nose, eyes, outer and inner lips.
void face68(Bones& out, unsigned at) {
  chain(out, at + 0, at + 16, false, 0);
  chain(out, at + 17, at + 21, false, 1), chain(out, at + 22, at + 26, false, 1);
  chain(out, at + 27, at + 30, false, 2), chain(out, at + 31, at + 35, false, 2);
  chain(out, at + 36, at + 41, true, 3), chain(out, at + 42, at + 47, true, 3);
  chain(out, at + 48, at + 59, true, 4), chain(out, at + 60, at + 67, true, 4);
}

// WFLW's 98: contour, brows, nose, eyes, lips, pupils.
void face98(Bones& out) {
  chain(out, 0, 32, false, 0);
  chain(out, 33, 41, true, 1), chain(out, 42, 50, true, 1);
  chain(out, 51, 54, false, 2), chain(out, 55, 59, false, 2);
  chain(out, 60, 67, true, 3), chain(out, 68, 75, true, 3);
  chain(out, 76, 87, true, 4), chain(out, 88, 95, true, 4);
}

Bones made(std::uint32_t points) {
  Bones out;
  switch (points) {
    case 2:
      pairs(out, 0, {{0, 1}});
      break;
    case 17:
      body17(out);
      break;
    case 21:
      hand21(out, 0);
      break;
    case 33:
      body33(out);
      break;
    case 68:
      face68(out, 0);
      break;
    case 98:
      face98(out);
      break;
    case 133:
      body17(out);
      pairs(out, kLeft, {{15, 17}, {15, 18}, {15, 19}});
      pairs(out, kRight, {{16, 20}, {16, 21}, {16, 22}});
      face68(out, 23), hand21(out, 91), hand21(out, 112);
      break;
    default:
      break;
  }
  return out;
}

}  // namespace

std::span<const Bone> skeleton_of(std::uint32_t points) {
  static const Bones two = made(2), body = made(17), hand = made(21), pose = made(33), face = made(68), wide = made(98),
                     whole = made(133);
  switch (points) {
    case 2:
      return two;
    case 17:
      return body;
    case 21:
      return hand;
    case 33:
      return pose;
    case 68:
      return face;
    case 98:
      return wide;
    case 133:
      return whole;
    default:
      return {};
  }
}

}  // namespace leat::tools::draw
