// What became of the frames a feeder sent: counts by outcome and reason, latencies, goodput; per stream and summed.
// submitted = completed + late + dropped + failed + rejected + unanswered + in flight, always: each call keeps it.
// Thread rule: values; the owner locks.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "leat/outcome.h"
#include "tools/leat/feed/follower.h"

namespace leat::tools {

// Why a picture was never submitted. no_slot: none was free when its time came; hopeless: its deadline could no longer
// be met; not_wanted: it was not its stream's turn before the next picture was there (docs/guide/grants.md);
// unreferenced, passed_over: left undecoded to catch up, since no other refers to it, or on the way to a newer
// key frame; no_daemon: leatd did not take the stream then; damaged: it may show an error of its stream, and such
// pictures are not wanted.
#define LEAT_SKIPS(X)                                                                          \
  X(no_slot, "every slot was in use")                                                          \
  X(hopeless, "the deadline could no longer be met")                                           \
  X(not_wanted, "more came than could be served: it was not its turn")                         \
  X(unreferenced, "left undecoded to catch up: no other refers to it")                         \
  X(passed_over, "left undecoded to catch up: older than the key frame that was gone on with") \
  X(no_daemon, "leatd did not take the stream then")                                           \
  X(damaged, "it may show an error of its stream, and such pictures are not wanted")
#define X(name, text) name,
enum class Skip : std::uint8_t { LEAT_SKIPS(X) };
#undef X
inline constexpr std::size_t kSkipCount = 7;

class Ledger {
 public:
  void submitted() noexcept { ++submitted_; }
  // Of the submitted: its deadline had passed when it was handed over.
  void past_deadline() noexcept { ++past_deadline_; }
  // latency_ns: capture to answer; kept for completed and late.
  void answered(Outcome outcome, Reason reason, std::int64_t latency_ns);
  // All that is in flight: leatd ended before it was answered.
  void lose_in_flight() noexcept { unanswered_ += in_flight(); }
  void skipped(Skip why, std::uint64_t pictures = 1) noexcept { skipped_[static_cast<std::size_t>(why)] += pictures; }
  void add(const Ledger& other);

  [[nodiscard]] std::uint64_t count(Outcome outcome) const noexcept {
    return outcomes_[static_cast<std::size_t>(outcome)];
  }
  [[nodiscard]] std::uint64_t count(Outcome outcome, Reason reason) const noexcept;
  [[nodiscard]] std::uint64_t submitted_count() const noexcept { return submitted_; }
  [[nodiscard]] std::uint64_t past_deadline_count() const noexcept { return past_deadline_; }
  [[nodiscard]] std::uint64_t skipped_count() const noexcept;
  [[nodiscard]] std::uint64_t skipped_count(Skip why) const noexcept { return skipped_[static_cast<std::size_t>(why)]; }
  [[nodiscard]] std::uint64_t in_flight() const noexcept;
  [[nodiscard]] std::uint64_t unanswered_count() const noexcept { return unanswered_; }
  // The q-quantile (0..1) of the latencies in milliseconds, nearest rank, within 0.4 %; < 0: nothing finished yet.
  [[nodiscard]] double latency_ms(double q) const;

 private:
  std::uint64_t submitted_ = 0, past_deadline_ = 0, unanswered_ = 0;
  std::array<std::uint64_t, kSkipCount> skipped_{};
  std::array<std::uint64_t, kOutcomeCount> outcomes_{};
  std::array<std::array<std::uint64_t, kReasonCount>, kOutcomeCount> reasons_{};
  // 128 log buckets per octave of microseconds, up to 2^26 us: fixed memory however long a camera runs.
  static constexpr std::size_t kSubBuckets = 128, kOctaves = 26;
  static std::size_t bucket_of(std::int64_t ns) noexcept;
  static double middle_ms(std::size_t bucket) noexcept;
  std::vector<std::uint64_t> buckets_ = std::vector<std::uint64_t>(kSubBuckets * kOctaves);
  std::uint64_t finished_ = 0;
};

struct NamedLedger {
  std::string name;  // of the stream
  Ledger ledger;
  std::optional<FollowerFigures> followed = std::nullopt;  // coordinated
  double seconds = 0;                                      // from its first submission to its last answer
  double task_weight = 0;                                  // of a task among several; 0: a stream by itself
  std::uint64_t damaged = 0;                               // pictures that may show an error of their stream
  std::uint64_t format_changes = 0;                        // of size or pixel format
};

struct FeedReport {
  std::vector<NamedLedger> streams;
  double seconds = 0;                  // from the first submission to the last answer of any stream
  double bytes_copied_per_frame = -1;  // after the producer's write, as the daemon counts it; < 0: unknown
  double map50 = -1, detection_ap50 = -1, classification = -1;  // < 0: no ground truth
  std::uint64_t judged_frames = 0;
  double idf1 = -1;  // < 0: no identities
};

// Two shapes of the same figures. JSON: total.{submitted, completed, late, dropped, failed, rejected, unanswered,
// in_flight, skipped, skipped_by_reason, submitted_past_deadline, dropped_by_reason, rejected_by_reason,
// failed_by_reason, latency_ms_p50, _p95, _p99, goodput_fps, damaged, format_changes}, streams[] alike with name,
// seconds, bytes_copied_per_frame, accuracy.{map50, detection_ap50, classification, frames, idf1};
// streams[].coordinated.{standing, interval, evictions, sla_drop, planned_drop, measured_drop, seen_at_answers, frames,
// sent_share, off_truth, detector_off_truth, lost_of_truth, tracking_ms, task_weight}. What is unknown is null.
[[nodiscard]] std::string report_json(const FeedReport& report);
[[nodiscard]] std::string report_table(const FeedReport& report);

}  // namespace leat::tools
