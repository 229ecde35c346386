// From observations to seconds: what is counted becomes figures, the sentence and the log of changes; ten minutes of it
// are kept. Pure: no clock, no file; the same observations give the same seconds. Thread rule: one thread.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "tools/leat/top/facts/cameras.h"
#include "tools/leat/top/facts/changes.h"
#include "tools/leat/top/facts/figures.h"
#include "tools/leat/top/facts/health.h"
#include "tools/leat/top/facts/last_frames.h"
#include "tools/leat/top/facts/observation.h"
#include "tools/leat/top/facts/spans.h"

namespace leat::tools::top {

inline constexpr std::size_t kSecondsKept = 600;

class Facts {
 public:
  void take(Observation observation);

  [[nodiscard]] const std::deque<Second>& seconds() const noexcept { return seconds_; }  // oldest first
  [[nodiscard]] const std::deque<Change>& changes() const noexcept { return changes_.lines(); }
  [[nodiscard]] const DaemonStatus& status() const noexcept { return status_; }
  [[nodiscard]] const LastFrames& last_frames() const noexcept { return last_frames_; }
  [[nodiscard]] const Sample* newest() const noexcept { return samples_.empty() ? nullptr : samples_.back().get(); }
  // The last minute's part of a record's histogram, up to the newest observation. Empty: nothing is known of it.
  [[nodiscard]] std::optional<Buckets> minute_of(shm::RecordKind kind, Key key, shm::Which which) const;
  // What the record's causes grew by in that minute; and its counters.
  [[nodiscard]] Span minute_span(shm::RecordKind kind, Key key) const;
  [[nodiscard]] std::int64_t wall_of(std::int64_t at_ns) const noexcept { return at_ns + wall_offset_ns_; }
  [[nodiscard]] std::string clock_at(std::int64_t at_ns) const;
  [[nodiscard]] std::int64_t began_ns() const noexcept { return began_ns_; }  // the first observation of this leatd

 private:
  using SamplePtr = std::shared_ptr<const Sample>;
  [[nodiscard]] const Sample* sample_before(std::int64_t at_ns) const noexcept;
  void keep(SamplePtr sample);
  void read_status(const std::string& text);
  void add_heat(const std::vector<HeatFigures>& gpus, Second* second) const;
  std::shared_ptr<const StreamIdentity> identity_of(const shm::RecordSnapshot& record, const Sample& sample);

  std::deque<SamplePtr> samples_;  // each second for ten seconds, then each ten, for a minute
  std::deque<Second> seconds_;
  std::vector<std::shared_ptr<const StreamIdentity>> identities_;  // of streams that live, by index of the record
  Health health_;
  Changes changes_;
  CameraRows cameras_;
  LastFrames last_frames_;
  DaemonStatus status_;
  std::int64_t wall_offset_ns_ = 0, utc_offset_s_ = 0, began_ns_ = 0;
  std::int64_t daemon_pid_ = 0;
};

}  // namespace leat::tools::top
