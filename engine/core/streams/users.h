// Users of a coordinator: whose streams are whose, what all streams of each have shown, and by which load each goes
// beside the others'.
//
// What one user's clients report stays his: a stream begins with the slope and the margin that its own user's streams
// have shown, or with those of the settings. Somebody who has gone is remembered until his place is needed.
//
// A share is a level: everybody who wants more than his weight times the level has exactly that, everybody else what
// he wants, and all of them together have what there is (max-min fairness).
//
// No allocation after construction. One thread. Numbers of users are this table's own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/core/snapshot.h"
#include "engine/core/streams/asking.h"
#include "engine/core/streams/margin.h"
#include "engine/core/types.h"

namespace leat::core::streams {

// One of those who divide what a partition holds.
struct Portion {
  double weight = 1;
  double elsewhere = 0;  // load that he has on other partitions
  double wants = 0;      // load here
};

// The level at which weight * level - elsewhere, but no more than he wants, makes `capacity` together; infinity where
// all have what they want. O(30 portions).
[[nodiscard]] double fair_level(std::span<const Portion> portions, double capacity) noexcept;

struct User {
  std::uint32_t id = 0;  // the caller's
  double weight = 1;
  std::uint32_t places = 0;  // streams of his, leads of groups included
  SharedMargin margin;
  SharedAsking asking;
  double slope_sum = 0, slope_weight = 0;  // of all his streams, forgotten slowly
  std::uint64_t turn = 0;                  // when he came, or last claimed room
  std::size_t claims = 1;                  // streams that he claims room for at once
  double pressure = 0;                     // times what they want, that others give up for them at least
  TimeNs evicted_ns = INT64_MIN / 2;
  // Of this tick:
  bool here = false, refused = false, asked = false;
  double load = 0, rest = 0;   // planned, on all partitions
  bool hurt = false;           // a stream of his loses more than it may on the partition that is looked at
  std::uint32_t programs = 0;  // of his groups

  [[nodiscard]] double prior_slope(double otherwise) const noexcept {
    return slope_weight > 0 ? slope_sum / slope_weight : otherwise;
  }
  void showed(double slope) noexcept {
    slope_sum = slope_sum * 0.995 + slope;
    slope_weight = slope_weight * 0.995 + 1;
  }
};

class Users {
 public:
  // At most so many with places at once.
  Users(std::uint32_t users, const MarginSettings& margin);
  // His number. Precondition: fewer have places than there is room for.
  [[nodiscard]] std::uint32_t of(std::uint32_t id, double weight) noexcept;
  void last(std::uint32_t number) noexcept { users_[number].turn = ++turns_; }  // his turn has been
  [[nodiscard]] User& operator[](std::uint32_t number) noexcept { return users_[number]; }
  [[nodiscard]] const User& operator[](std::uint32_t number) const noexcept { return users_[number]; }
  [[nodiscard]] auto begin() noexcept { return users_.begin(); }
  [[nodiscard]] auto end() noexcept { return users_.end(); }
  [[nodiscard]] std::size_t size() const noexcept { return users_.size(); }
  void visit_state(Snapshot& state) {
    std::uint64_t known = users_.size();
    state(known, turns_);
    if (known > users_.capacity()) return state.fail();
    while (users_.size() < known) users_.push_back(User{.margin = SharedMargin(margin_)});
    for (User& each : users_) state(each);
  }

 private:
  const MarginSettings margin_;
  std::vector<User> users_;
  std::uint64_t turns_ = 0;
};

}  // namespace leat::core::streams
