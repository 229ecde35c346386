#include "tools/leat/draw/canvas/labels.h"

#include <cmath>

namespace leat::tools::draw {
namespace {

constexpr double kFurthest = 8;  // label heights from what it names

struct Field {
  std::span<const LabelWish> wishes;
  Rect within;
  std::vector<Rect> taken;

  [[nodiscard]] bool is_free(const Rect& r) const {
    return inside(r, within) &&
           std::none_of(taken.begin(), taken.end(), [&](const Rect& t) { return shared_area(t, r) > 0; });
  }
  // What it would cover of things, as a share of the label and of the thing: a small thing must not vanish. Its own is
  // covered rather than another's, a small one (a line of text) unwillingly.
  [[nodiscard]] double covered(const Rect& r, std::size_t own) const {
    double sum = shared_area(wishes[own].of, r) / std::max(1.0, wishes[own].of.area()) / 2;
    for (std::size_t i = 0; i < wishes.size(); ++i) {
      const double shared = i == own ? 0 : shared_area(wishes[i].of, r);
      if (shared > 0) sum += shared / r.area() + 4 * shared / std::max(1.0, wishes[i].of.area());
    }
    return sum;
  }
};

// The usual places, the best first: on the upper edge, under the lower one, inside, beside.
std::vector<Rect> usual_places(const LabelWish& wish) {
  const Rect& o = wish.of;
  const double w = wish.width, h = wish.height;
  const auto at = [&](double x, double y) { return Rect{x, y, x + w, y + h}; };
  return {at(o.x0, o.y0 - h), at(o.x1 - w, o.y0 - h), at(o.x0, o.y1),     at(o.x1 - w, o.y1),
          at(o.x0, o.y0),     at(o.x1 - w, o.y0),     at(o.x0, o.y1 - h), at(o.x1 - w, o.y1 - h),
          at(o.x1, o.y0),     at(o.x0 - w, o.y0),     at(o.x1, o.y1 - h), at(o.x0 - w, o.y1 - h)};
}

Rect moved_into(Rect r, const Rect& within) {
  const double dx = std::clamp(r.x0, within.x0, std::max(within.x0, within.x1 - r.width())) - r.x0,
               dy = std::clamp(r.y0, within.y0, std::max(within.y0, within.y1 - r.height())) - r.y0;
  return {r.x0 + dx, r.y0 + dy, r.x1 + dx, r.y1 + dy};
}

std::optional<Rect> best_place(const Field& field, std::size_t i) {
  const LabelWish& wish = field.wishes[i];
  std::optional<Rect> best;
  double min = 0, rank = 0;
  const auto consider = [&](const Rect& r, double cost) {
    const Rect place = moved_into(r, field.within);
    if (!field.is_free(place)) return;
    cost += field.covered(place, i) + (place == r ? 0 : 0.2);
    if (!best || cost < min) best = place, min = cost;
  };
  for (const Rect& r : usual_places(wish)) consider(r, 0.05 * rank++);
  if (best) return best;
  // Else the nearest free place round the upper left corner, in rings of half a label's height.
  const double step = wish.height / 2;
  for (int ring = 1; ring * step <= kFurthest * wish.height && !best; ++ring) {
    for (int k = 0; k < 8 * ring; ++k) {
      const double angle = 2 * std::acos(-1.0) * k / (8 * ring), d = ring * step;
      const double x = wish.of.x0 + 2 * d * std::cos(angle), y = wish.of.y0 - wish.height + d * std::sin(angle);
      consider({x, y, x + wish.width, y + wish.height}, ring);
    }
  }
  return best;
}

}  // namespace

std::vector<std::optional<Rect>> place_labels(std::span<const LabelWish> wishes, const Rect& within,
                                              std::span<const Rect> taken) {
  Field field{wishes, within, {taken.begin(), taken.end()}};
  std::vector<std::optional<Rect>> out(wishes.size());
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    out[i] = best_place(field, i);
    if (out[i]) field.taken.push_back(*out[i]);
  }
  return out;
}

bool apart(const Rect& label, const Rect& of) noexcept {
  const double near = label.height() / 2;
  return label.x0 > of.x1 + near || label.x1 < of.x0 - near || label.y0 > of.y1 + near || label.y1 < of.y0 - near;
}

}  // namespace leat::tools::draw
