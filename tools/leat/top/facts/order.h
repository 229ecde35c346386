// The order of rows: who suffers first, and rows that stand still. A row overtakes another only where it is worse by a
// quarter and by a point, twice running; who suffers anew joins below; who recovers keeps his place for a while. The
// row under the cursor, and pinned ones, are passed by nobody. Pure.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tools/leat/top/facts/figures.h"

namespace leat::tools::top {

inline constexpr std::int64_t kSortNs = 5 * kSecondNs, kRecoverNs = 15 * kSecondNs;

// What a row is sorted by; larger comes first.
using Worth = std::function<double(const StreamFigures&)>;
[[nodiscard]] double suffering(const StreamFigures& stream) noexcept;

class Order {
 public:
  struct Wishes {
    const Worth* by = nullptr;  // null: who suffers
    bool by_name = false;       // then `by` is not asked
    bool reversed = false;
    bool frozen = false;        // nothing moves
    std::optional<Key> cursor;  // the row that the user stands on
    std::set<Key> pinned;
  };
  struct Group {
    std::string application;
    std::vector<Key> suffer;  // pinned ones first, then by suffering
    std::vector<Key> well;    // by name, where that is the order
  };
  // The groups of the second: an application each, in the order in which they came.
  const std::vector<Group>& step(const Second& second, const Wishes& wishes);
  // A key that sorts acts at once.
  void sort_now() noexcept { sort_at_once_ = true; }

 private:
  struct Row {
    double worth = 0, worth_before = 0;  // at the last two times of sorting
    std::int64_t well_since_ns = 0;
  };
  Group& group_of(const std::string& application);
  void step_group(const Second& second, const Wishes& wishes, bool sorts, Group* group);
  void sort_strictly(const Second& second, const Wishes& wishes, Group* group);
  void let_overtake(const Wishes& wishes, Group* group);

  std::vector<Group> groups_;
  std::map<Key, Row> rows_;
  std::int64_t sorted_ns_ = 0;
  bool sort_at_once_ = false;
};

}  // namespace leat::tools::top
