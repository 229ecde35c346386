#include "shm/src/tracks/track_ids.h"

#include <algorithm>
#include <cmath>
#include <new>

#include "shm/src/client/client_errors.h"

namespace leat::tracks {
namespace {

// A pair counts where it costs less: of the paper's implementation, for what is known, what is doubtful, what is fresh.
constexpr float kKnownLimit = 0.8f, kDoubtfulLimit = 0.5f, kFreshLimit = 0.7f;
constexpr std::int64_t kLatestNs = INT64_MAX / 4;  // so that differences are numbers
constexpr std::int64_t kGapNs = 2'000'000'000;     // between answers of a stream of few
constexpr float kFarthest = 1e6f;                  // pixels; beyond lies no picture
constexpr float kSameOverlap = 0.85f;              // of two tracks, from which on they follow one object

Box box_of(const leat_detection& d) { return {d.x0, d.y0, d.x1, d.y1}; }
bool is_sound(const Box& b) {
  const auto place = [](float v) { return v > -kFarthest && v < kFarthest; };  // and a number
  return place(b.x0) && place(b.y0) && place(b.x1) && place(b.y1) && b.x1 > b.x0 && b.y1 > b.y0;
}

}  // namespace

bool TrackIds::has_identity(const leat_detection& d) const {
  return d.score >= settings_.min_score && is_sound(box_of(d)) &&
         (settings_.classes.empty() ||
          std::binary_search(settings_.classes.begin(), settings_.classes.end(), d.class_id));
}

void TrackIds::sort_out(std::span<const leat_detection> detections) {
  sure_.clear();
  doubtful_.clear();
  for (std::uint32_t i = 0; i < detections.size(); ++i) {
    const leat_detection& d = detections[i];
    if (!has_identity(d)) continue;
    const float score = std::min(d.score, 1.0f);  // infinity too
    (score >= settings_.high_score ? sure_ : doubtful_).push_back({box_of(d), score, d.class_id, i});
  }
}

void TrackIds::place_at(std::int64_t capture_ns) {
  for (Track& t : tracks_) {
    BoxFilter there = t.filter;
    if (t.state == State::lost) there.stop_growing();
    there.step(static_cast<double>(capture_ns - last_ns_) / BoxFilter::kStepNs);
    if (capture_ns > last_ns_) t.filter = there;
    t.box = there.box();
    t.open = true;
  }
}

template <class Took>
void TrackIds::match(std::initializer_list<State> states, std::vector<Candidate>& candidates, Cost cost, float limit,
                     const Took& took) {
  rows_.clear();
  columns_.clear();
  costs_.clear();
  for (std::size_t t = 0; t < tracks_.size(); ++t)
    if (tracks_[t].open && std::find(states.begin(), states.end(), tracks_[t].state) != states.end())
      rows_.push_back(t);
  for (std::size_t c = 0; c < candidates.size(); ++c)
    if (candidates[c].open) columns_.push_back(c);
  for (const std::size_t t : rows_) {
    for (const std::size_t c : columns_) {
      const Track& track = tracks_[t];
      const Candidate& candidate = candidates[c];
      const bool may = settings_.any_class || track.class_id == candidate.class_id;
      const float iou = may ? overlap(track.box, candidate.box) : 0;
      costs_.push_back(1 - iou * (cost == Cost::overlap_and_score ? candidate.score : 1));
    }
  }
  const auto column_of = assignment_.solve(costs_, rows_.size(), columns_.size(), limit);
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    if (column_of[r] == Assignment::kNone) continue;
    Track& track = tracks_[rows_[r]];
    Candidate& candidate = candidates[columns_[static_cast<std::size_t>(column_of[r])]];
    track.open = candidate.open = false;
    took(track, candidate);
  }
}

// An answer about an older frame.
void TrackIds::look_up(std::span<std::uint64_t> ids) {
  const auto tell = [&](const Track& track, const Candidate& candidate) { ids[candidate.index] = track.id; };
  match({State::seen, State::lost}, sure_, Cost::overlap_and_score, kKnownLimit, tell);
  match({State::seen, State::lost}, doubtful_, Cost::overlap, kDoubtfulLimit, tell);
}

void TrackIds::begin_new(std::int64_t capture_ns, std::span<std::uint64_t> ids) {
  for (const Candidate& c : sure_) {
    if (!c.open || c.score < settings_.new_score) continue;
    Track track{.filter = BoxFilter(c.box),
                .begun_ns = capture_ns,
                .seen_ns = capture_ns,
                .class_id = c.class_id,
                .box = c.box};
    if (!begun_) track.state = State::seen, ids[c.index] = track.id = next_id_++;
    tracks_.push_back(track);
  }
}

// The younger of two that follow one object is given up.
void TrackIds::part_twins() {
  for (Track& t : tracks_) t.open = true;  // from here on: stays
  for (Track& seen : tracks_) {
    if (seen.state != State::seen) continue;
    for (Track& lost : tracks_) {
      if (lost.state != State::lost || !lost.open || !seen.open) continue;
      if (overlap(seen.filter.box(), lost.filter.box()) <= kSameOverlap) continue;
      const bool older = seen.seen_ns - seen.begun_ns > lost.seen_ns - lost.begun_ns;
      (older ? lost : seen).open = false;
    }
  }
  std::erase_if(tracks_, [](const Track& t) { return !t.open; });
}

void TrackIds::update(std::int64_t capture_ns, std::span<const leat_detection> detections,
                      std::span<std::uint64_t> ids) {
  std::fill(ids.begin(), ids.end(), 0);
  sort_out(detections);
  capture_ns = std::clamp(capture_ns, -kLatestNs, kLatestNs);
  if (!begun_) last_ns_ = capture_ns;
  // After a gap in which nothing was answered, too: what was in the last answer is waited for a little longer.
  std::erase_if(tracks_, [&](const Track& t) {
    return capture_ns - t.seen_ns > settings_.lost_ns + (t.state == State::seen ? kGapNs : 0);
  });
  place_at(capture_ns);
  if (capture_ns < last_ns_) return look_up(ids);

  const auto took = [&](Track& track, const Candidate& candidate) {
    track.filter.correct(candidate.box);
    track.seen_ns = capture_ns;
    track.class_id = candidate.class_id;
    track.state = State::seen;
    if (track.id == 0) track.id = next_id_++;
    ids[candidate.index] = track.id;
  };
  match({State::seen, State::lost}, sure_, Cost::overlap_and_score, kKnownLimit, took);
  match({State::seen}, doubtful_, Cost::overlap, kDoubtfulLimit, took);
  for (Track& t : tracks_)
    if (t.open && t.state == State::seen) t.state = State::lost;
  match({State::fresh}, sure_, Cost::overlap_and_score, kFreshLimit, took);
  std::erase_if(tracks_, [](const Track& t) { return t.state == State::fresh && t.open; });
  begin_new(capture_ns, ids);
  part_twins();
  last_ns_ = capture_ns;
  begun_ = true;
}

}  // namespace leat::tracks
