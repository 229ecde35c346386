// Memory as C++ permits it to look, for a few words and actors: every word keeps all its stores in modification order,
// every actor a view of how much of each word it must know. A load may return any store that is not older than that; a
// store may take any place behind it. Release stores carry their actor's view, acquiring loads take it over, fences do
// both for the relaxed accesses around them, and sequentially consistent fences share one view besides.
//
// What C++ permits and this does not show: a load that returns a store which comes later in its own program (load
// buffering). Sequentially consistent loads and stores are not modelled; nobody here uses them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "tests/explore/choices.h"

namespace leat::explore {

inline constexpr int kActors = 4;      // at most
inline constexpr int kLocations = 48;  // words that several actors touch, at most

// What is known: by location the newest store, by actor the last of its steps that happened before.
struct View {
  std::array<std::uint8_t, kLocations> store{};
  std::array<std::uint16_t, kActors> clock{};
};

class Memory {
 public:
  explicit Memory(Choices& choices) : choices_(choices) {}

  // A new execution: nothing was stored yet.
  void begin();
  // The word at an address; at its first use it holds `initial`, which everybody knows.
  int location(std::uintptr_t address, std::uint64_t initial);

  // `newest`: do not choose, return the last in modification order.
  std::uint64_t load(int actor, int location, std::memory_order order, bool newest);
  void store(int actor, int location, std::uint64_t value, std::memory_order order);
  // Strong. False: `expected` is what was read instead.
  bool compare_exchange(int actor, int location, std::uint64_t& expected, std::uint64_t desired,
                        std::memory_order success, std::memory_order failure);
  void fence(int actor, std::memory_order order);

  // Plain memory. False: another actor's access to the same bytes is not ordered with this one, and one of both writes.
  [[nodiscard]] bool plain(int actor, std::uintptr_t begin, std::size_t bytes, bool writes);
  // The same for an atomic access, against the plain ones.
  [[nodiscard]] bool atomic(int actor, std::uintptr_t begin, std::size_t bytes, bool writes);

  [[nodiscard]] std::uint64_t newest(int location) const;
  // Whatever else an actor learns: makes its history differ.
  void learn(int actor, std::uint64_t what) noexcept;
  // Equal where everything that can still happen is equal: actors are deterministic, so what they have read says all.
  [[nodiscard]] std::uint64_t state() const;

 private:
  struct Store {
    std::uint64_t value;
    std::uint32_t name;  // by actor and its count: the same in every execution that has it
    bool joined;         // part of a read-modify-write: nothing comes between it and the store before
    View view;
  };
  struct Location {
    std::uintptr_t address;
    std::vector<Store> stores;
    std::vector<std::uint8_t> order, place;  // modification order: numbers of stores; and each number's place in it
    std::array<std::uint32_t, kActors> count;
  };
  struct Actor {
    View now, pending, released;  // pending: what an acquire fence adds; released: as of the last release fence
    std::uint64_t history;
  };
  struct Access {
    std::uintptr_t begin, end;
    int actor;
    std::uint16_t clock;
    bool writes, plain;
  };

  void join(View& into, const View& from, bool clocks = true) const;
  [[nodiscard]] int place(const Location& l, int number) const { return l.place[static_cast<std::size_t>(number)]; }
  void read(int actor, int location, int number, std::memory_order order);
  void insert(int actor, int location, int place, Store made);
  [[nodiscard]] bool access(const Access& made);
  [[nodiscard]] std::uint64_t known(const View& view) const;

  Choices& choices_;
  std::vector<Location> locations_;
  int used_ = 0;  // of locations_
  std::array<Actor, kActors> actors_{};
  View agreed_{};  // of sequentially consistent fences
  std::vector<Access> accesses_;
};

}  // namespace leat::explore
