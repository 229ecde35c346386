#include "tools/scene/background.h"

#include <algorithm>
#include <cmath>

namespace leat::scene {
namespace {

struct Tone {
  double r, g, b;
};

class Canvas {
 public:
  Canvas(std::uint32_t width, std::uint32_t height)
      : width_(width), height_(height), rgb_(std::size_t{3} * width * height) {}

  // Coordinates in parts of the frame: x of its width, y of its height.
  void box(double x0, double y0, double x1, double y1, Tone tone) {
    const int left = column(x0), right = column(x1), top = row(y0), bottom = row(y1);
    for (int y = top; y < bottom; ++y) {
      for (int x = left; x < right; ++x) put(x, y, tone);
    }
  }
  void blob(double cx, double cy, double radius, Tone tone) {  // radius in parts of the height
    const double px = cx * width_, py = cy * height_, r = radius * height_;
    for (int y = row((py - r) / height_); y < row((py + r) / height_); ++y) {
      const double half = std::sqrt(std::max(0.0, r * r - (y - py) * (y - py)));
      for (int x = column((px - half) / width_); x < column((px + half) / width_); ++x) put(x, y, tone);
    }
  }
  void shade(double y0, double y1, Tone top, Tone bottom) {
    const int first = row(y0), last = row(y1);
    for (int y = first; y < last; ++y) {
      const double t = static_cast<double>(y - first) / std::max(1, last - first);
      const Tone tone{top.r + (bottom.r - top.r) * t, top.g + (bottom.g - top.g) * t, top.b + (bottom.b - top.b) * t};
      for (int x = 0; x < static_cast<int>(width_); ++x) put(x, y, tone);
    }
  }
  void grain(Random& random, int strength) {
    for (std::size_t pixel = 0; pixel < rgb_.size(); pixel += 3) {
      const int d = static_cast<int>(random.next() % (2 * static_cast<unsigned>(strength) + 1)) - strength;
      for (int c = 0; c < 3; ++c) rgb_[pixel + c] = static_cast<std::uint8_t>(std::clamp(rgb_[pixel + c] + d, 0, 255));
    }
  }
  std::vector<std::uint8_t> take() { return std::move(rgb_); }

 private:
  int column(double x) const { return std::clamp(static_cast<int>(x * width_), 0, static_cast<int>(width_)); }
  int row(double y) const { return std::clamp(static_cast<int>(y * height_), 0, static_cast<int>(height_)); }
  void put(int x, int y, Tone t) {
    std::uint8_t* p = rgb_.data() + (static_cast<std::size_t>(y) * width_ + x) * 3;
    p[0] = static_cast<std::uint8_t>(std::clamp(t.r, 0.0, 255.0));
    p[1] = static_cast<std::uint8_t>(std::clamp(t.g, 0.0, 255.0));
    p[2] = static_cast<std::uint8_t>(std::clamp(t.b, 0.0, 255.0));
  }
  std::uint32_t width_, height_;
  std::vector<std::uint8_t> rgb_;
};

// A grey of the given lightness with a little colour in it.
Tone muted(Random& random, double light, double colour) {
  return {light + random.between(-colour, colour), light + random.between(-colour, colour),
          light + random.between(-colour, colour)};
}

void paint_house(Canvas& canvas, Random& random, double x0, double x1, double roof, double ground) {
  canvas.box(x0, roof, x1, ground, muted(random, random.between(80, 190), 22));
  const Tone pane = muted(random, random.between(40, 230), 14);
  const double step_x = random.between(0.012, 0.03), step_y = random.between(0.03, 0.06);
  const double fill = random.between(0.4, 0.7);
  for (double y = roof + step_y / 2; y + step_y < ground; y += step_y) {
    for (double x = x0 + step_x / 2; x + step_x < x1; x += step_x) {
      if (random.unit() < 0.85) canvas.box(x, y, x + step_x * fill, y + step_y * fill, pane);
    }
  }
}

void paint_street(Canvas& canvas, Random& random, double ground) {
  const double light = random.between(60, 120);
  canvas.shade(ground, 1, {light + 30, light + 30, light + 26}, {light, light, light + 3});
  canvas.box(0, ground, 1, ground + 0.03, muted(random, random.between(130, 180), 8));  // pavement
  const Tone mark = muted(random, random.between(180, 235), 8);
  for (double y = ground + 0.12; y < 1; y += random.between(0.12, 0.22)) {
    const double dash = random.between(0.03, 0.09);
    for (double x = random.between(-0.1, 0); x < 1; x += 2 * dash)
      canvas.box(x, y, x + dash, y + 0.008 + 0.012 * (y - ground), mark);
  }
  for (int i = 0; i < 60; ++i) {  // manholes, patches, litter
    const double x = random.unit(), y = random.between(ground + 0.03, 1);
    const Tone tone = muted(random, random.between(40, 170), 16);
    if (random.unit() < 0.5) {
      canvas.blob(x, y, random.between(0.004, 0.035), tone);
    } else {
      canvas.box(x, y, x + random.between(0.005, 0.05), y + random.between(0.005, 0.04), tone);
    }
  }
}

}  // namespace

std::vector<std::uint8_t> paint_background(std::uint32_t width, std::uint32_t height, Random random) {
  Canvas canvas(width, height);
  const double ground = random.between(0.42, 0.6), sky = random.between(120, 220);
  canvas.shade(0, ground, {sky - 30, sky - 15, sky + 5}, {sky, sky + 4, sky + 12});
  for (int i = 0; i < 8; ++i)
    canvas.blob(random.unit(), random.between(0, 0.2), random.between(0.02, 0.09), muted(random, sky + 20, 4));
  for (double x = random.between(-0.1, 0); x < 1;) {
    const double wide = random.between(0.05, 0.18);
    paint_house(canvas, random, x, x + wide, random.between(0.05, ground - 0.12), ground);
    x += wide + (random.unit() < 0.3 ? random.between(0.01, 0.06) : 0);
  }
  for (int tree = 0; tree < 7; ++tree) {
    const double x = random.unit(), crown = random.between(0.03, 0.08), dark = random.between(-15, 15);
    canvas.box(x - 0.004, ground - crown, x + 0.004, ground + 0.01, {88 + dark, 74 + dark, 62 + dark});
    for (int leaf = 0; leaf < 14; ++leaf) {
      canvas.blob(x + random.between(-0.6, 0.6) * crown, ground - crown - random.between(0, 1.2) * crown,
                  crown * random.between(0.2, 0.5),
                  {74 + dark + random.between(-12, 12), 98 + dark + random.between(-12, 12),
                   70 + dark + random.between(-8, 8)});
    }
  }
  paint_street(canvas, random, ground);
  canvas.grain(random, 9);
  return canvas.take();
}

}  // namespace leat::scene
