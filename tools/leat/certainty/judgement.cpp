#include "tools/leat/certainty/judgement.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/core/streams/coordinator/coordinator.h"
#include "tools/leat/certainty/asking_replay.h"

namespace leat::tools {
namespace {

using scene::DropTable;

constexpr std::uint32_t kIntervals[] = {4, 6, 8, 12, 16, 24};
constexpr double kNothing = 0.002;       // lost in the mean: less is not worth asking for
constexpr std::uint32_t kStraight = 24;  // strides that the flicker is found by
constexpr double kWorstOf = 20;

// What a client would see with nothing drifted: where the line through what is seen, over the curve of strides, begins.
double flicker_of(std::span<const DropTable> recordings) {
  const core::streams::CoordinatorSettings usual;
  const core::streams::StrideCurve curve(usual.bend, usual.hidden);
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const DropTable& t : recordings) {
    for (std::uint32_t s = 1; s <= kStraight; ++s) {
      const double at = curve.at(s), seen = t.mean_observed(s);
      n += 1, x += at, y += seen, xx += at * at, xy += at * seen;
    }
  }
  const double spread = n * xx - x * x;
  return spread > 0 ? std::max(0.0, (y - (n * xy - x * y) / spread * x) / n) : 0;
}

// What is lost beside a detection of the same frame (engine/core/streams/estimator.h).
void take_out_flicker(DropTable& t, double flicker) {
  const double f = flicker / std::sqrt(2.0);
  for (std::size_t i = 0; i < t.seen.size(); ++i) {
    const double seen = t.seen[i];
    t.drop[i] =
        i % DropTable::kStrides == 0 ? 0 : static_cast<float>(std::sqrt(std::max(0.0, seen * seen - f * f)) - f);
  }
}

struct Part {
  std::uint32_t from, to;  // frames that may be sent
};
std::vector<Part> parts_of(const DropTable& t) {
  std::vector<Part> out;
  for (std::uint32_t i = 0; i < kJudgedParts; ++i)
    out.push_back(
        {t.frames * i / kJudgedParts / t.every * t.every, t.frames * (i + 1) / kJudgedParts / t.every * t.every});
  return out;
}

// Its sources from `from` on, up to `to`, as a recording of its own.
DropTable cut(const DropTable& t, Part part) {
  const auto first = static_cast<std::ptrdiff_t>(part.from / t.every * DropTable::kStrides);
  const auto last = static_cast<std::ptrdiff_t>(part.to / t.every * DropTable::kStrides);
  DropTable out{.video = t.video, .fps = t.fps, .frames = part.to - part.from, .every = t.every};
  out.drop.assign(t.drop.begin() + first, t.drop.begin() + last);
  out.terms.assign(t.terms.begin() + first, t.terms.begin() + last);
  return out;
}

void add_all_but(scene::CertaintyFit& fit, const DropTable& t, Part left_out) {
  constexpr std::uint32_t near = DropTable::kStrides;
  if (left_out.from > near) fit.add(cut(t, {0, (left_out.from - near) / t.every * t.every}));
  if (const std::uint32_t on = (left_out.to + near + t.every - 1) / t.every * t.every; on < t.frames)
    fit.add(cut(t, {on, t.frames / t.every * t.every}));
}

// A second that loses twice as much counts four times: seconds over an SLA are what is to be few.
double root_mean_square(const std::vector<double>& seconds) {
  double squares = 0;
  for (const double s : seconds) squares += s * s;
  return seconds.empty() ? 0 : std::sqrt(squares / static_cast<double>(seconds.size()));
}

double worst(std::vector<double> seconds) {
  const auto n = static_cast<std::size_t>(std::ceil(static_cast<double>(seconds.size()) / kWorstOf));
  std::sort(seconds.rbegin(), seconds.rend());
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += seconds[i];
  return n == 0 ? 0 : sum / static_cast<double>(n);
}

// Of seconds, by the part that they are of.
using SecondsByPart = std::vector<std::vector<double>>;

std::vector<double> all_but(const SecondsByPart& parts, std::size_t left_out) {
  std::vector<double> out;
  for (std::size_t p = 0; p < parts.size(); ++p)
    if (p != left_out) out.insert(out.end(), parts[p].begin(), parts[p].end());
  return out;
}

// Gathers what a rule told on parts, and what asking by it would have been worth on whole videos: a client that asks
// saves detections in one part and spends them in another.
class Worths {
 public:
  // `video`: with what is expected on each part by a rule that was not made of it.
  void add(const DropTable& video, std::uint32_t answer_frames) {
    for (const Part part : parts_of(video)) {
      DropTable of = cut(video, part);
      const auto first = static_cast<std::ptrdiff_t>(part.from / video.every * DropTable::kStrides);
      of.expects.assign(video.expects.begin() + first,
                        video.expects.begin() + first + static_cast<std::ptrdiff_t>(of.drop.size()));
      const scene::CertaintyWorth w = scene::worth(of);
      for (std::size_t a = 0; a < w.at.size(); ++a) out_.at[a] += w.at[a];
      ++parts_;
      if (w.late > 0) out_.late += w.late, out_.late_by_age += w.late_by_age, ++told_;
    }
    for (std::size_t i = 0; i < std::size(kIntervals); ++i) {
      const Replay clock{.interval = kIntervals[i], .answer = answer_frames};
      const Replayed by_clock = replay(video, 0, video.frames, clock);
      if (by_clock.sent == 0) continue;
      deal(by_clock.seconds(video.fps), seconds_[i].clock);
      deal(replay_asking(video, 0, video.frames, clock, by_clock.sent).seconds(video.fps), seconds_[i].asking);
    }
  }
  [[nodiscard]] RuleWorth worth() {
    const double n = std::max(1u, parts_), told = std::max(1u, told_);
    for (double& each : out_.at) each /= n;
    out_.late /= told, out_.late_by_age /= told;
    out_.gain = gain_without(parts_);
    // The jackknife: as far as it differs where a part is left out.
    double squares = 0;
    for (std::size_t p = 0; p < parts_; ++p) squares += std::pow(gain_without(p) - out_.gain, 2);
    out_.gain_error = std::sqrt(squares * (n - 1) / n);
    double clock = 0, asking = 0;
    for (const Seconds& s : seconds_)
      clock += worst(all_but(s.clock, parts_)), asking += worst(all_but(s.asking, parts_));
    out_.worst_gain = clock > 0 ? 1 - asking / clock : 0;
    return out_;
  }

 private:
  struct Seconds {
    SecondsByPart clock, asking;
  };
  // A video's seconds into parts of its own, as many as it has.
  static void deal(const std::vector<double>& seconds, SecondsByPart& to) {
    const std::size_t first = to.size();
    to.resize(first + kJudgedParts);
    for (std::size_t i = 0; i < seconds.size(); ++i)
      to[first + i * kJudgedParts / seconds.size()].push_back(seconds[i]);
  }
  [[nodiscard]] double gain_without(std::size_t part) const {
    double gains = 0, intervals = 0;
    for (const Seconds& s : seconds_) {
      const double clock = root_mean_square(all_but(s.clock, part));
      if (clock < kNothing) continue;
      gains += 1 - root_mean_square(all_but(s.asking, part)) / clock;
      intervals += 1;
    }
    return intervals > 0 ? gains / intervals : 0;
  }

  RuleWorth out_;
  std::uint32_t parts_ = 0, told_ = 0;
  std::array<Seconds, std::size(kIntervals)> seconds_;
};

}  // namespace

RuleJudgement judge(std::span<DropTable> recordings, const CertaintyRule& given, std::uint32_t answer_frames) {
  RuleJudgement out{.flicker = flicker_of(recordings)};
  for (DropTable& t : recordings) take_out_flicker(t, out.flicker);
  Worths made, comes_with;
  scene::CertaintyFit all;
  for (const DropTable& t : recordings) {
    all.add(t);
    DropTable told = t;
    for (const Part part : parts_of(t)) {
      scene::CertaintyFit others;
      for (const DropTable& other : recordings) {
        if (&other == &t) {
          add_all_but(others, t, part);
        } else {
          others.add(other);
        }
      }
      DropTable held_out = cut(t, part);
      held_out.expect(others.rule());
      std::copy(held_out.expects.begin(), held_out.expects.end(),
                told.expects.begin() + static_cast<std::ptrdiff_t>(part.from / t.every * DropTable::kStrides));
    }
    made.add(told, answer_frames);
    told.expect(given);
    comes_with.add(told, answer_frames);
  }
  out.rule = all.rule();
  out.made = made.worth();
  out.given = comes_with.worth();
  out.rule.asks = out.made.asks();
  return out;
}

}  // namespace leat::tools
