// How fresh a periodic stream's results are where they are consumed, from one run's deliveries.
//
// A stream captures every `period` from `first` on; a result is usable while its age (now - capture) is at most
// `max_age`. Over [first, end), in the whole periods that fit:
//   coverage   a window [first + k P, first + (k + 1) P) is covered when a result of age <= max_age is delivered in it
//   view       sampled at the end of each period: covered when the newest capture delivered so far has age <= max_age
//   then gap        from the expiry (capture + max_age) of the last usable result to the next usable delivery, or to
//   the end; the longest.
//              A result stale on arrival never counts. Before the first one, `first` stands for the last usable capture
//   age        of information: time since the newest capture delivered; its mean over time (integral) and its peak
//   response   completion - capture of each delivery
// Pure.
#pragma once

#include <cstdint>
#include <span>

namespace leat::bench {

using TimeNs = std::int64_t;

struct Delivery {
  TimeNs at = 0, capture = 0;
};

struct Observed {
  TimeNs period = 0, max_age = 0;
  TimeNs first = 0, end = 0;  // first capture; end of the run
};

struct Freshness {
  double uncovered_permille = 0;
  double view_permille = 0;       // uncovered samples
  double no_result_permille = 0;  // samples before anything was delivered
  double longest_miss_run = 0;    // uncovered samples in a row
  double longest_gap_ms = 0;
  double mean_age_ms = 0, peak_age_ms = 0;
  double response_ms_p50 = 0, response_ms_p95 = 0, response_ms_p99 = 0;
  double stale_permille = 0;  // of the deliveries: too old on arrival
  double answers = 0;         // deliveries before `end`
};

// `deliveries` in order of time.
[[nodiscard]] Freshness measure(const Observed& stream, std::span<const Delivery> deliveries);

}  // namespace leat::bench
