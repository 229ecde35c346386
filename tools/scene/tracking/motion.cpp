#include "tools/scene/tracking/motion.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tools/scene/paint.h"
#include "tools/scene/random.h"

namespace leat::scene {
namespace {

constexpr std::uint32_t kTile = 512, kMask = kTile - 1;

// Noise of several sizes, 64..192, that goes on over its edges.
std::vector<std::uint8_t> tile(std::uint64_t seed) {
  std::vector<double> sum(std::size_t{kTile} * kTile);
  double weight = 0;
  for (std::uint32_t cell = 4; cell <= 32; cell *= 2) {
    const std::uint32_t n = kTile / cell;
    Random random(mix(seed, cell));
    std::vector<double> grid(std::size_t{n} * n);
    for (double& g : grid) g = random.unit();
    for (std::uint32_t y = 0; y < kTile; ++y) {
      for (std::uint32_t x = 0; x < kTile; ++x) {
        const std::uint32_t gx = x / cell, gy = y / cell;
        const double u = static_cast<double>(x % cell) / cell, v = static_cast<double>(y % cell) / cell;
        const auto at = [&](std::uint32_t i, std::uint32_t j) { return grid[std::size_t{j % n} * n + i % n]; };
        sum[std::size_t{y} * kTile + x] += (at(gx, gy) * (1 - u) + at(gx + 1, gy) * u) * (1 - v) +
                                           (at(gx, gy + 1) * (1 - u) + at(gx + 1, gy + 1) * u) * v;
      }
    }
    weight += 1;
  }
  std::vector<std::uint8_t> out(sum.size());
  for (std::size_t i = 0; i < sum.size(); ++i)
    out[i] = static_cast<std::uint8_t>(std::clamp(128 + 260 * (sum[i] / weight - 0.5), 20.0, 235.0));
  return out;
}

// Grey between pixels.
double sample(const std::vector<std::uint8_t>& t, double x, double y) {
  const double fx = std::floor(x), fy = std::floor(y);
  const auto ix = static_cast<std::uint32_t>(static_cast<std::int64_t>(fx)) & kMask;
  const auto iy = static_cast<std::uint32_t>(static_cast<std::int64_t>(fy)) & kMask;
  const double u = x - fx, v = y - fy;
  const std::uint8_t* const a = t.data() + std::size_t{iy} * kTile;
  const std::uint8_t* const b = t.data() + std::size_t{(iy + 1) & kMask} * kTile;
  const std::uint32_t right = (ix + 1) & kMask;
  return (a[ix] * (1 - u) + a[right] * u) * (1 - v) + (b[ix] * (1 - u) + b[right] * u) * v;
}

// Back and forth between 0 and `length`.
double bounce(double at, double length) {
  const double period = 2 * length;
  const double within = at - period * std::floor(at / period);
  return within < length ? within : period - within;
}

}  // namespace

std::optional<MotionKind> motion_kind(std::string_view name) {
  for (const MotionKind& kind : kMotionKinds)
    if (kind.name == name) return kind;
  return std::nullopt;
}

MotionScene::MotionScene(const MotionKind& kind, const MotionOptions& options)
    : kind_(kind),
      options_(options),
      texture_(tile(options.seed)),
      owner_(std::size_t{options.width} * options.height) {
  const double scale = options.width / 320.0;
  for (std::uint32_t i = 0; i < kind.objects; ++i) {
    Random r(mix(options.seed, 1000 + i));
    const double direction = r.between(0, 2 * std::numbers::pi), speed = kind.speed * scale * r.between(0.5, 1.5);
    Object o{};
    o.x = r.between(0, options.width), o.y = r.between(0, options.height);
    o.vx = speed * std::cos(direction), o.vy = 0.6 * speed * std::sin(direction);
    o.sway = speed * r.between(0.1, 0.4), o.sway_rate = r.between(1, 2.5), o.phase = r.between(0, 6.28);
    o.radius_x = scale * r.between(14, 28), o.radius_y = scale * r.between(14, 28);
    o.zoom_phase = r.between(0, 6.28), o.turn = kind.turn * r.between(-1, 1);
    o.texture_x = r.below(kTile), o.texture_y = r.below(kTile);
    o.bright = r.between(-40, 40);
    objects_.push_back(o);
  }
}

double MotionScene::progress(double seconds) const {
  if (kind_.swing == 1) return seconds;
  const double at = seconds + kind_.offset_s, pair = 2 * kind_.swing_s;
  const double pairs = std::floor(at / pair), within = at - pairs * pair;
  const double slow = std::min(within, kind_.swing_s), fast = within - slow;
  return pairs * kind_.swing_s * (1 + kind_.swing) + slow + kind_.swing * fast;
}

const std::vector<MovingObject>& MotionScene::render(std::uint64_t frame, std::uint8_t* grey, std::size_t stride) {
  const double seconds = static_cast<double>(frame) / options_.fps, t = progress(seconds);
  const auto w = static_cast<double>(options_.width), h = static_cast<double>(options_.height);
  Random r(mix(options_.seed, 77'000'000 + frame));
  const double scale = w / 320;
  const double shake_x = kind_.shake * scale * r.between(-1.7, 1.7),
               shake_y = kind_.shake * scale * r.between(-1.7, 1.7);
  std::fill(owner_.begin(), owner_.end(), std::uint8_t{0});
  for (std::uint32_t y = 0; y < options_.height; ++y)
    for (std::uint32_t x = 0; x < options_.width; ++x)
      grey[y * stride + x] = static_cast<std::uint8_t>(sample(texture_, x + shake_x, y + shake_y));
  seen_.clear();
  areas_.assign(objects_.size(), 0);
  std::vector<MovingObject> all(objects_.size());
  for (std::size_t i = 0; i < objects_.size(); ++i) {
    const Object& o = objects_[i];
    const double cx = bounce(o.x + o.vx * t + o.sway * std::sin(o.sway_rate * t + o.phase), w) - shake_x;
    const double cy = bounce(o.y + o.vy * t + o.sway * std::cos(o.sway_rate * t), h) - shake_y;
    const double grown = 1 + kind_.zoom * std::sin(std::numbers::pi * t + o.zoom_phase);
    const double a = o.radius_x * grown, b = o.radius_y * grown, turned = o.turn * t;
    const double c = std::cos(turned), s = std::sin(turned);
    // Half sides of the box around the turned ellipse.
    const double bx = std::sqrt(a * a * c * c + b * b * s * s), by = std::sqrt(a * a * s * s + b * b * c * c);
    areas_[i] = std::numbers::pi * a * b;
    all[i] = {.x0 = static_cast<float>(std::max(0.0, cx - bx)),
              .y0 = static_cast<float>(std::max(0.0, cy - by)),
              .x1 = static_cast<float>(std::min(w, cx + bx)),
              .y1 = static_cast<float>(std::min(h, cy + by)),
              .id = static_cast<std::int32_t>(i)};
    const auto first = [](double v) { return static_cast<std::uint32_t>(std::max(0.0, std::floor(v))); };
    for (std::uint32_t y = first(cy - by); y < options_.height && y <= cy + by; ++y) {
      for (std::uint32_t x = first(cx - bx); x < options_.width && x <= cx + bx; ++x) {
        const double dx = x + 0.5 - cx, dy = y + 0.5 - cy;
        const double u = (dx * c + dy * s) / a, v = (-dx * s + dy * c) / b;
        if (u * u + v * v > 1) continue;
        const double g = sample(texture_, o.texture_x + u * o.radius_x * 1.3, o.texture_y + v * o.radius_y * 1.3);
        grey[y * stride + x] = static_cast<std::uint8_t>(std::clamp(g + o.bright, 0.0, 255.0));
        owner_[std::size_t{y} * options_.width + x] =
            static_cast<std::uint8_t>(i + 1) | (u * u + v * v > kInner * kInner ? kRim : std::uint8_t{0});
      }
    }
  }
  std::vector<double> shown(objects_.size() + 1);
  for (const std::uint8_t o : owner_) ++shown[o & ~kRim];
  for (std::size_t i = 0; i < objects_.size(); ++i) {
    all[i].visible = static_cast<float>(std::min(1.0, shown[i + 1] / areas_[i]));
    if (shown[i + 1] > 0) seen_.push_back(all[i]);
  }
  if (kind_.noise > 0) {
    // The sum of three numbers of a byte each is as good as a bell curve here.
    for (std::uint32_t y = 0; y < options_.height; ++y) {
      for (std::uint32_t x = 0; x < options_.width; x += 2) {
        const std::uint64_t bits = r.next();
        for (std::uint32_t k = 0; k < 2 && x + k < options_.width; ++k) {
          const auto b = [&](std::uint32_t n) { return static_cast<double>(bits >> (32 * k + 8 * n) & 0xFF); };
          const double n = (b(0) + b(1) + b(2) - 382.5) / 128;
          std::uint8_t& g = grey[y * stride + x + k];
          g = static_cast<std::uint8_t>(std::clamp(g + n * kind_.noise, 0.0, 255.0));
        }
      }
    }
  }
  return seen_;
}

}  // namespace leat::scene
