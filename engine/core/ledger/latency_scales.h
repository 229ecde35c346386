// How long users' frames take beside what is planned for them: of each user and application a latency scale, which is
// what its batches took of their planned times, smoothed over some sixteen requests: a host that does other things too
// delays now one batch and now another by many times its time, and of a request of many short batches each tells
// little. Applications are looked at apart, since what one's plan is wrong about is no user's doing.
//
// Who takes half as long again as planned, and as the cheapest of the application's other users does, is dear: his
// requests run alone, so that they delay nobody's, and nothing is learned from them for others. While several users
// ride together it does not show whose take long: after a batch that did, each rides with his own alone for half a
// second.
//
// A latency scale counts for others for a second after its user's last request. A bisection a request and a task of a
// batch, and a pass over all every few milliseconds.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/core/snapshot.h"
#include "engine/core/types.h"

namespace leat::core {

class LatencyScales {
 public:
  // At most so many users' applications; of those beyond the latency scale is 1.
  explicit LatencyScales(std::uint32_t max) { scales_.reserve(max); }

  struct Key {
    std::uint32_t application = 0, user = 0;
    [[nodiscard]] auto operator<=>(const Key&) const noexcept = default;
  };
  struct Standing {
    double scale = 1;
    bool dear = false;
    bool apart = false;  // rides with his own alone: whose batches take more than planned is to be found out
  };
  // A request has come.
  [[nodiscard]] Standing enter(const Key& key, TimeNs now) noexcept;
  // Whether he is dear, of which nobody was told yet.
  [[nodiscard]] bool found_dear(const Key& key) noexcept;
  [[nodiscard]] double of(const Key& key) const noexcept;
  void part(const Key& key, TimeNs now) noexcept;
  // A batch was so far off the latency scale. part: of a request's cost, at most 1.
  void learn(const Key& key, double off, double part) noexcept;
  void visit_state(Snapshot& state) { state(scales_, judge_again_ns_); }

 private:
  struct Scale {
    Key key;
    TimeNs seen_ns = 0;
    double scale = 1;
    bool dear = false, told = false;
    TimeNs apart_until_ns = 0;
  };
  using Place = std::vector<Scale>::iterator;
  [[nodiscard]] Scale* find(const Key& key) noexcept;  // nullptr: there is none
  [[nodiscard]] Scale* find_or_add(const Key& key, TimeNs now) noexcept;
  void judge(TimeNs now) noexcept;
  static void judge(Place first, Place last, TimeNs now) noexcept;

  std::vector<Scale> scales_;  // by key
  TimeNs judge_again_ns_ = INT64_MIN;
};

}  // namespace leat::core
