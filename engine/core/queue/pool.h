// A table of fixed size with a free list. Indexes are stable; a generation per slot makes stale handles harmless.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/core/types.h"

namespace leat::core {

template <class T>
class Pool {
 public:
  explicit Pool(std::uint32_t size) : slots_(size), generation_(size, 1) {
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

 private:
  std::vector<T> slots_;
  std::vector<std::uint32_t> generation_;
  std::vector<std::uint32_t> free_;
};

}  // namespace leat::core
