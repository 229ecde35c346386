// A core's whole state as bytes, and back: everything that later decisions depend on and that its set-up does not give.
// Each class says in one function, visit_state(), what of it that is; the same function writes and reads, so that the
// two cannot differ. What is left out is what set-up makes anew (topology, tables of a plan, capacities) and what one
// event leaves to no other (scratch).
//
// Plain values go as they lie in memory, so a state can be read only by a core of the same set-up and the same build.
// Reading checks sizes and nothing else: who reads bytes from elsewhere proves first that they are what was written.
//
// No allocation while writing. One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace leat::core {

class Snapshot {
 public:
  [[nodiscard]] static Snapshot writing(std::span<std::byte> to) noexcept { return {to.data(), to.size(), false}; }
  [[nodiscard]] static Snapshot reading(std::span<const std::byte> from) noexcept {
    return {const_cast<std::byte*>(from.data()), from.size(), true};  // which reading leaves alone
  }

  [[nodiscard]] bool reads() const noexcept { return reads_; }
  // There was room for everything, or everything was there.
  [[nodiscard]] bool ok() const noexcept { return ok_; }
  void fail() noexcept {
    ok_ = false;
    left_ = 0;
  }
  [[nodiscard]] std::size_t left() const noexcept { return left_; }

  // A class with visit_state(), a plain value without pointers, or a vector, array or unique_ptr of such.
  template <class... T>
  void operator()(T&... values) {
    (one(values), ...);
  }

  // Of a table those of which worth(i) is true; the others are as set-up makes them.
  template <class T, class Worth>
  void some(std::vector<T>& table, Worth&& worth) {
    std::uint32_t i = 0;
    const auto size = static_cast<std::uint32_t>(table.size());
    if (reads_) {
      for (;;) {
        plain(i);
        if (i >= size || !ok_) return ok_ && i == size ? void() : fail();
        one(table[i]);
      }
    }
    for (; i < size; ++i) {
      if (!worth(i)) continue;
      plain(i);
      one(table[i]);
    }
    plain(i);
  }
  // The same, of plain values those that differ from a new one.
  template <class T>
  void changed(std::vector<T>& table) {
    const T fresh{};
    some(table, [&](std::uint32_t i) { return std::memcmp(&table[i], &fresh, sizeof fresh) != 0; });
  }

  // Of at most so many numbers, most of which follow each other at the same distance: each run by its first, its
  // distance and its length.
  void runs(std::vector<std::uint32_t>& numbers) {
    auto size = static_cast<std::uint32_t>(numbers.size());
    plain(size);
    if (reads_) {
      if (size > numbers.capacity()) return fail();
      numbers.resize(size);
    }
    for (std::uint32_t at = 0; at < size && ok_;) {
      Run run{};
      if (!reads_) {
        run = {.first = numbers[at], .step = at + 1 < size ? numbers[at + 1] - numbers[at] : 0, .count = 1};
        while (at + run.count < size && numbers[at + run.count] == numbers[at + run.count - 1] + run.step) ++run.count;
      }
      plain(run);
      if (reads_) {
        if (run.count == 0 || run.count > size - at) return fail();
        for (std::uint32_t i = 0; i < run.count; ++i) numbers[at + i] = run.first + i * run.step;
      }
      at += run.count;
    }
  }

 private:
  struct Run {
    std::uint32_t first, step, count;
  };
  Snapshot(std::byte* at, std::size_t left, bool reads) noexcept : at_(at), left_(left), reads_(reads) {}

  void bytes(void* value, std::size_t size) noexcept {
    if (size > left_) return fail();
    if (reads_) {
      std::memcpy(value, at_, size);
    } else {
      std::memcpy(at_, value, size);
    }
    at_ += size;
    left_ -= size;
  }
  template <class T>
  void plain(T& value) noexcept {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
    bytes(&value, sizeof value);
  }
  template <class T>
  void one(T& value) {
    if constexpr (requires { value.visit_state(*this); }) {
      value.visit_state(*this);
    } else {
      plain(value);
    }
  }
  template <class T>
  void one(std::vector<T>& values) {
    std::uint64_t size = values.size();
    plain(size);
    if constexpr (std::is_trivially_copyable_v<T>) {
      if (reads_) {
        if (size > left_ / sizeof(T)) return fail();
        values.resize(size);
      }
      if (size > 0) bytes(values.data(), size * sizeof(T));
    } else {
      if (size != values.size()) return fail();
      for (T& each : values) one(each);
    }
  }
  template <class T, std::size_t N>
  void one(std::array<T, N>& values) {
    if constexpr (std::is_trivially_copyable_v<T>) {
      plain(values);
    } else {
      for (T& each : values) one(each);
    }
  }
  template <class T>
  void one(std::unique_ptr<T>& value) {  // that is there, or not, in both
    bool there = value != nullptr;
    plain(there);
    if (there != (value != nullptr)) return fail();
    if (there) one(*value);
  }

  std::byte* at_;
  std::size_t left_;
  bool reads_, ok_ = true;
};

}  // namespace leat::core
