#include "tools/base/text/nearest.h"

#include <algorithm>
#include <vector>

namespace leat::text {

std::string nearest(std::string_view word, std::span<const std::string> names) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& name : names) {
    if (word.size() >= 3 && name.starts_with(word)) return name;
    // Edit distance with neighbours swapped counted as one (optimal string alignment), three rows at a time.
    std::vector<std::size_t> before(name.size() + 1), row(name.size() + 1), next(name.size() + 1);
    for (std::size_t j = 0; j <= name.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= word.size(); ++i) {
      next[0] = i;
      for (std::size_t j = 1; j <= name.size(); ++j) {
        next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (word[i - 1] == name[j - 1] ? 0U : 1U)});
        if (i > 1 && j > 1 && word[i - 1] == name[j - 2] && word[i - 2] == name[j - 1])
          next[j] = std::min(next[j], before[j - 2] + 1);
      }
      before.swap(row);
      row.swap(next);
    }
    if (row[name.size()] < best_distance && row[name.size()] < name.size()) {
      best_distance = row[name.size()];
      best = name;
    }
  }
  return best;
}

}  // namespace leat::text
