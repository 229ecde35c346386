// What would have become of a record's frames under another policy, another plan or other partitions: the frames come
// as they came, with all that was asked of them, partitions are lost and come back as they did, the host's stalls stay
// where they were, and how long a batch takes is drawn from the record (recorded_times.h). Nothing is compared one by
// one: in overload two runs of one load differ in many frames, and agree rather in their totals.
//
// Streams that wait for grants have their pictures when they had them, and are asked for them anew: what they submit is
// what the other run had room for (recorded_pictures.h).
//
// Left aside: when coordinated streams would have been asked for their frames. They come when they came.
//
// Set-up and tools; several threads may ask at a time. A record that was tampered with can end the process, as it can
// in replay().
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/record/history.h"
#include "leat/result.hpp"

namespace leat::sim {

struct Question {
  core::Policy policy;
  // That take over when they say, the first at the beginning; empty: the recorded ones.
  std::vector<record::History::Plan> plans;
  // Of those plans: what they call as the record does is that; else what has the same number.
  bool by_name = false;
  std::uint64_t seed = 1;
};

struct FrameTotals {
  std::uint64_t frames = 0;    // that were submitted
  std::uint64_t left_out = 0;  // pictures that were there and not wanted (recorded_pictures.h)
  std::array<std::uint64_t, kOutcomeCount> outcomes{};
  std::array<std::uint64_t, kReasonCount> reasons{};

  [[nodiscard]] std::uint64_t of(Outcome o) const { return outcomes[static_cast<std::size_t>(o)]; }
  [[nodiscard]] double in_time() const {
    return frames == 0 ? 1 : static_cast<double>(of(Outcome::completed)) / static_cast<double>(frames);
  }
  [[nodiscard]] double of_pictures() const {  // of all that were there, those that were completed
    const std::uint64_t all = frames + left_out;
    return all == 0 ? 1 : static_cast<double>(of(Outcome::completed)) / static_cast<double>(all);
  }
  void add(Outcome outcome, Reason reason) {
    ++frames;
    ++outcomes[static_cast<std::size_t>(outcome)];
    ++reasons[static_cast<std::size_t>(reason)];
  }
};

// Of frames that have an answer in the record.
struct WhatIf {
  struct Application {
    std::string name;
    FrameTotals was, is;
  };
  std::vector<Application> applications;  // in the order of the recorded plan
  FrameTotals was, is;
  std::uint64_t open = 0;                 // frames without an answer in the record: they come, and are not counted
  std::uint64_t batches = 0, unseen = 0;  // of them, of a class and size that the record has no times of
  double cpu_seconds = 0;                 // of the simulation
};

// Error: one line.
[[nodiscard]] Result<WhatIf> what_if(const record::History& history, const Question& question);

// The recorded plans, where these partitions are not there, or are there once more beside themselves (each a name).
// Error: one line; a name that no plan has, or a module that nothing would be left for.
[[nodiscard]] Result<std::vector<record::History::Plan>> with_partitions(const record::History& history,
                                                                         const std::vector<std::string>& without,
                                                                         const std::vector<std::string>& twice);

}  // namespace leat::sim
