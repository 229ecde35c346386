// Unsent against a list that is sorted and searched whole.
#include "engine/core/policy/reservations/unsent.h"

#include <gtest/gtest.h>

#include <random>

namespace leat::core {
namespace {

struct Batch {
  Unsent::Entry entry;
  std::uint32_t items;
};

TEST(Unsent, IsItsTwin) {
  std::mt19937_64 random(13);
  constexpr std::uint32_t kLargest = 6;
  constexpr std::size_t kCapacity = 40;
  Unsent unsent(kCapacity, kLargest);
  std::vector<Batch> twin;  // what has found room
  BookingId next = 0;
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t what = random() % 4;
    if (what < 2) {
      const Batch b{{static_cast<TimeNs>(random() % 30), next % 7, next}, 1 + static_cast<std::uint32_t>(random() % 7)};
      ++next;
      if (twin.size() < kCapacity) twin.push_back(b);
      unsent.add(b.entry, b.items);
    } else if (!twin.empty()) {
      Batch& b = twin[random() % twin.size()];
      if (what == 2) {
        unsent.remove(b.entry, b.items);
        b = twin.back();
        twin.pop_back();
      } else {
        const auto items = 1 + static_cast<std::uint32_t>(random() % 7);
        unsent.resize(b.entry, b.items, items);
        b.items = items;
      }
    }
    unsent.resize({0, 0, next + 1}, 1, 2);  // one that was never added
    std::vector<Unsent::Entry> list;
    for (const Batch& b : twin) list.push_back(b.entry);
    std::ranges::sort(list);
    ASSERT_EQ(unsent.list(), list);

    const auto from = static_cast<TimeNs>(random() % 30), until = static_cast<TimeNs>(random() % 60);
    const std::uint64_t odd = random();
    const auto run = [&](std::uint32_t items) -> TimeNs { return (odd >> items & 1) != 0 ? -1 : 10 - 2 * items % 5; };
    const auto accepts = [&](BookingId id) { return (id * 7 + odd) % 3 == 0; };
    const Batch* best = nullptr;
    const auto key = [&](const Batch& b) { return std::pair(b.entry.start_ns + run(b.items), b.entry.place); };
    for (const Batch& b : twin) {
      const bool counts = b.items < kLargest && run(b.items) >= 0 && b.entry.start_ns >= from && key(b).first <= until;
      if (counts && accepts(b.entry.id) && (best == nullptr || key(b) < key(*best))) best = &b;
    }
    TimeNs last = INT64_MIN;
    const BookingId found = unsent.first_to_end(from, until, run, [&](BookingId id, TimeNs end) {
      EXPECT_GE(end, last);  // in order
      last = end;
      return accepts(id);
    });
    ASSERT_EQ(found == kNone, best == nullptr);
    if (best == nullptr) continue;
    const auto& it = *std::ranges::find(twin, found, [](const Batch& b) { return b.entry.id; });
    ASSERT_EQ(key(it), key(*best));
  }
}

}  // namespace
}  // namespace leat::core
