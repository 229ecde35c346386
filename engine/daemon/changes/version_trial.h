// A new version of a model beside the one before it: what is asked of it before it serves, and while it is on trial.
//
// Trouble is what the one before has not: frames that fail, answers that are no numbers, batches longer than the
// objective, most frames missed. Who was in trouble himself is followed by anybody. Thread rule: the control thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/daemon/changes/arrangement.h"
#include "engine/daemon/metrics/metrics.h"
#include "engine/daemon/workers/supervisor.h"

namespace leat::daemon {

class VersionTrial {
 public:
  VersionTrial(Metrics& metrics, const Supervisor& supervisor) : metrics_(metrics), supervisor_(supervisor) {}

  // Before the new version's workers start: from here on it is noted how the one before serves.
  void note_before(const Deployment& old, const std::vector<Arrangement::Heir>& heirs);
  // What the new workers have answered to a picture of nothing while they started. Empty: nothing is against it.
  [[nodiscard]] std::string refused(const Deployment& old, const Deployment& now,
                                    const std::vector<Arrangement::Heir>& heirs) const;
  // The new version has taken over, and is watched for length_ns.
  void begin(const Deployment& old, const std::vector<Arrangement::Heir>& heirs, std::int64_t length_ns);
  // Empty: none so far. at_end: the time is over, and what needs all of it is asked too.
  [[nodiscard]] std::string trouble(const Deployment& old, const Deployment& now,
                                    const std::vector<Arrangement::Heir>& heirs, bool at_end) const;

 private:
  struct Served {
    std::uint64_t arrived = 0, missed = 0;
  };
  [[nodiscard]] Served served(const Deployment& d, std::uint32_t application) const;
  [[nodiscard]] std::string no_numbers(const Deployment& old, const Deployment& now,
                                       const Arrangement::Heir& heir) const;
  [[nodiscard]] bool says_no_numbers(const Deployment& d, std::uint32_t application, std::uint32_t module) const;
  [[nodiscard]] std::string too_slow(const Deployment& now, std::uint32_t application, bool at_end) const;
  [[nodiscard]] std::string misses(const Deployment& now, std::size_t heir, std::uint32_t application) const;

  Metrics& metrics_;
  const Supervisor& supervisor_;
  struct Before {
    Served at_first, in_all;  // in_all: from then until the new version took over
    std::uint64_t late_of_new = 0;
  };
  std::vector<Before> before_;  // [heir]
  std::int64_t length_ns_ = 0;
};

}  // namespace leat::daemon
