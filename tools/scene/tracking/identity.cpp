#include "tools/scene/tracking/identity.h"

#include <algorithm>
#include <vector>

#include "shm/src/tracks/assignment.h"
#include "shm/src/tracks/box_filter.h"

namespace leat::scene {
namespace {

constexpr float kAgree = 0.5f;

tracks::Box box_of(const auto& o) { return {o.x0, o.y0, o.x1, o.y1}; }

}  // namespace

void IdentityMeter::add(std::span<const Object> truth, std::span<const leat_detection> found,
                        std::span<const std::uint64_t> ids) {
  for (const Object& o : truth)
    if (!o.ignore) ++true_[o.id];
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (ids[i] == 0) continue;
    const auto agree = [&](const Object& o) { return overlap(box_of(o), box_of(found[i])) >= kAgree; };
    const auto on = [&](bool ignored) {
      return std::any_of(truth.begin(), truth.end(), [&](const Object& o) { return o.ignore == ignored && agree(o); });
    };
    if (!on(false) && on(true)) continue;
    ++given_[ids[i]];
    for (const Object& o : truth)
      if (!o.ignore && agree(o)) ++together_[{o.id, ids[i]}];
  }
}

IdentityMeter::Counts IdentityMeter::counts() const {
  Counts out;
  for (const auto* counts : {&true_, &given_})
    for (const auto& [id, frames] : *counts) out.all += frames;
  std::vector<float> costs;
  for (const auto& [object, a] : true_) {
    for (const auto& [identity, b] : given_) {
      const auto it = together_.find({object, identity});
      costs.push_back(it == together_.end() ? 0.0f : -static_cast<float>(it->second));
    }
  }
  tracks::Assignment assignment;
  const auto with = assignment.solve(costs, true_.size(), given_.size(), 0);
  for (std::size_t row = 0; row < with.size(); ++row)
    if (with[row] != tracks::Assignment::kNone)
      out.right += static_cast<std::uint64_t>(-costs[row * given_.size() + static_cast<std::size_t>(with[row])]);
  return out;
}

}  // namespace leat::scene
