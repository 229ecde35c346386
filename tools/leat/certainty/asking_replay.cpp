#include "tools/leat/certainty/asking_replay.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace leat::tools {
namespace {

constexpr std::uint32_t kLatest = 4, kEarliest = 2;  // intervals by the clock; frames
constexpr double kRefill = 0.5, kBucket = 1.5;       // intervals by the clock until one more may be asked for; most
constexpr int kHalvings = 24;                        // of the loss that is searched, from 1 down

}  // namespace

std::vector<double> Replayed::seconds(double fps) const {
  std::vector<double> out;
  const auto frames = static_cast<std::ptrdiff_t>(std::max(1L, std::lround(fps)));
  for (auto at = lost.begin(); lost.end() - at >= frames; at += frames)
    out.push_back(std::accumulate(at, at + frames, 0.0) / static_cast<double>(frames));
  return out;
}

Replayed replay(const scene::DropTable& table, std::uint32_t from, std::uint32_t to, const Replay& how) {
  Replayed out;
  std::uint32_t source = from, sent = from;
  bool under_way = false;
  const double refill = kRefill * how.interval;
  double paid = from - kBucket * refill;
  for (std::uint32_t now = from + 1; now < to; ++now) {
    if (under_way && now >= sent + how.answer) source = sent, under_way = false;
    const std::uint32_t since = now - sent, age = now - source;
    bool send = since >= (how.asks ? kLatest * how.interval : how.interval);
    if (how.asks && !send && !under_way && since >= kEarliest && table.expected(source, age) >= how.above) {
      paid = std::max(paid, now - kBucket * refill);
      send = paid + refill <= now;
      if (send) paid += refill;
    }
    if (send && !under_way) sent = now, under_way = true, ++out.sent;
    out.lost.push_back(table.extra(source, age));
  }
  return out;
}

Replayed replay_asking(const scene::DropTable& table, std::uint32_t from, std::uint32_t to, Replay how,
                       std::uint32_t sent) {
  how.asks = true;
  double low = 0, high = 2;  // nothing is expected to lose more than all
  for (int i = 0; i < kHalvings; ++i) {
    how.above = (low + high) / 2;
    (replay(table, from, to, how).sent > sent ? low : high) = how.above;
  }
  how.above = high;
  return replay(table, from, to, how);
}

}  // namespace leat::tools
