// A set of indexes below a fixed size, as bits in two levels: who is in it is found without looking at who is not.
//
// Thread rule: one thread. insert() and erase() O(1), whether it was in or not; for_each() O(size / 4096 + found).
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "engine/core/snapshot.h"
#include "engine/core/types.h"

namespace leat::core {

class TaskSet {
 public:
  explicit TaskSet(std::uint32_t size) : words_((size + 63) / 64), groups_((words_.size() + 63) / 64) {}

  void insert(std::uint32_t id) noexcept {
    words_[id / 64] |= bit(id % 64);
    groups_[id / 4096] |= bit(id / 64 % 64);
  }
  void erase(std::uint32_t id) noexcept {
    if ((words_[id / 64] &= ~bit(id % 64)) == 0) groups_[id / 4096] &= ~bit(id / 64 % 64);
  }
  [[nodiscard]] bool has(std::uint32_t id) const noexcept { return (words_[id / 64] & bit(id % 64)) != 0; }

  // Ascending. `each` changes nothing here.
  template <class Each>
  void for_each(Each&& each) const {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      for (std::uint64_t group = groups_[g]; group != 0; group &= group - 1) {
        const std::size_t w = g * 64 + static_cast<std::size_t>(std::countr_zero(group));
        for (std::uint64_t word = words_[w]; word != 0; word &= word - 1)
          each(static_cast<std::uint32_t>(w * 64 + static_cast<std::size_t>(std::countr_zero(word))));
      }
    }
  }
  void visit_state(Snapshot& state) { state(words_, groups_); }

 private:
  static std::uint64_t bit(std::uint32_t i) noexcept { return std::uint64_t{1} << i; }
  std::vector<std::uint64_t> words_, groups_;  // groups_: bit: that word is not empty
};

}  // namespace leat::core
