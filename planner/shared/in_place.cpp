#include "planner/shared/in_place.h"

#include <algorithm>

namespace leat::planner {

InPlaceWaves in_place_waves(std::vector<std::vector<bool>> before, const std::vector<std::vector<bool>>& after,
                            std::size_t most) {
  InPlaceWaves out;
  std::vector<std::uint32_t> left;
  for (std::uint32_t p = 0; p < before.size(); ++p)
    if (before[p] != after[p]) left.push_back(p);
  const std::size_t modules = before.empty() ? 0 : before.front().size();
  while (!left.empty()) {
    std::vector<std::size_t> holders(modules, 0), gone(modules, 0);
    for (const auto& holds : before)
      for (std::size_t m = 0; m < modules; ++m) holders[m] += holds[m] ? 1 : 0;
    std::vector<std::uint32_t> wave;
    out.bare.clear();
    for (const std::uint32_t p : left) {
      if (wave.size() == most) break;
      std::vector<std::uint32_t> bare;
      for (std::uint32_t m = 0; m < modules; ++m)
        if (before[p][m] && gone[m] + 1 > holders[m] / 2) bare.push_back(m);
      if (bare.empty()) {
        wave.push_back(p);
        for (std::size_t m = 0; m < modules; ++m) gone[m] += before[p][m] ? 1 : 0;
      } else if (wave.empty() && out.bare.empty()) {
        out.bare = std::move(bare);
      }
    }
    if (wave.empty()) return out;
    out.bare.clear();
    for (const std::uint32_t p : wave) before[p] = after[p];
    std::erase_if(left, [&](std::uint32_t p) { return std::find(wave.begin(), wave.end(), p) != wave.end(); });
    out.waves.push_back(std::move(wave));
  }
  return out;
}

namespace {

// Modules that nobody holds while these are out.
std::vector<std::uint32_t> bare_without(const std::vector<std::vector<bool>>& holds, const std::vector<bool>& out) {
  std::vector<std::uint32_t> bare;
  for (std::uint32_t m = 0; !holds.empty() && m < holds.front().size(); ++m) {
    bool held = false, known = false;
    for (std::size_t p = 0; p < holds.size(); ++p) {
      known = known || holds[p][m];
      held = held || (holds[p][m] && !out[p]);
    }
    if (known && !held) bare.push_back(m);
  }
  return bare;
}

}  // namespace

// One partition after the other goes to the first half as long as the rest can do without it: half of them, and more
// where the second half alone would hold something.
InPlaceHalves in_place_halves(const std::vector<std::vector<bool>>& before, const std::vector<std::vector<bool>>& after,
                              const std::vector<bool>& changing) {
  InPlaceHalves out{.first = std::vector<bool>(changing.size(), false), .bare_before = {}, .bare_after = {}};
  std::vector<bool> second = changing;
  std::vector<std::uint32_t> bare;
  const auto all = std::count(changing.begin(), changing.end(), true);
  std::ptrdiff_t taken = 0;
  for (std::size_t p = 0; p < changing.size(); ++p) {
    if (!changing[p] || (taken >= (all + 1) / 2 && bare_without(after, second).empty())) continue;
    out.first[p] = true;
    if (auto here = bare_without(before, out.first); !here.empty()) {
      out.first[p] = false;
      if (bare.empty()) bare = std::move(here);
      continue;
    }
    second[p] = false;
    ++taken;
  }
  if (taken == 0)
    out.bare_before = std::move(bare);
  else
    out.bare_after = bare_without(after, second);
  return out;
}

}  // namespace leat::planner
