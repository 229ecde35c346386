// Runs a few actors through every execution that they can have, up to a bound: whose turn it is before each access
// that others can notice, and what each load returns of what memory.h permits. An execution is run from its start by
// replaying its decisions; one that comes to a state where an earlier one was is not followed further.
//
// Only what others can notice branches. A store may be made at once, whoever's turn it is: who reads later may still
// return what was there before it. What only one actor writes he reads as he wrote it; what nobody else touches is
// plain memory. Which words are which is found out on the way: when one turns out to be shared, everything begins anew.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>
#include <string>
#include <vector>

#include "tests/explore/sites.h"

namespace leat::explore {

// What is explored. Actors are deterministic but for what they read, and end when going() says no.
struct Model {
  std::string name;
  std::function<void()> set_up;               // before every execution: everything as it was the first time
  std::vector<std::function<void()>> actors;  // at most kActors
  std::function<void()> check = [] {};        // when all have ended
  // Empty: every word. Else what is not watched is read and written as if nobody else did.
  std::function<bool(const void*)> watched = {};
  // An actor that has looked so often at what others write sees the newest from then on, and goes on only when nobody
  // else can; at eight times as many it counts as endless.
  std::uint32_t looks = 60;
};

struct Bounds {
  std::uint64_t executions = 2'000'000;
  bool plainly = false;  // every access branches and every execution is run to its end: to check what is saved
};

struct Outcome {
  std::uint64_t executions = 0, states = 0;
  bool complete = false;           // everything within the bounds was seen
  std::string failure;             // what went wrong first; empty: nothing
  std::vector<std::string> trace;  // of that execution
};

// Not from within an actor.
Outcome explore(const Model& model, const Bounds& bounds = {});
Sites& sites();

// ---- for actors and checks ----
void require(bool holds, const char* what);  // what must hold; the first that does not ends the exploration
[[nodiscard]] bool going();                  // false: this execution is of no interest any more; end

// Something to sleep on, as a file descriptor is: any number of rings are one until it is drained. It orders no memory:
// the kernel's own locks are not relied upon.
inline constexpr int kBells = 4;
void ring(int bell);
void drain(int bell);
void wait_for_ring(std::uint32_t bells);  // a bit each; who is never rung for sleeps for ever: a failure

// ---- for the shadow of fences.h; outside of an exploration these are plain accesses ----
std::uint64_t load(const void* word, std::size_t bytes, std::memory_order order, const std::source_location& at);
void store(void* word, std::size_t bytes, std::uint64_t value, std::memory_order order, const std::source_location& at);
bool compare_exchange(void* word, std::size_t bytes, std::uint64_t& expected, std::uint64_t desired,
                      std::memory_order success, std::memory_order failure, const std::source_location& at);
void fence(std::memory_order order, const std::source_location& at);
void read_plain(const void* memory, std::size_t bytes);
void write_plain(void* memory, std::size_t bytes);

}  // namespace leat::explore
