// A decision of look_ahead.h, played out: what would happen after a move, and what it would cost.
#pragma once

#include <algorithm>

#include "engine/core/policy/look_ahead/look_ahead.h"

namespace leat::core::ahead {

inline constexpr double kSafe = 2.33;           // standard deviations from the median to the 99th percentile
inline constexpr std::int64_t kLooks = 12'000;  // looks at a job that a decision may cost,
inline constexpr std::size_t kStep = 8;         // what goes with each look at all of them, counted in looks
inline constexpr double kNothing = 1e300;

struct Job {                // the next one of a source
  TimeNs capture = kNever;  // kNever: none any more
  TimeNs arrival = 0;
  TimeNs need = 0;         // begin of the first window without a result
  std::uint32_t left = 1;  // single requests: so many wait
};

struct Machine {
  TimeNs free = 0;
  double variance = 0;      // of `free`
  double committed = 0;     // the part of it that cannot be changed any more
  double spare = kNothing;  // worth of the cheapest job since then, which could still be left out
};

struct Slot {                           // where a job can go, seen at some moment
  TimeNs start = kNever, end = kNever;  // not to be started before; to have ended by
};

using Members = std::array<std::uint32_t, kLookAheadSources>;

// What all plays of one decision share.
struct Table {
  Table(const LookAhead& ask, TimeNs at) noexcept;
  [[nodiscard]] double sigma(const LookAheadSource& s, std::uint32_t n) const noexcept {
    const double safe = static_cast<double>(s.safe_ns[n]) * ask.margin_permille / 1000;
    return std::max(0.0, safe - static_cast<double>(s.run_ns[n])) / kSafe;
  }

  const LookAhead& ask;
  TimeNs now, horizon;
  double heaviest = 0;
  std::array<double, kLookAheadSources> deviation;    // of one request
  std::array<TimeNs, kLookAheadSources> guard, need;  // kept from the begin of a window; run time with room
  std::int64_t looks = kLooks;
};

class Play {
 public:
  explicit Play(Table& table) noexcept;

  // Starts on machine m a batch of at most `requests` with `lead`, which the rule fills. `first`: this is the move to
  // be made.
  void start(std::uint32_t m, std::uint32_t lead, TimeNs at, std::uint32_t requests, bool first) noexcept;
  double finish(double bound) noexcept;  // plays on by the rule; the expected cost, or some value from `bound` up
  [[nodiscard]] double search(std::uint32_t depth, double bound) const noexcept;  // the same with the best next moves
  [[nodiscard]] std::uint32_t batch(std::uint32_t m, std::uint32_t lead, TimeNs at, std::uint32_t requests,
                                    bool careful, Members& members) const noexcept;
  [[nodiscard]] Slot slot(std::size_t i, TimeNs at) const noexcept;

 private:
  [[nodiscard]] const LookAheadSource& source(std::size_t i) const noexcept { return t_->ask.sources[i]; }
  [[nodiscard]] std::size_t sources() const noexcept { return t_->ask.sources.size(); }
  void look() const noexcept { t_->looks -= static_cast<std::int64_t>(sources() + kStep); }
  [[nodiscard]] std::uint32_t next_machine() const noexcept;
  [[nodiscard]] std::size_t choices(std::uint32_t m, TimeNs at, Members& out) const noexcept;
  [[nodiscard]] bool harms(std::uint32_t m, double weight, TimeNs at, TimeNs end, std::uint32_t members) const noexcept;
  void account(std::size_t i, TimeNs end, double deviation, double firm, double own, double spare) noexcept;
  void account_single(std::size_t i, std::uint32_t requests, TimeNs end, double deviation) noexcept;
  void lose(const LookAheadSource& s, Job& job, TimeNs until) noexcept;

  Table* t_;
  std::array<Job, kLookAheadSources> jobs_;
  std::array<Machine, kLookAheadMachines> machines_;
  double cost_ = 0;
};

}  // namespace leat::core::ahead
