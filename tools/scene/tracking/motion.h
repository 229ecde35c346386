// Videos to measure trackers with: textured ellipses that move, turn, grow and hide each other before a textured
// background, in grey, with exact boxes. What a tracker loses on them depends on the kind: how fast they go, whether
// the camera shakes, whether speed comes in phases, how much noise there is.
//
// Deterministic: (kind, seed, frame, size) give the same bytes on every machine of the same arithmetic, and any frame
// can be rendered without those before it. Thread rule: one thread for each scene. Errors: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace leat::scene {

struct MotionKind {
  std::string_view name;
  std::uint32_t objects;
  double speed;       // pixels of a 320 wide frame a second
  double turn, zoom;  // radians a second; share of its size, back and forth in two seconds
  double shake;       // pixels, of the camera, in every frame
  double noise;       // grey levels, standard deviation
  double swing;       // how many times faster the fast phases are; 1: none
  double swing_s;     // length of a phase
  double offset_s;    // of the phases, so that two videos can swing against each other
};

inline constexpr MotionKind kMotionKinds[] = {
    {"easy", 4, 10, 0.1, 0.04, 0, 2, 1, 2.5, 0},    {"walk", 5, 20, 0.2, 0.06, 0, 2, 1, 2.5, 0},
    {"shaky", 5, 18, 0.2, 0.06, 0.4, 2, 1, 2.5, 0}, {"fast", 5, 45, 0.4, 0.10, 0, 2, 1, 2.5, 0},
    {"crowd", 9, 30, 0.3, 0.08, 0.2, 3, 1, 2.5, 0}, {"phases", 6, 8, 0.2, 0.06, 0.2, 2, 8, 2.5, 0},
    {"zoom", 5, 16, 1.0, 0.22, 0, 2, 1, 2.5, 0},    {"noisy", 5, 24, 0.2, 0.06, 0.2, 6, 1, 2.5, 0},
    {"swing", 5, 3, 0.1, 0.03, 0, 2, 30, 1.5, 0},   {"counter-swing", 5, 3, 0.1, 0.03, 0, 2, 30, 1.5, 1.5},
};
[[nodiscard]] std::optional<MotionKind> motion_kind(std::string_view name);

struct MotionOptions {
  std::uint64_t seed = 1;
  std::uint32_t width = 320, height = 180;
  double fps = 60;
};

struct MovingObject {
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;  // of its whole outline, clipped to the frame
  std::int32_t id = 0;
  float visible = 0;  // share of its whole outline that is neither hidden nor outside
};

class MotionScene {
 public:
  MotionScene(const MotionKind& kind, const MotionOptions& options);
  // Grey rows of `stride` bytes. Objects of which nothing is visible are left out.
  const std::vector<MovingObject>& render(std::uint64_t frame, std::uint8_t* grey, std::size_t stride);
  [[nodiscard]] const MotionOptions& options() const { return options_; }
  // Of the frame rendered last, by pixel: 1 + id of the object that is seen there, with kRim where it is its rim;
  // 0: none.
  [[nodiscard]] const std::vector<std::uint8_t>& owners() const { return owner_; }
  static constexpr std::uint8_t kRim = 0x80;
  [[nodiscard]] std::size_t objects() const { return objects_.size(); }

 private:
  struct Object {
    double x, y, vx, vy, sway, sway_rate, phase, radius_x, radius_y, zoom_phase, turn;
    std::uint32_t texture_x, texture_y;
    double bright;
  };
  [[nodiscard]] double progress(double seconds) const;  // the objects' own time, in seconds of the slow phases

  MotionKind kind_;
  MotionOptions options_;
  std::vector<Object> objects_;
  std::vector<std::uint8_t> texture_;
  std::vector<std::uint8_t> owner_;
  std::vector<double> areas_;
  std::vector<MovingObject> seen_;
};

}  // namespace leat::scene
