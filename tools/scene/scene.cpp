#include "tools/scene/scene.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numbers>

#include "shm/src/protocol/color.h"
#include "tools/scene/background.h"
#include "tools/scene/paint.h"
#include "tools/scene/random.h"

namespace leat::scene {
namespace {

constexpr std::size_t kMaxOutline = 40;  // vertices
constexpr double kTurn = 2 * std::numbers::pi;

struct Point {
  double x, y;
};

// The outline of radius 1 round the origin.
std::size_t outline_of(std::int32_t shape, Point* out) {
  const auto ring = [&](std::size_t n, double even, double odd) {
    for (std::size_t i = 0; i < n; ++i) {
      const double r = i % 2 == 0 ? even : odd, a = kTurn * static_cast<double>(i) / static_cast<double>(n) - kTurn / 4;
      out[i] = {r * std::cos(a), r * std::sin(a)};
    }
    return n;
  };
  switch (shape) {
    case 0:
      return ring(kMaxOutline, 0.92, 0.92);
    case 1:
      return ring(4, 1.15, 1.15);
    case 2:
      return ring(3, 1.2, 1.2);
    case 3:
      return ring(10, 1.2, 0.5);
    default: {
      constexpr double w = 0.36, l = 1.12;
      const Point cross[] = {{-w, -l}, {w, -l}, {w, -w}, {l, -w}, {l, w},   {w, w},
                             {w, l},   {-w, l}, {-w, w}, {-l, w}, {-l, -w}, {-w, -w}};
      std::copy(std::begin(cross), std::end(cross), out);
      return std::size(cross);
    }
  }
}

double area_of(const Point* p, std::size_t n) {
  double twice = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const Point a = p[i], b = p[(i + 1) % n];
    twice += a.x * b.y - b.x * a.y;
  }
  return std::abs(twice) / 2;
}

// Calls span(y, first, last) for every row of a polygon, clipped to width x height (even-odd rule, pixel centres).
template <class Span>
void scan(const Point* p, std::size_t n, int width, int height, Span&& span) {
  const auto [low, high] = std::minmax_element(p, p + n, [](Point a, Point b) { return a.y < b.y; });
  const int top = std::max(0, static_cast<int>(std::ceil(low->y - 0.5))),
            bottom = std::min(height, static_cast<int>(std::ceil(high->y - 0.5)));
  double cuts[kMaxOutline];
  for (int y = top; y < bottom; ++y) {
    const double centre = y + 0.5;
    std::size_t count = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const Point a = p[i], b = p[i + 1 < n ? i + 1 : 0];
      if ((a.y <= centre) == (b.y <= centre)) continue;
      cuts[count++] = a.x + (b.x - a.x) * (centre - a.y) / (b.y - a.y);
    }
    std::sort(cuts, cuts + count);
    for (std::size_t i = 0; i + 1 < count; i += 2) {
      const int first = std::clamp(static_cast<int>(std::ceil(cuts[i] - 0.5)), 0, width);
      const int last = std::clamp(static_cast<int>(std::ceil(cuts[i + 1] - 0.5)), 0, width);
      if (first < last) span(y, first, last);
    }
  }
}

}  // namespace

struct Scene::Body {
  std::int32_t shape, colour;
  std::uint64_t crossing;
  std::size_t points;
  Point outline[kMaxOutline], inner[kMaxOutline];
  Rgb paint;
  double top, bottom;
};

Scene::Scene(const SceneOptions& options) : options_(options) {
  options_.width = std::clamp(options_.width, kSideMin, kSideMax) & ~1u;
  options_.height = std::clamp(options_.height, kSideMin, kSideMax) & ~1u;
  const std::uint64_t key = mix(options_.seed, options_.camera);
  background_ = paint_background(options_.width, options_.height, Random(mix(key, 0)));
  owner_.resize(std::size_t{options_.width} * options_.height);
  Random random(mix(key, 1));
  lanes_.resize(8 + random.below(7));
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const double depth = (static_cast<double>(i) + 0.5) / static_cast<double>(lanes_.size());  // 0 far, 1 near
    lanes_[i] = {.key = random.next(),
                 .phase = random.unit(),
                 .speed = (random.unit() < 0.5 ? -1 : 1) * random.between(0.03, 0.16),
                 .baseline = 0.12 + 0.76 * (0.6 * depth + 0.4 * random.unit()),
                 .wave = random.between(0, 0.06),
                 .wave_rate = random.between(0.1, 0.6),
                 .spin = random.between(-0.12, 0.12)};
  }
  objects_.reserve(lanes_.size());
}

// A lane carries one object at a time across the frame; every crossing brings a new one.
Scene::Body Scene::body_of(const Lane& lane, double seconds) const {
  const double travelled = lane.phase + std::abs(lane.speed) * seconds, crossing = std::floor(travelled),
               part = travelled - crossing;
  Body b;
  b.crossing = static_cast<std::uint64_t>(crossing);
  Random random(mix(lane.key, b.crossing));
  b.shape = static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(kShapes.size())));
  b.colour = static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(kColours.size())));
  const double height = options_.height, radius = height * random.between(0.045, 0.13) * (0.7 + 0.5 * lane.baseline);
  const double value = random.between(0.72, 1.0), saturation = random.between(0.75, 1.0);
  b.paint = rgb_of(b.colour, random.between(-7, 7), saturation, value);
  const double across = options_.width + 2 * radius, side = lane.speed < 0 ? 1 - part : part;
  const double cx = -radius + side * across,
               cy = height * (lane.baseline + lane.wave * std::sin(kTurn * lane.wave_rate * seconds));
  const double angle = kTurn * (random.unit() + lane.spin * seconds), stretch = random.between(0.85, 1.15);
  b.points = outline_of(b.shape, b.outline);
  b.top = 1e9, b.bottom = -1e9;
  for (std::size_t i = 0; i < b.points; ++i) {
    const Point p = b.outline[i];
    const double x = p.x * stretch, y = p.y / stretch;
    const double dx = radius * (x * std::cos(angle) - y * std::sin(angle)),
                 dy = radius * (x * std::sin(angle) + y * std::cos(angle));
    b.outline[i] = {cx + dx, cy + dy};
    b.inner[i] = {cx + kInner * dx, cy + kInner * dy};
    b.top = std::min(b.top, b.outline[i].y);
    b.bottom = std::max(b.bottom, b.outline[i].y);
  }
  return b;
}

void Scene::draw(const Body& body, std::uint8_t id, std::uint8_t* rgb, std::size_t stride) {
  const int width = static_cast<int>(options_.width), height = static_cast<int>(options_.height);
  const auto fill = [&](double light) {
    return [&, light](int y, int first, int last) {
      const double shade = light * (1.08 - 0.22 * (y - body.top) / (body.bottom - body.top));  // lit from above
      const std::uint8_t r = byte(body.paint.r * shade), g = byte(body.paint.g * shade), b = byte(body.paint.b * shade);
      std::uint8_t* row = rgb + static_cast<std::size_t>(y) * stride;
      for (int x = first; x < last; ++x) row[3 * x] = r, row[3 * x + 1] = g, row[3 * x + 2] = b;
      std::memset(owner_.data() + static_cast<std::size_t>(y) * options_.width + first, id,
                  static_cast<std::size_t>(last - first));
    };
  };
  scan(body.outline, body.points, width, height, fill(kRimLight));
  scan(body.inner, body.points, width, height, fill(1.0));
}

const std::vector<Object>& Scene::render(std::uint64_t index, std::uint8_t* rgb, std::size_t stride) {
  const std::size_t row_bytes = std::size_t{3} * options_.width;
  for (std::uint32_t y = 0; y < options_.height; ++y)
    std::memcpy(rgb + y * stride, background_.data() + y * row_bytes, row_bytes);
  std::fill(owner_.begin(), owner_.end(), std::uint8_t{0});
  objects_.clear();
  areas_.clear();
  const double seconds = static_cast<double>(index) / options_.fps, width = options_.width, height = options_.height;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const Body body = body_of(lanes_[i], seconds);
    draw(body, static_cast<std::uint8_t>(i + 1), rgb, stride);
    Object o{.x0 = 1e9f, .y0 = 1e9f, .x1 = -1e9f, .y1 = -1e9f, .shape = body.shape, .colour = body.colour};
    o.id = i << 32 | body.crossing;
    for (std::size_t k = 0; k < body.points; ++k) {
      const float x = static_cast<float>(std::clamp(body.outline[k].x, 0.0, width)),
                  y = static_cast<float>(std::clamp(body.outline[k].y, 0.0, height));
      o.x0 = std::min(o.x0, x), o.x1 = std::max(o.x1, x), o.y0 = std::min(o.y0, y), o.y1 = std::max(o.y1, y);
    }
    areas_.push_back(area_of(body.outline, body.points));
    objects_.push_back(o);
  }
  for (std::size_t i = 0; i < objects_.size(); ++i) {
    Object& o = objects_[i];
    const auto first = static_cast<std::ptrdiff_t>(o.x0), last = static_cast<std::ptrdiff_t>(std::ceil(o.x1));
    std::size_t seen = 0;
    for (auto y = static_cast<std::size_t>(o.y0); y < static_cast<std::size_t>(std::ceil(o.y1)); ++y) {
      const std::uint8_t* row = owner_.data() + y * options_.width;
      seen += static_cast<std::size_t>(std::count(row + first, row + last, static_cast<std::uint8_t>(i + 1)));
    }
    o.visible = static_cast<float>(std::min(1.0, static_cast<double>(seen) / areas_[i]));
    o.ignore = does_not_count(o, options_.height);
  }
  std::erase_if(objects_, [](const Object& o) { return o.visible <= 0; });
  return objects_;
}

void to_nv12(const std::uint8_t* rgb, std::size_t stride, std::uint32_t width, std::uint32_t height,
             std::uint8_t* nv12) {
  const bool high = shm::default_color(LEAT_FORMAT_nv12, height).matrix == LEAT_COLOR_MATRIX_bt709;
  const float kr = high ? 0.2126F : 0.299F, kb = high ? 0.0722F : 0.114F, kg = 1 - kr - kb;
  constexpr float kLuma = 219.0F / 255, kChroma = 224.0F / 255;
  const float u_scale = kChroma / (2 * (1 - kb)), v_scale = kChroma / (2 * (1 - kr));
  std::uint8_t* uv = nv12 + std::size_t{width} * height;
  for (std::uint32_t y = 0; y < height; y += 2, uv += width) {
    const std::uint8_t* const rows[2] = {rgb + y * stride, rgb + (y + 1) * stride};
    for (std::uint32_t x = 0; x < width; x += 2) {
      float r = 0, g = 0, b = 0;
      for (std::uint32_t i = 0; i < 4; ++i) {
        const std::uint32_t column = x + i % 2;
        const std::uint8_t* const p = rows[i / 2] + std::size_t{3} * column;
        r += p[0], g += p[1], b += p[2];
        nv12[std::size_t{y + i / 2} * width + column] =
            static_cast<std::uint8_t>(16.5F + kLuma * (kr * p[0] + kg * p[1] + kb * p[2]));
      }
      const float luma = kr * r + kg * g + kb * b;
      uv[x] = static_cast<std::uint8_t>(128.5F + u_scale * (b - luma) / 4);
      uv[x + 1] = static_cast<std::uint8_t>(128.5F + v_scale * (r - luma) / 4);
    }
  }
}

std::string truth_line(const SceneOptions& options, std::uint64_t frame, const std::vector<Object>& objects) {
  char part[256];
  std::snprintf(part, sizeof part, R"({"seed":%llu,"camera":%u,"frame":%llu,"width":%u,"height":%u,"objects":[)",
                static_cast<unsigned long long>(options.seed), options.camera, static_cast<unsigned long long>(frame),
                options.width, options.height);
  std::string line = part;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const Object& o = objects[i];
    std::snprintf(part, sizeof part,
                  R"(%s{"box":[%.2f,%.2f,%.2f,%.2f],"shape":"%s","colour":"%s","visible":%.3f,"ignore":%s,"id":%llu})",
                  i == 0 ? "" : ",", static_cast<double>(o.x0), static_cast<double>(o.y0), static_cast<double>(o.x1),
                  static_cast<double>(o.y1), kShapes[static_cast<std::size_t>(o.shape)].data(),
                  kColours[static_cast<std::size_t>(o.colour)].data(), static_cast<double>(o.visible),
                  o.ignore ? "true" : "false", static_cast<unsigned long long>(o.id));
    line += part;
  }
  return line + "]}";
}

}  // namespace leat::scene
