#include "engine/core/streams/users.h"

#include <algorithm>
#include <limits>

namespace leat::core::streams {

double fair_level(std::span<const Portion> portions, double capacity) noexcept {
  double wanted = 0, low = 0, high = 0;
  for (const Portion& p : portions) {
    wanted += p.wants;
    high = std::max(high, (p.elsewhere + p.wants) / p.weight);
  }
  if (wanted <= capacity) return std::numeric_limits<double>::infinity();
  for (int halvings = 0; halvings < 30; ++halvings) {
    const double level = (low + high) / 2;
    double held = 0;
    for (const Portion& p : portions) held += std::clamp(p.weight * level - p.elsewhere, 0.0, p.wants);
    (held < capacity ? low : high) = level;
  }
  return high;
}

Users::Users(std::uint32_t users, const MarginSettings& margin) : margin_(margin) { users_.reserve(users); }

std::uint32_t Users::of(std::uint32_t id, double weight) noexcept {
  auto found = std::find_if(users_.begin(), users_.end(), [&](const User& u) { return u.id == id; });
  if (found == users_.end()) {
    User comes{.id = id, .margin = SharedMargin(margin_)};
    if (users_.size() < users_.capacity()) {
      users_.push_back(comes);
      found = users_.end() - 1;
    } else {  // the place of whoever came first of those that have gone
      const auto gone_first = [](const User& a, const User& b) {
        return (a.places > 0) != (b.places > 0) ? b.places > 0 : a.turn < b.turn;
      };
      found = std::min_element(users_.begin(), users_.end(), gone_first);
      *found = comes;
    }
    found->turn = ++turns_;
  }
  found->weight = weight;
  return static_cast<std::uint32_t>(found - users_.begin());
}

}  // namespace leat::core::streams
