// What leat/track_ids.h offers, inside: shapes, units and meaning are said there. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "leat/track_ids.h"
#include "shm/src/tracks/assignment.h"
#include "shm/src/tracks/box_filter.h"

namespace leat::tracks {

struct Settings {
  float min_score = 0.1f, high_score = 0.6f, new_score = 0.7f;
  std::vector<std::int32_t> classes;  // sorted; empty: all
  std::int64_t lost_ns = 1'000'000'000;
  bool any_class = false;
};

class TrackIds {
 public:
  explicit TrackIds(Settings settings) : settings_(std::move(settings)) {}
  // ids: as many as detections.
  void update(std::int64_t capture_ns, std::span<const leat_detection> detections, std::span<std::uint64_t> ids);

 private:
  enum class State : std::uint8_t {
    fresh,  // seen once: not believed yet
    seen,   // in the last answer
    lost    // not in the last answer
  };
  struct Track {
    BoxFilter filter;
    std::uint64_t id = 0;  // 0: fresh
    std::int64_t begun_ns = 0, seen_ns = 0;
    std::int32_t class_id = 0;
    State state = State::fresh;
    Box box;           // where it is at the time of the answer
    bool open = true;  // no detection of the answer is its yet
  };
  struct Candidate {
    Box box;
    float score;
    std::int32_t class_id;
    std::uint32_t index;  // of the detection
    bool open = true;
  };
  enum class Cost : std::uint8_t { overlap, overlap_and_score };

  void sort_out(std::span<const leat_detection> detections);
  bool has_identity(const leat_detection& d) const;
  void place_at(std::int64_t capture_ns);
  // Matches open tracks in one of the states with open candidates; `took(track, candidate)` for each pair.
  template <class Took>
  void match(std::initializer_list<State> states, std::vector<Candidate>& candidates, Cost cost, float limit,
             const Took& took);
  void look_up(std::span<std::uint64_t> ids);
  void begin_new(std::int64_t capture_ns, std::span<std::uint64_t> ids);
  void part_twins();

  Settings settings_;
  std::vector<Track> tracks_;
  std::vector<Candidate> sure_, doubtful_;
  std::int64_t last_ns_ = 0;
  std::uint64_t next_id_ = 1;
  bool begun_ = false;
  Assignment assignment_;
  std::vector<float> costs_;
  std::vector<std::size_t> rows_, columns_;
};

}  // namespace leat::tracks
