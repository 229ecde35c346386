#include "tools/leat/top/facts/order.h"

#include <algorithm>

#include "tools/leat/top/facts/text.h"

namespace leat::tools::top {

double suffering(const StreamFigures& s) noexcept {
  const double miss = known(s.miss10) ? s.miss10 : known(s.miss) ? s.miss : 0;
  if (s.mark == Mark::near && known(s.p99_minute) && known(s.who->slo_ms)) return s.p99_minute / s.who->slo_ms;
  // A silent stream loses all of what it sent before: it comes before who loses a part.
  return s.mark == Mark::silent ? 100 : s.mark == Mark::failing ? 100 + miss : miss;
}

Order::Group& Order::group_of(const std::string& application) {
  for (Group& group : groups_)
    if (group.application == application) return group;
  return groups_.emplace_back(Group{application, {}, {}});
}

const std::vector<Order::Group>& Order::step(const Second& second, const Wishes& wishes) {
  if (wishes.frozen && !sort_at_once_) return groups_;
  const bool sorts = sort_at_once_ || sorted_ns_ == 0 || second.at_ns - sorted_ns_ >= kSortNs;
  std::map<Key, const StreamFigures*> live;
  for (const StreamFigures& s : second.streams) {
    live[s.who->key] = &s;
    (void)group_of(s.who->application);
    Row& row = rows_[s.who->key];
    const bool suffers = s.mark != Mark::well;
    if (suffers) row.well_since_ns = 0;
    if (!suffers && row.well_since_ns == 0) row.well_since_ns = second.at_ns;
    if (!sorts) continue;
    row.worth_before = row.worth;
    row.worth = wishes.by != nullptr ? (*wishes.by)(s) : suffering(s);
  }
  for (Group& group : groups_) step_group(second, wishes, sorts, &group);
  std::erase_if(groups_, [](const Group& g) { return g.suffer.empty() && g.well.empty(); });
  std::erase_if(rows_, [&](const auto& entry) { return !live.contains(entry.first); });
  if (sorts) sorted_ns_ = second.at_ns;
  sort_at_once_ = false;
  return groups_;
}

void Order::step_group(const Second& second, const Wishes& wishes, bool sorts, Group* group) {
  const bool all = wishes.by != nullptr || wishes.by_name;  // a chosen column sorts everybody
  std::map<Key, const StreamFigures*> of_group;
  for (const StreamFigures& s : second.streams)
    if (s.who->application == group->application) of_group[s.who->key] = &s;
  // Who is gone leaves; who has recovered, or suffers no longer in this order, after his time.
  std::erase_if(group->suffer, [&](Key key) {
    const auto found = of_group.find(key);
    if (found == of_group.end()) return true;
    if (all || wishes.pinned.contains(key) || wishes.cursor == key) return false;
    const Row& row = rows_[key];
    return row.well_since_ns != 0 && second.at_ns - row.well_since_ns >= kRecoverNs;
  });
  std::vector<Key> joins;
  for (const auto& [key, s] : of_group) {
    if (std::find(group->suffer.begin(), group->suffer.end(), key) != group->suffer.end()) continue;
    if (all || s->mark != Mark::well || wishes.pinned.contains(key)) joins.push_back(key);
  }
  std::stable_sort(joins.begin(), joins.end(), [&](Key a, Key b) {
    const double x = suffering(*of_group[a]), y = suffering(*of_group[b]);
    return x != y ? x > y : natural_less(of_group[a]->who->name, of_group[b]->who->name);
  });
  group->suffer.insert(group->suffer.end(), joins.begin(), joins.end());
  group->well.clear();
  for (const auto& [key, s] : of_group)
    if (std::find(group->suffer.begin(), group->suffer.end(), key) == group->suffer.end()) group->well.push_back(key);
  std::stable_sort(group->well.begin(), group->well.end(), [&](Key a, Key b) {
    const bool less = natural_less(of_group[a]->who->name, of_group[b]->who->name);
    return less;
  });
  if (sort_at_once_)
    sort_strictly(second, wishes, group);
  else if (sorts && !wishes.by_name)
    let_overtake(wishes, group);
}

void Order::sort_strictly(const Second& second, const Wishes& wishes, Group* group) {
  std::map<Key, std::string> names;
  for (const StreamFigures& s : second.streams) names[s.who->key] = s.who->name;
  std::stable_sort(group->suffer.begin(), group->suffer.end(), [&](Key a, Key b) {
    const bool x = wishes.pinned.contains(a), y = wishes.pinned.contains(b);
    if (x != y) return x;
    if (wishes.by_name) return wishes.reversed ? natural_less(names[b], names[a]) : natural_less(names[a], names[b]);
    return wishes.reversed ? rows_[a].worth < rows_[b].worth : rows_[a].worth > rows_[b].worth;
  });
}

void Order::let_overtake(const Wishes& wishes, Group* group) {
  const auto fixed = [&](Key key) { return wishes.cursor == key || wishes.pinned.contains(key); };
  const auto worse = [&](double a, double b) {
    if (wishes.reversed) std::swap(a, b);
    return a >= b + 1 && a >= 1.25 * b;
  };
  auto& list = group->suffer;
  for (std::size_t i = 1; i < list.size(); ++i) {
    for (std::size_t k = i; k > 0; --k) {
      const Row &row = rows_[list[k]], &above = rows_[list[k - 1]];
      if (fixed(list[k]) || fixed(list[k - 1]) || !worse(row.worth, above.worth) ||
          !worse(row.worth_before, above.worth_before))
        break;
      std::swap(list[k], list[k - 1]);
    }
  }
}

}  // namespace leat::tools::top
