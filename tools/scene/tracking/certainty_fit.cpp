#include "tools/scene/tracking/certainty_fit.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace leat::scene {
namespace {

constexpr double kRidge = 0.3;     // of a term's own sum of squares
constexpr double kHalfWeight = 8;  // frames after the answer
constexpr double kMuch = 0.06;     // lost
constexpr std::uint32_t kFirst = 2, kLast = 24;

double correlation(std::span<const std::pair<double, double>> both) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0;
  for (const auto& [a, b] : both) n += 1, x += a, y += b, xx += a * a, xy += a * b, yy += b * b;
  const double spread = (n * xx - x * x) * (n * yy - y * y);
  return spread > 0 ? (n * xy - x * y) / std::sqrt(spread) : 0;
}

// Of (told, lost much): the chance that one that has is told to be more than one that has not, ties half.
double told_apart(std::vector<std::pair<double, bool>> all) {
  std::sort(all.begin(), all.end());
  double pairs = 0, below = 0, have = 0;
  for (std::size_t i = 0; i < all.size();) {
    std::size_t end = i;
    double with = 0, without = 0;
    for (; end < all.size() && all[end].first == all[i].first; ++end) (all[end].second ? with : without) += 1;
    pairs += with * (below + without / 2);
    below += without;
    have += with;
    i = end;
  }
  return have > 0 && below > 0 ? pairs / (have * below) : 0;
}

}  // namespace

void CertaintyFit::add(const CertaintyTerms& terms, std::uint32_t stride, double lost) {
  const double weight = kHalfWeight / (kHalfWeight + stride);
  for (std::size_t i = 0; i < kCertaintyTerms; ++i) {
    const double of = weight * static_cast<double>(terms[i]);
    for (std::size_t k = 0; k < kCertaintyTerms; ++k) products_[i][k] += of * static_cast<double>(terms[k]);
    with_lost_[i] += of * lost;
  }
}

void CertaintyFit::add(const DropTable& t) {
  for (std::size_t i = 0; i < t.drop.size(); ++i)
    if (const auto stride = static_cast<std::uint32_t>(i % DropTable::kStrides); stride > 0)
      add(t.terms[i], stride, static_cast<double>(t.drop[i]));
}

// Cholesky's method, with what a term has of its own made a little more.
CertaintyRule CertaintyFit::rule() const {
  auto l = products_;
  for (std::size_t i = 0; i < kCertaintyTerms; ++i) l[i][i] = l[i][i] * (1 + kRidge) + 1e-9;
  for (std::size_t i = 0; i < kCertaintyTerms; ++i) {
    for (std::size_t k = 0; k <= i; ++k) {
      double sum = l[i][k];
      for (std::size_t j = 0; j < k; ++j) sum -= l[i][j] * l[k][j];
      l[i][k] = i == k ? std::sqrt(std::max(sum, 1e-12)) : sum / l[k][k];
    }
  }
  Row w = with_lost_;
  for (std::size_t i = 0; i < kCertaintyTerms; ++i) {
    for (std::size_t k = 0; k < i; ++k) w[i] -= l[i][k] * w[k];
    w[i] /= l[i][i];
  }
  for (std::size_t i = kCertaintyTerms; i-- > 0;) {
    for (std::size_t k = i + 1; k < kCertaintyTerms; ++k) w[i] -= l[k][i] * w[k];
    w[i] /= l[i][i];
  }
  CertaintyRule out;
  for (std::size_t i = 0; i < kCertaintyTerms; ++i) out.weight[i] = static_cast<float>(w[i]);
  return out;
}

CertaintyWorth worth(const DropTable& t) {
  CertaintyWorth out;
  for (std::size_t a = 0; a < kWorthAges.size(); ++a) {
    std::vector<std::pair<double, double>> both;
    for (std::size_t i = kWorthAges[a]; i < t.drop.size(); i += DropTable::kStrides)
      both.emplace_back(t.expects[i], t.drop[i]);
    out.at[a] = correlation(both);
  }
  std::vector<std::pair<double, bool>> told, age;
  for (std::size_t i = 0; i < t.drop.size(); ++i) {
    const auto stride = i % DropTable::kStrides;
    if (stride < kFirst || stride > kLast) continue;
    told.emplace_back(t.expects[i], static_cast<double>(t.drop[i]) > kMuch);
    age.emplace_back(static_cast<double>(stride), told.back().second);
  }
  out.late = told_apart(std::move(told));
  out.late_by_age = told_apart(std::move(age));
  return out;
}

}  // namespace leat::scene
