#include "engine/core/policy/look_ahead/look_ahead.h"

#include <algorithm>
#include <cmath>

#include "engine/core/policy/look_ahead/look_ahead_play.h"

namespace leat::core {
namespace {

using ahead::Members, ahead::Play, ahead::Slot, ahead::Table, ahead::kNothing;

constexpr std::uint32_t kDepth = 3;  // moves after the first that are tried out instead of following the rule
constexpr std::size_t kMoves = 12;   // first moves that are compared

struct Move {
  std::uint32_t source = kNone, requests = 0;  // 0: idle, with this source in mind
  TimeNs start = kNever, end = kNever;
  double weight = 0, cost = kNothing;

  [[nodiscard]] bool before(const Move& o) const noexcept {  // in which order they are tried
    if ((requests > 0) != (o.requests > 0)) return requests > 0;
    if (end != o.end) return end < o.end;
    return weight != o.weight ? weight > o.weight : source != o.source ? source < o.source : requests > o.requests;
  }
};

}  // namespace

LookAheadMove LookAhead::decide(TimeNs now) const noexcept {
  Table table(*this, now);
  const Play fresh(table);
  std::array<Move, kLookAheadSources * 8> moves;
  std::size_t count = 0;
  TimeNs soonest = kNever;
  for (std::uint32_t i = 0; i < sources.size(); ++i) {
    const LookAheadSource& s = sources[i];
    const Slot r = fresh.slot(i, now);
    if ((s.machines & 1) == 0 || r.start == kNever) continue;
    if (r.start > now) {
      soonest = std::min(soonest, r.start);
      if (count < moves.size()) moves[count++] = {.source = i, .start = r.start, .end = r.end, .weight = s.weight};
    }
    if (s.waiting_ns == kNever) continue;
    Members members;
    for (std::uint32_t n = fresh.batch(0, i, now, s.cap, false, members);
         n > 0 && count<moves.size(); n = s.period_ns> 0 ? n - 1 : n / 2) {
      moves[count++] = {.source = i, .requests = n, .start = now, .end = r.end, .weight = s.weight};
    }
  }
  if (count == 0) return {};
  const auto end = moves.begin() + static_cast<std::ptrdiff_t>(count);
  std::sort(moves.begin(), end, [](const Move& a, const Move& b) { return a.before(b); });
  if (count > kMoves) {  // half of them the most urgent, the others the heaviest
    std::sort(moves.begin() + kMoves / 2, end,
              [](const Move& a, const Move& b) { return a.weight != b.weight ? a.weight > b.weight : a.before(b); });
    count = kMoves;
  }
  double min = kNothing;
  for (std::uint32_t depth = 0; depth <= kDepth && table.looks > 0; ++depth) {
    for (std::size_t k = 0; k < count && table.looks > 0; ++k) {
      Move& move = moves[k];
      Play play = fresh;
      play.start(0, move.source, move.start, std::max(1u, move.requests), true);
      // Equal costs stay equal, so that the order decides.
      move.cost = std::min(move.cost, play.search(depth, std::min(move.cost, std::nextafter(min, kNothing))));
      min = std::min(min, move.cost);
    }
  }
  const Move* best = &moves[0];
  for (std::size_t k = 1; k < count; ++k) {
    if (moves[k].cost < best->cost || (moves[k].cost == best->cost && moves[k].before(*best))) best = &moves[k];
  }
  if (best->requests == 0) return {.source = kNone, .requests = 0, .until_ns = soonest};
  return {.source = best->source, .requests = best->requests, .until_ns = kNever};
}

}  // namespace leat::core
