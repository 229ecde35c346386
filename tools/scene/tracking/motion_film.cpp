#include "tools/scene/tracking/motion_film.h"

#include "tools/scene/paint.h"
#include "tools/scene/random.h"

namespace leat::scene {
namespace {

std::int32_t colour_of(std::int32_t id) { return id % static_cast<std::int32_t>(kColours.size()); }

}  // namespace

MotionFilm::MotionFilm(const MotionKind& kind, const SceneOptions& options)
    : options_(options),
      scene_(kind, {.seed = options.camera == 0 ? options.seed : mix(options.seed, options.camera),
                    .width = options.width,
                    .height = options.height,
                    .fps = options.fps}),
      grey_(std::size_t{options.width} * options.height) {}

const std::vector<Object>& MotionFilm::render(std::uint64_t index, std::uint8_t* rgb, std::size_t stride) {
  const auto& moving = scene_.render(index, grey_.data(), options_.width);
  std::vector<Rgb> paint = {{1, 1, 1}};  // by owner, of what is as bright as can be: 1
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(scene_.objects()); ++id) {
    const Rgb c = rgb_of(colour_of(id), 0, 0.9, 1);
    paint.push_back({c.r / 255, c.g / 255, c.b / 255});
  }
  for (std::uint32_t y = 0; y < options_.height; ++y) {
    for (std::uint32_t x = 0; x < options_.width; ++x) {
      const std::size_t at = std::size_t{y} * options_.width + x;
      const std::uint8_t owner = scene_.owners()[at];
      const Rgb& p = paint[owner & ~MotionScene::kRim];
      // Texture takes up to 0.6 of an object's light; the background is grey.
      const double light =
          owner == 0 ? grey_[at] : (owner >= MotionScene::kRim ? kRimLight : 1) * (102 + 0.6 * grey_[at]);
      std::uint8_t* const to = rgb + y * stride + std::size_t{3} * x;
      to[0] = byte(p.r * light), to[1] = byte(p.g * light), to[2] = byte(p.b * light);
    }
  }
  objects_.clear();
  for (const MovingObject& m : moving) {
    Object o{
        .x0 = m.x0, .y0 = m.y0, .x1 = m.x1, .y1 = m.y1, .shape = 0, .colour = colour_of(m.id), .visible = m.visible};
    o.ignore = does_not_count(o, options_.height);
    o.id = static_cast<std::uint64_t>(m.id);
    objects_.push_back(o);
  }
  return objects_;
}

}  // namespace leat::scene
