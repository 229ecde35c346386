// A table of fixed size with a free list. Indexes are stable; a generation per slot makes stale handles harmless.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "engine/core/snapshot.h"
#include "engine/core/types.h"

namespace leat::core {

template <class T>
class Pool {
 public:
  explicit Pool(std::uint32_t size) : slots_(size), generation_(size, 1), given_((size + 63) / 64) {
    free_.reserve(size);
    for (std::uint32_t i = size; i > 0; --i) free_.push_back(i - 1);
  }
  [[nodiscard]] std::uint32_t take() noexcept {  // kNone: none left
    if (free_.empty()) return kNone;
    const std::uint32_t i = free_.back();
    free_.pop_back();
    return i;
  }
  void give(std::uint32_t i) noexcept {
    ++generation_[i];
    free_.push_back(i);  // never beyond the reserved size
  }
  [[nodiscard]] T& operator[](std::uint32_t i) noexcept { return slots_[i]; }
  [[nodiscard]] const T& operator[](std::uint32_t i) const noexcept { return slots_[i]; }
  [[nodiscard]] T* data() noexcept { return slots_.data(); }
  [[nodiscard]] const T* data() const noexcept { return slots_.data(); }
  [[nodiscard]] std::uint32_t generation(std::uint32_t i) const noexcept { return generation_[i]; }
  [[nodiscard]] bool valid(std::uint32_t i, std::uint32_t generation) const noexcept {
    return i < slots_.size() && generation_[i] == generation;
  }
  [[nodiscard]] std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(slots_.size()); }
  [[nodiscard]] std::uint32_t left() const noexcept { return static_cast<std::uint32_t>(free_.size()); }

  // Ascending; O(size).
  template <class Each>
  void each_taken(Each&& each) const {
    std::ranges::fill(given_, 0);
    for (const std::uint32_t i : free_) given_[i / 64] |= std::uint64_t{1} << (i % 64);
    for (std::uint32_t word = 0; word < given_.size(); ++word) {
      for (std::uint64_t left = ~given_[word]; left != 0; left &= left - 1) {
        const std::uint32_t i = word * 64 + static_cast<std::uint32_t>(std::countr_zero(left));
        if (i >= size()) return;
        each(i);
      }
    }
  }
  void visit_state(Snapshot& state) {
    state.runs(generation_);
    state.runs(free_);
    for (const std::uint32_t i : free_)
      if (i >= size()) return state.fail();
    each_taken([&](std::uint32_t i) { state(slots_[i]); });
  }

 private:
  std::vector<T> slots_;
  std::vector<std::uint32_t> generation_;
  std::vector<std::uint32_t> free_;
  mutable std::vector<std::uint64_t> given_;  // scratch: bit: it is not taken
};

}  // namespace leat::core
