// Stands in the place of shm/src/rings/fences.h where the explorer compiles what lies in shm/src: the same names, every
// access told to the explorer with its place in the source.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <type_traits>

#include "tests/explore/explorer.h"

namespace leat::shm {

template <class T>
class atomic_ref {
 public:
  using Place = std::source_location;

  explicit atomic_ref(T& word) noexcept : word_(&word) {}

  T load(std::memory_order order, Place at = Place::current()) const noexcept {
    return from(explore::load(word_, sizeof(T), order, at));
  }
  void store(T value, std::memory_order order, Place at = Place::current()) const noexcept {
    explore::store(word_, sizeof(T), bits(value), order, at);
  }
  bool compare_exchange_strong(T& expected, T desired, std::memory_order success, std::memory_order failure,
                               Place at = Place::current()) const noexcept {
    std::uint64_t was = bits(expected);
    const bool done = explore::compare_exchange(word_, sizeof(T), was, bits(desired), success, failure, at);
    expected = from(was);
    return done;
  }

 private:
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));
  static std::uint64_t bits(T value) noexcept {
    std::uint64_t all = 0;
    std::memcpy(&all, &value, sizeof value);
    return all;
  }
  static T from(std::uint64_t all) noexcept {
    T value;
    std::memcpy(&value, &all, sizeof value);
    return value;
  }
  T* word_;
};

inline void full_fence(std::source_location at = std::source_location::current()) noexcept {
  explore::fence(std::memory_order_seq_cst, at);
}
inline void acquire_fence(std::source_location at = std::source_location::current()) noexcept {
  explore::fence(std::memory_order_acquire, at);
}
inline void release_fence(std::source_location at = std::source_location::current()) noexcept {
  explore::fence(std::memory_order_release, at);
}

template <class T>
inline void copy_once(T& local, const T* shared) noexcept {
  explore::read_plain(shared, sizeof(T));
  std::memcpy(static_cast<void*>(&local), static_cast<const void*>(shared), sizeof(T));
}
inline void copy_in(void* shared, const void* local, std::size_t bytes) noexcept {
  explore::write_plain(shared, bytes);
  std::memcpy(shared, local, bytes);
}

}  // namespace leat::shm
