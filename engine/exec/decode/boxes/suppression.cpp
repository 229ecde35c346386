#include "engine/exec/decode/boxes/suppression.h"

#include <algorithm>
#include <cmath>

namespace leat::exec {
namespace {

// A turned box as a Gaussian: the covariance matrix [a c; c b].
struct Covariance {
  double a, b, c;

  explicit Covariance(const Candidate& f) noexcept {
    const double x = f.w * f.w / 12.0, y = f.h * f.h / 12.0, cosine = std::cos(f.angle), sine = std::sin(f.angle);
    a = x * cosine * cosine + y * sine * sine;
    b = x * sine * sine + y * cosine * cosine;
    c = (x - y) * cosine * sine;
  }
  [[nodiscard]] double determinant() const noexcept { return std::max(a * b - c * c, 0.0); }
};

bool better(const Candidate& a, const Candidate& b) noexcept {
  if (a.score != b.score) return a.score > b.score;
  return a.output != b.output ? a.output < b.output : a.source < b.source;
}

}  // namespace

float probabilistic_iou(const Candidate& p, const Candidate& q) noexcept {
  constexpr double kTiny = 1e-7;
  const Covariance one(p), two(q);
  const double a = one.a + two.a, b = one.b + two.b, c = one.c + two.c, dx = p.cx - q.cx, dy = p.cy - q.cy;
  const double det = a * b - c * c + kTiny;
  // The three terms of the Bhattacharyya distance.
  const double along = (a * dy * dy + b * dx * dx) / det / 4, across = c * -dx * dy / det / 2;
  const double spread =
      std::log((a * b - c * c) / (4 * std::sqrt(one.determinant() * two.determinant()) + kTiny) + kTiny) / 2;
  const double distance = std::clamp(along + across + spread, kTiny, 100.0);
  return static_cast<float>(1 - std::sqrt(1 - std::exp(-distance) + kTiny));
}

std::uint32_t suppress(std::span<Candidate> candidates, float iou_max, std::uint32_t max, Overlap overlap) noexcept {
  std::sort(candidates.begin(), candidates.end(), better);  // std::stable_sort would allocate
  std::uint32_t kept = 0;
  for (const Candidate& candidate : candidates) {
    if (kept == max) break;
    const Candidate c = candidate;  // its place may be written to below
    const auto hides = [&](const Candidate& k) {
      if (k.class_id != c.class_id) return false;
      return (overlap == Overlap::turned ? probabilistic_iou(k, c) : iou(k.corners(), c.corners())) > iou_max;
    };
    if (iou_max >= 1 || std::none_of(candidates.begin(), candidates.begin() + kept, hides)) candidates[kept++] = c;
  }
  return kept;
}

}  // namespace leat::exec
