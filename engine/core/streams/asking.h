// Streams whose clients say what they expect to have lost by now (leat/certainty.hpp), and so may ask for a detection
// when that is much, instead of waiting for their turn. Of each:
//
//   worth    of what was lost at answers, so much less is left unexplained by `factor * expected` than by
//            `r x(stride)`, each with the factor that fits it best. Streams that ask send as soon as they expect a
//            certain loss: then a certainty that is worth something leaves losses alike and strides different, and a
//            worthless one the other way round. So it is seen whether they ask or not.
//   factor   what is lost for each unit that is expected: the order of what trackers expect is right, its scale not.
//   scale    how much more or less may be expected before it asks, by how the seconds before went: what all but a share
//            `miss` of them lost of the SLA, taken half as seriously as it looks, because short seconds flicker.
//   rate     of its frames, lately.
//   slope    what each unit of x costs now: what was expected at the last answer tells the next second better than what
//            was lost then, which has two detections' flicker in it (the turns of tasks, group.h).
//
// What others of its user show is where a stream begins. O(1) for each report, no allocation. One thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "engine/core/streams/margin.h"
#include "engine/core/types.h"

namespace leat::core::streams {

struct AskingSettings {
  bool on = true;
  double above = 0.64;          // of the SLA: expected to have been lost when a stream asks, at the usual margin
  double usual_margin = 0.643;  // and more or less by the margin, to this power
  double by_margin = 0.3;
  double wait = 1.6;                  // run times, from asking until the answer serves
  double latest = 4;                  // intervals by the clock, from one frame sent to the next
  double bucket = 1.5, refill = 0.5;  // frames that may be asked for at once; intervals by the clock until one more may
  double charge = 0.9;  // of what its frames take of a partition as planned: no grace is left between its batches
  // Worth of all of a user's from which they may ask, below which they may not any more; of its own below which one may
  // not; and observations until either is believed.
  double worth = 0.005, worthless = -0.1, observations = 20;
  double own_worthless = -0.3, own_observations = 40;
  double miss = 0.05, min_scale = 0.7, max_scale = 1.5, by_misses = 0.3;
  double weight = 30, own_seconds = 60, shared_seconds = 600;  // as of the margin
  double shared_observations = 150;                            // that those of others of its user count as at most
  TimeNs rate_memory_ns = 3'000'000'000;
  double slope_share = 0.7, slope_x = 9;  // of a slope that is what was expected; at strides of less x, less
};

// Of observations: sums of squares and products, of a stream or of all of a user's.
class CertaintyFigures {
 public:
  void add(double expected, double x, double loss, double remember) noexcept {
    for (double* each : {&n_, &ee_, &el_, &xx_, &xl_, &ll_}) *each *= 1 - 1 / remember;
    n_ += 1;
    ee_ += expected * expected, el_ += expected * loss;
    xx_ += x * x, xl_ += x * loss, ll_ += loss * loss;
  }
  // `others` counted as much as `weight` observations at most.
  void join(const CertaintyFigures& others, double weight) noexcept {
    const double s = others.n_ > weight ? weight / others.n_ : 1;
    n_ += s * others.n_;
    ee_ += s * others.ee_, el_ += s * others.el_;
    xx_ += s * others.xx_, xl_ += s * others.xl_, ll_ += s * others.ll_;
  }
  [[nodiscard]] double observations() const noexcept { return n_; }
  [[nodiscard]] double worth() const noexcept {
    const auto left = [&](double squares, double with) { return squares > 0 ? ll_ - with * with / squares : ll_; };
    const double by_clock = left(xx_, xl_);
    return by_clock > 0 ? 1 - left(ee_, el_) / by_clock : 0;
  }
  // That 1 is right is believed as much as some observations of `usual`.
  [[nodiscard]] double factor(double usual) const noexcept {
    const double prior = kPrior * usual * usual;
    return prior > 0 ? std::clamp((el_ + prior) / (ee_ + prior), 1 / kMaxFactor, kMaxFactor) : 1;
  }

 private:
  static constexpr double kPrior = 8, kMaxFactor = 4;
  double n_ = 0, ee_ = 0, el_ = 0, xx_ = 0, xl_ = 0, ll_ = 0;
};

// Of seconds: the share of the SLA that each lost, for a scale of 1.
class LostShares {
 public:
  void add(double lost, double seconds) noexcept { shares_.add(kSteps * lost + kFirst, seconds); }
  [[nodiscard]] double all_but(double miss, const LostShares& others, double weight) const noexcept {
    return (shares_.all_but(miss, others.shares_, weight) - kFirst) / kSteps;
  }

 private:
  static constexpr double kSteps = 4, kFirst = -2;  // a margin's shares are of -2 to 14: so 0 to 4
  MarginShares shares_;
};

struct SharedAsking {  // of a user's streams
  SharedAsking() noexcept {
    const AskingSettings s;
    // As if seconds had been such that a scale of 1 is right.
    for (int i = 1; i < 20; ++i) seconds.add(std::log(20.0 / i) / std::log(20.0), s.shared_seconds);
  }
  CertaintyFigures figures;
  LostShares seconds;
  bool asks = false;
  double thrift = 1;  // frames that they send, of those that they would by the clock
};

class Asking {
 public:
  // At an answer: what the client had expected, x of the stride, what was lost.
  void observed(SharedAsking& shared, double expected, double x, double loss, double sla_drop,
                const AskingSettings& s) noexcept {
    own_.add(expected, x, loss, kOwn);
    shared.figures.add(expected, x, loss, kShared);
    CertaintyFigures all = own_;
    all.join(shared.figures, s.shared_observations);
    worth_ = all.worth();
    factor_ = all.factor(s.above * sla_drop);
    expected_slope_ = expected / x;
    slope_share_ = s.slope_share * std::min(1.0, x / s.slope_x);
    if (shared.figures.observations() >= s.observations)
      shared.asks = shared.figures.worth() > (shared.asks ? s.worthless : s.worth);
    // Streams that ask leave partitions idle for each other, others do not: so a user's streams go over together.
    asks_ = s.on && shared.asks && !(own_.observations() >= s.own_observations && own_.worth() < s.own_worthless);
  }
  // A second in which it lost so much of its SLA while it might ask.
  void measured(SharedAsking& shared, double lost, const AskingSettings& s) noexcept {
    seconds_.add(lost / scale_, s.own_seconds);
    shared.seconds.add(lost / scale_, s.shared_seconds);
  }
  void settle(const SharedAsking& shared, const AskingSettings& s) noexcept {
    const double most = std::max(seconds_.all_but(s.miss, shared.seconds, s.weight), 0.01);
    scale_ = std::clamp(std::pow(most, -s.by_misses), s.min_scale, s.max_scale);
  }
  void answered(TimeNs now, const AskingSettings& s) noexcept {
    if (since_ns_ == 0) since_ns_ = now;
    rate_ = rate_ * faded(now - last_ns_, s) + 1 / static_cast<double>(s.rate_memory_ns);
    last_ns_ = now;
  }
  void restart() noexcept { rate_ = 0, since_ns_ = 0; }

  [[nodiscard]] bool asks() const noexcept { return asks_; }
  [[nodiscard]] double worth() const noexcept { return worth_; }
  [[nodiscard]] double factor() const noexcept { return factor_; }
  [[nodiscard]] double scale() const noexcept { return scale_; }
  // `estimated` (estimator.h), moved towards what was expected at the last answer where that is worth something.
  [[nodiscard]] double slope(double estimated) const noexcept {
    return asks_ ? estimated + slope_share_ * (factor_ * expected_slope_ - estimated) : estimated;
  }
  // From what is expected on an algorithm that loses `local` is better; 0: nobody knows.
  [[nodiscard]] double local_above(double local) const noexcept { return asks_ && local < 1 ? local / factor_ : 0; }
  // Frames a nanosecond; `usual` until it was measured.
  [[nodiscard]] double rate(TimeNs now, double usual, const AskingSettings& s) const noexcept {
    if (since_ns_ == 0) return usual;
    return rate_ * faded(now - last_ns_, s) + usual * faded(now - since_ns_, s);
  }
  [[nodiscard]] bool rate_known(TimeNs now, const AskingSettings& s) const noexcept {
    return since_ns_ != 0 && now - since_ns_ > s.rate_memory_ns;
  }

 private:
  static constexpr double kOwn = 60, kShared = 800;  // observations that are remembered
  static double faded(TimeNs passed, const AskingSettings& s) noexcept {
    return std::exp(-static_cast<double>(passed) / static_cast<double>(s.rate_memory_ns));
  }
  CertaintyFigures own_;
  LostShares seconds_;
  bool asks_ = false;
  double worth_ = 0, factor_ = 1, scale_ = 1, rate_ = 0;
  double expected_slope_ = 0, slope_share_ = 0;
  TimeNs since_ns_ = 0, last_ns_ = 0;
};

}  // namespace leat::core::streams
