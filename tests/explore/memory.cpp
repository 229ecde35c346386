#include "tests/explore/memory.h"

#include <cstdio>
#include <cstdlib>

#include "tests/explore/mix.h"

namespace leat::explore {
namespace {

bool acquires(std::memory_order order) {
  return order == std::memory_order_acquire || order == std::memory_order_acq_rel || order == std::memory_order_seq_cst;
}
bool releases(std::memory_order order) {
  return order == std::memory_order_release || order == std::memory_order_acq_rel || order == std::memory_order_seq_cst;
}
void require_modelled(std::memory_order order) {
  if (order != std::memory_order_seq_cst) return;
  std::fputs("explore: sequentially consistent loads and stores are not modelled\n", stderr);
  std::abort();
}

}  // namespace

void Memory::begin() {
  used_ = 0;
  actors_ = {};
  agreed_ = {};
  accesses_.clear();
}

int Memory::location(std::uintptr_t address, std::uint64_t initial) {
  for (int i = 0; i < used_; ++i)
    if (locations_[static_cast<std::size_t>(i)].address == address) return i;
  if (used_ == kLocations) {
    std::fputs("explore: a model touches too many shared words; watch fewer\n", stderr);
    std::abort();
  }
  if (static_cast<std::size_t>(used_) == locations_.size()) locations_.emplace_back();
  Location& l = locations_[static_cast<std::size_t>(used_)];
  l.address = address;
  l.stores.clear();
  l.stores.push_back({.value = initial, .name = 0, .joined = false, .view = {}});
  l.order.assign(1, 0);
  l.place.assign(1, 0);
  l.count = {};
  return used_++;
}

void Memory::join(View& into, const View& from, bool clocks) const {
  for (int i = 0; i < used_; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const Location& l = locations_[at];
    if (place(l, from.store[at]) > place(l, into.store[at])) into.store[at] = from.store[at];
  }
  if (!clocks) return;
  for (std::size_t a = 0; a < kActors; ++a)
    if (from.clock[a] > into.clock[a]) into.clock[a] = from.clock[a];
}

void Memory::read(int actor, int location, int number, std::memory_order order) {
  Actor& a = actors_[static_cast<std::size_t>(actor)];
  const auto at = static_cast<std::size_t>(location);
  const Location& l = locations_[at];
  const Store& s = l.stores[static_cast<std::size_t>(number)];
  a.now.store[at] = static_cast<std::uint8_t>(number);
  join(acquires(order) ? a.now : a.pending, s.view);
  learn(actor, mix(l.address, s.name));
}

std::uint64_t Memory::load(int actor, int location, std::memory_order order, bool newest) {
  require_modelled(order);
  Actor& a = actors_[static_cast<std::size_t>(actor)];
  ++a.now.clock[static_cast<std::size_t>(actor)];
  const Location& l = locations_[static_cast<std::size_t>(location)];
  const int oldest = place(l, a.now.store[static_cast<std::size_t>(location)]);
  const int last = static_cast<int>(l.order.size()) - 1;
  const int number = l.order[static_cast<std::size_t>(last - (newest ? 0 : choices_.pick(last - oldest + 1)))];
  read(actor, location, number, order);
  return l.stores[static_cast<std::size_t>(number)].value;
}

// Makes `made` stand at `place` in modification order.
void Memory::insert(int actor, int location, int place, Store made) {
  const auto at = static_cast<std::size_t>(location);
  Location& l = locations_[at];
  const auto number = static_cast<std::uint8_t>(l.stores.size());
  made.name = static_cast<std::uint32_t>(actor + 1) << 16 | ++l.count[static_cast<std::size_t>(actor)];
  made.view.store[at] = number;
  l.stores.push_back(made);
  l.order.insert(l.order.begin() + place, number);
  l.place.resize(l.order.size());
  for (std::size_t i = static_cast<std::size_t>(place); i < l.order.size(); ++i)
    l.place[l.order[i]] = static_cast<std::uint8_t>(i);
  actors_[static_cast<std::size_t>(actor)].now.store[at] = number;
}

void Memory::store(int actor, int location, std::uint64_t value, std::memory_order order) {
  require_modelled(order);
  Actor& a = actors_[static_cast<std::size_t>(actor)];
  ++a.now.clock[static_cast<std::size_t>(actor)];
  const Location& l = locations_[static_cast<std::size_t>(location)];
  std::array<int, 256> places;
  int count = 0;
  for (int p = static_cast<int>(l.order.size()); p > place(l, a.now.store[static_cast<std::size_t>(location)]); --p)
    if (static_cast<std::size_t>(p) == l.order.size() || !l.stores[l.order[static_cast<std::size_t>(p)]].joined)
      places[static_cast<std::size_t>(count++)] = p;
  const int p = places[static_cast<std::size_t>(choices_.pick(count))];
  insert(actor, location, p,
         {.value = value, .name = 0, .joined = false, .view = releases(order) ? a.now : a.released});
}

bool Memory::compare_exchange(int actor, int location, std::uint64_t& expected, std::uint64_t desired,
                              std::memory_order success, std::memory_order failure) {
  require_modelled(success);
  Actor& a = actors_[static_cast<std::size_t>(actor)];
  ++a.now.clock[static_cast<std::size_t>(actor)];
  const Location& l = locations_[static_cast<std::size_t>(location)];
  std::array<int, 256> places;
  int count = 0;
  for (int p = static_cast<int>(l.order.size()) - 1; p >= place(l, a.now.store[static_cast<std::size_t>(location)]);
       --p) {
    const auto behind = static_cast<std::size_t>(p) + 1;
    const bool taken = behind < l.order.size() && l.stores[l.order[behind]].joined;
    if (!taken || l.stores[l.order[static_cast<std::size_t>(p)]].value != expected)
      places[static_cast<std::size_t>(count++)] = p;
  }
  const int p = places[static_cast<std::size_t>(choices_.pick(count))];
  const int number = l.order[static_cast<std::size_t>(p)];
  const Store was = l.stores[static_cast<std::size_t>(number)];
  const bool same = was.value == expected;
  read(actor, location, number, same ? success : failure);
  if (!same) {
    expected = was.value;
    return false;
  }
  Store made{.value = desired, .name = 0, .joined = true, .view = releases(success) ? a.now : a.released};
  join(made.view, was.view);  // it continues the release sequence
  insert(actor, location, p + 1, made);
  return true;
}

void Memory::fence(int actor, std::memory_order order) {
  Actor& a = actors_[static_cast<std::size_t>(actor)];
  ++a.now.clock[static_cast<std::size_t>(actor)];
  if (acquires(order)) join(a.now, a.pending);
  if (order == std::memory_order_seq_cst) {
    join(a.now, agreed_, false);
    agreed_.store = a.now.store;
    learn(actor, known(a.now));
  }
  if (releases(order)) a.released = a.now;
}

bool Memory::plain(int actor, std::uintptr_t begin, std::size_t bytes, bool writes) {
  Actor& a = actors_[static_cast<std::size_t>(actor)];
  ++a.now.clock[static_cast<std::size_t>(actor)];
  return access({begin, begin + bytes, actor, a.now.clock[static_cast<std::size_t>(actor)], writes, true});
}

bool Memory::atomic(int actor, std::uintptr_t begin, std::size_t bytes, bool writes) {
  const Actor& a = actors_[static_cast<std::size_t>(actor)];
  const auto next = static_cast<std::uint16_t>(a.now.clock[static_cast<std::size_t>(actor)] + 1);
  return access({begin, begin + bytes, actor, next, writes, false});
}

// Keeps the latest access of a kind: who is ordered behind it is ordered behind all of them.
bool Memory::access(const Access& made) {
  const View& now = actors_[static_cast<std::size_t>(made.actor)].now;
  bool known_kind = false;
  for (Access& other : accesses_) {
    if (other.actor == made.actor) {
      if (other.begin != made.begin || other.end != made.end || other.writes != made.writes ||
          other.plain != made.plain)
        continue;
      other.clock = made.clock;
      known_kind = true;
    } else if (other.begin < made.end && made.begin < other.end && (other.writes || made.writes) &&
               (other.plain || made.plain) && now.clock[static_cast<std::size_t>(other.actor)] < other.clock) {
      return false;
    }
  }
  if (!known_kind) accesses_.push_back(made);
  return true;
}

std::uint64_t Memory::newest(int location) const {
  const Location& l = locations_[static_cast<std::size_t>(location)];
  return l.stores[l.order.back()].value;
}

void Memory::learn(int actor, std::uint64_t what) noexcept {
  std::uint64_t& history = actors_[static_cast<std::size_t>(actor)].history;
  history = mix(history, what);
}

// Sums: the order in which locations were found does not matter.
std::uint64_t Memory::known(const View& view) const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(used_); ++i)
    if (const std::uint32_t name = locations_[i].stores[view.store[i]].name; name != 0)
      sum += mix(locations_[i].address, name);
  return sum;
}

std::uint64_t Memory::state() const {
  std::uint64_t hash = known(agreed_);
  for (const Actor& a : actors_) hash = mix(hash, a.history);
  for (std::size_t i = 0; i < static_cast<std::size_t>(used_); ++i) {
    const Location& l = locations_[i];
    int writers = 0;
    for (const auto count : l.count) writers += count != 0 ? 1 : 0;
    if (writers < 2) continue;  // else the order is the writer's own
    std::uint64_t order = l.address;
    for (const auto number : l.order) order = mix(order, l.stores[number].name);
    hash += order;
  }
  return hash;
}

}  // namespace leat::explore
