// Puts what comes in any order back into the order of its numbers, each of which comes at most once, counted from 0.
// It holds no more than are out at once. Thread rule: one thread. Errors: none.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

namespace leat::tools {

template <class T>
class InOrder {
 public:
  // next(T) for each that nothing before is missing of any more.
  template <class Next>
  void add(std::uint64_t number, T value, const Next& next) {
    waiting_.emplace(number, std::move(value));
    for (auto it = waiting_.begin(); it != waiting_.end() && it->first == due_; it = waiting_.erase(it), ++due_)
      next(std::move(it->second));
  }
  // What still waits, because something before it never came. What is added afterwards is `from` and later.
  template <class Next>
  void finish(std::uint64_t from, const Next& next) {
    for (auto& [number, value] : waiting_) next(std::move(value));
    waiting_.clear();
    due_ = from;
  }

 private:
  std::map<std::uint64_t, T> waiting_;
  std::uint64_t due_ = 0;
};

}  // namespace leat::tools
