// The decisions of one execution, in order: replaying them makes the same execution again, and counting them up like
// the digits of a number visits every execution there is, depth first.
#pragma once

#include <cstddef>
#include <vector>

namespace leat::explore {

class Choices {
 public:
  // One of `count` ways to go on: as replayed, or the first.
  int pick(int count) {
    if (count < 2) return 0;
    if (at_ == taken_.size()) taken_.push_back({0, count});
    return taken_[at_++].index;
  }
  // Decisions that are only repeated are still to come.
  [[nodiscard]] bool replaying() const { return at_ < taken_.size(); }

  void rewind() { at_ = 0; }  // the same execution again
  // The next one. False: that was the last.
  bool advance() {
    rewind();
    while (!taken_.empty() && ++taken_.back().index == taken_.back().count) taken_.pop_back();
    return !taken_.empty();
  }
  void clear() {
    rewind();
    taken_.clear();
  }

 private:
  struct Choice {
    int index, count;
  };
  std::vector<Choice> taken_;
  std::size_t at_ = 0;
};

}  // namespace leat::explore
