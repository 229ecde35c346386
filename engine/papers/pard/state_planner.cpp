#include "engine/papers/pard/state_planner.h"

#include <algorithm>
#include <array>

namespace leat::papers {

StatePlanner::StatePlanner(const Topology& topology, const Settings& settings, std::uint32_t draws, std::uint64_t seed)
    : topology_(topology), settings_(settings), draws_(std::max(1u, draws)), random_(seed) {
  recent_.resize(topology.modules.size());
  for (Recent& r : recent_) {
    r.queue = SlidingWindow(settings.window_ns);
    r.ring.resize(kRecent);
    r.after.resize(draws_);
  }
  estimates_.modules.resize(topology.modules.size());
}

void StatePlanner::add(std::span<const Sample> samples) noexcept {
  for (const Sample& s : samples) {
    if (s.module >= recent_.size()) continue;
    Recent& r = recent_[s.module];
    r.queue.roll(s.at_ns);
    r.queue.add(s.queue_ns);
    r.ring[(r.first + r.count) % kRecent] = s;
    if (r.count < kRecent) {
      ++r.count;
    } else {
      r.first = (r.first + 1) % kRecent;
    }
  }
}

const Estimates& StatePlanner::update(TimeNs now) noexcept {
  for (std::size_t m = 0; m < recent_.size(); ++m) {
    Recent& r = recent_[m];
    r.queue.roll(now);
    while (r.count > 0 && r.ring[r.first].at_ns < now - settings_.window_ns) {
      r.first = (r.first + 1) % kRecent;
      --r.count;
    }
    TimeNs worst = 0;
    for (std::size_t i = 0; i < r.count; ++i) {
      const Sample& s = r.ring[(r.first + i) % kRecent];
      worst = std::max(worst, s.queue_ns + s.wait_ns + s.run_ns);
    }
    estimates_.modules[m] = {.queue_ns = r.queue.mean(), .wait_after_ns = 0, .worst_ns = worst};
  }
  if (settings_.quantile) {
    for (const ApplicationSpec& app : topology_.applications) draw(app);
  }
  return estimates_;
}

void StatePlanner::draw(const ApplicationSpec& app) noexcept {
  const ModuleId first = app.modules.front();
  std::array<TimeNs, kMaxModulesPerApplication> path{};  // drawn wait at module i and the worst after it
  for (std::uint32_t n = 0; n < draws_; ++n) {
    for (std::size_t i = app.modules.size(); i-- > 0;) {
      const ModuleId m = app.modules[i];
      Recent& r = recent_[m];
      TimeNs after = 0;
      for (ModuleId next : topology_.modules[m].after) after = std::max(after, path[next - first]);
      r.after[n] = after;
      random_ = random_ * 6364136223846793005u + 1442695040888963407u;
      path[m - first] = after + (r.count == 0 ? 0 : r.ring[(r.first + (random_ >> 33) % r.count) % kRecent].wait_ns);
    }
  }
  for (ModuleId m : app.modules) {
    std::vector<TimeNs>& draws = recent_[m].after;
    const auto at = static_cast<std::ptrdiff_t>(std::uint64_t{draws_ - 1} * settings_.lambda_permille / 1000);
    std::nth_element(draws.begin(), draws.begin() + at, draws.end());
    estimates_.modules[m].wait_after_ns = draws[static_cast<std::size_t>(at)];
  }
}

}  // namespace leat::papers
