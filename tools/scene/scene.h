// A synthetic street: coloured shapes that move and overlap before a busy background, rendered in software.
// It is the training set of tools/models, the ground truth of the tests and the demo's video source, so all three see
// the same pictures. Deterministic: (seed, camera, frame, size) give the same bytes on every machine of the same
// arithmetic; any frame can be rendered without those before it.
//
// Ground truth. An object's box is that of its whole outline clipped to the frame, pixels, origin top left, x1 and y1
// exclusive. `visible` is the share of its whole outline (what lies outside of the frame included) that is neither
// hidden by a nearer object nor outside. An object does not count (`ignore`) when visible < kMinVisible or a side of
// its box is shorter than kMinSide of the frame's height: detections of it are neither right nor wrong (accuracy.h).
//
// Thread rule: a Scene is used by one thread. Errors: none; sizes outside of kSideMin..kSideMax are clamped.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leat::scene {

inline constexpr std::array<std::string_view, 5> kShapes = {"circle", "square", "triangle", "star", "cross"};
inline constexpr std::array<std::string_view, 6> kColours = {"red", "green", "blue", "yellow", "magenta", "cyan"};
inline constexpr double kMinVisible = 0.6;
inline constexpr double kMinSide = 1.0 / 22;  // of the frame's height: 32.7 pixels of 720
inline constexpr std::uint32_t kSideMin = 32, kSideMax = 8192;

struct Object {
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  std::int32_t shape = 0;   // index into kShapes
  std::int32_t colour = 0;  // index into kColours
  float visible = 0;        // 0..1
  bool ignore = false;
  std::uint64_t id = 0;  // the same in every frame of its camera
};

// Object::ignore of a frame so high.
inline bool does_not_count(const Object& o, std::uint32_t height) {
  return static_cast<double>(o.visible) < kMinVisible ||
         std::min(o.x1 - o.x0, o.y1 - o.y0) < static_cast<float>(kMinSide * height);
}

struct SceneOptions {
  std::uint64_t seed = 1;
  std::uint32_t camera = 0;
  std::uint32_t width = 1280, height = 720;  // even
  double fps = 30;
};

class Scene {
 public:
  explicit Scene(const SceneOptions& options);

  // Renders frame `index` as RGB24 rows of `stride` bytes (>= 3 * width) and returns what is in it, nearest last.
  // Objects without one visible pixel are left out.
  const std::vector<Object>& render(std::uint64_t index, std::uint8_t* rgb, std::size_t stride);

  const SceneOptions& options() const noexcept { return options_; }
  std::size_t rgb_bytes() const noexcept { return std::size_t{3} * options_.width * options_.height; }
  std::size_t nv12_bytes() const noexcept { return std::size_t{3} * options_.width * options_.height / 2; }

 private:
  struct Lane;
  struct Body;
  Body body_of(const Lane& lane, double seconds) const;
  void draw(const Body& body, std::uint8_t id, std::uint8_t* rgb, std::size_t stride);

  SceneOptions options_;
  std::vector<std::uint8_t> background_;  // RGB24, tight
  std::vector<std::uint8_t> owner_;       // per pixel: 1 + index of the nearest object, 0 background
  std::vector<Object> objects_;
  std::vector<double> areas_;  // of whole outlines, pixels
  struct Lane {
    std::uint64_t key;
    double phase, speed, baseline, wave, wave_rate, spin;
  };
  std::vector<Lane> lanes_;  // farthest first
};

// RGB24 to NV12 as cameras make it: limited range, and the matrix of the default rule for this height
// (leat/frame_format.h). Tight planes: Y then UV.
void to_nv12(const std::uint8_t* rgb, std::size_t stride, std::uint32_t width, std::uint32_t height,
             std::uint8_t* nv12);

// One line of JSON without the newline:
// {"seed":..,"camera":..,"frame":..,"width":..,"height":..,"objects":[{"box":[x0,y0,x1,y1],
// "shape":"star","colour":"red","visible":0.83,"ignore":false,"id":65537}]}
std::string truth_line(const SceneOptions& options, std::uint64_t frame, const std::vector<Object>& objects);

}  // namespace leat::scene
