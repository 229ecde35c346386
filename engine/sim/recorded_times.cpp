#include "engine/sim/recorded_times.h"

#include <algorithm>
#include <cstdlib>
#include <span>

namespace leat::sim {
namespace {

using core::TimeNs;

// Runs about the same time that one is drawn of.
constexpr std::size_t kNear = 128;
// So many runs of a size say how long it mostly takes; fewer may all have been kept waiting.
constexpr std::size_t kEnough = 16;
// What takes so many times as long as it mostly does was kept waiting by its host. What takes less than that more is of
// the batch itself.
constexpr double kStall = 2;
constexpr TimeNs kSame = 1'000;  // of two moments

TimeNs planned_ns(const std::vector<TimeNs>& table, std::uint32_t units) {
  return table[std::min<std::size_t>(units, table.size()) - 1];
}

TimeNs scaled(TimeNs ns, double by) {
  return std::max<TimeNs>(1, static_cast<TimeNs>(static_cast<double>(ns) * by + 0.5));
}

// Calls use(run, its latency table, since when it had its partition) for each that says how long something takes.
template <class Use>
void for_each_time(const record::History& h, const Use& use) {
  std::vector<TimeNs> ended;  // by partition: the last batch there
  for (const record::History::Run& r : h.runs) {
    if (r.partition >= ended.size()) ended.resize(r.partition + 1, 0);
    const TimeNs since = std::max(r.sent_ns, ended[r.partition]);
    ended[r.partition] = r.end_ns;
    if (r.lost || r.units == 0) continue;
    const core::RouteSpec& route = h.plans[r.plan].plan->topology.routes[r.route];
    use(r, route.stages[r.stage].latency.p50_ns, since);
  }
}

RecordedTimes::StageKey key_of(const record::History& h, const record::History::Run& r) {
  const record::RecordedPlan& plan = *h.plans[r.plan].plan;
  return {.module = module_name(plan, r.module),
          .stages = static_cast<std::uint32_t>(plan.topology.routes[r.route].stages.size()),
          .stage = r.stage,
          .went_on = r.went_on,
          .goes_on = r.goes_on};
}

}  // namespace

RecordedTimes::RecordedTimes(const record::History& h) {
  for_each_time(h, [&](const record::History::Run& r, const std::vector<TimeNs>& table, TimeNs since) {
    const TimeNs took = std::max<TimeNs>(1, r.end_ns - since);
    const StageKey key = key_of(h, r);
    auto& classes = stages_[key].classes;
    auto own = std::ranges::find(classes, table, &Class::table);
    if (own == classes.end()) own = classes.insert(own, {.table = table, .sizes = {}});
    own->sizes[r.units].runs.push_back({.at_ns = r.end_ns - took, .took_ns = took});
    ratios_[key.module].push_back(static_cast<double>(took) / static_cast<double>(planned_ns(table, r.units)));
  });
  for (auto& [module, ratios] : ratios_) std::ranges::sort(ratios);
  for (auto& [key, times] : stages_)
    for (Class& c : times.classes)
      for (auto& [units, size] : c.sizes) {
        const auto middle = size.runs.begin() + static_cast<std::ptrdiff_t>(size.runs.size() / 2);
        std::ranges::nth_element(size.runs, middle, {}, &Run::took_ns);
        size.mostly_ns = middle->took_ns;
        std::ranges::sort(size.runs, {}, &Run::at_ns);
      }
  keep_spans(h);
}

// What a partition went on with by itself is as slow as what it went on from: only both together are known.
void RecordedTimes::keep_spans(const record::History& h) {
  std::vector<std::size_t> first;  // by partition: of what it goes on with, in spans_
  for_each_time(h, [&](const record::History::Run& r, const std::vector<TimeNs>& table, TimeNs since) {
    if (r.partition >= spans_.size()) {
      spans_.resize(r.partition + 1);
      first.resize(r.partition + 1);
    }
    std::vector<Span>& spans = spans_[r.partition];
    if (!r.went_on || spans.empty()) first[r.partition] = spans.size();
    const Near near = nearest(*times_of(key_of(h, r)), table, r.units);
    spans.push_back({.from_ns = std::min(since, r.end_ns - 1),
                     .to_ns = r.end_ns,
                     .mostly_ns = scaled(near.size->mostly_ns, near.scale)});
    if (r.goes_on) return;
    TimeNs mostly = 0;
    for (std::size_t i = first[r.partition]; i < spans.size(); ++i) mostly += spans[i].mostly_ns;
    const double slow = static_cast<double>(r.end_ns - spans[first[r.partition]].from_ns) / static_cast<double>(mostly);
    for (std::size_t i = first[r.partition]; i < spans.size(); ++i) spans[i].slow = slow;
  });
}

const RecordedTimes::Times* RecordedTimes::times_of(StageKey stage) const {
  auto found = stages_.find(stage);
  if (found == stages_.end() && (stage.went_on || stage.goes_on)) {
    stage.went_on = stage.goes_on = false;
    found = stages_.find(stage);
  }
  return found == stages_.end() ? nullptr : &found->second;
}

// Of the same class, else of the one that takes most nearly as long; of the same size, else of the nearest with enough
// runs, the larger of two.
RecordedTimes::Near RecordedTimes::nearest(const Times& times, const std::vector<TimeNs>& table, std::uint32_t units) {
  const TimeNs planned = planned_ns(table, units);
  const auto distance = [&](const Class& c) { return std::abs(planned_ns(c.table, units) - planned); };
  auto of = std::ranges::find(times.classes, table, &Class::table);
  const bool same_class = of != times.classes.end();
  if (!same_class) of = std::ranges::min_element(times.classes, {}, distance);
  std::size_t most = 0;
  for (const auto& [each, size] : of->sizes) most = std::max(most, size.runs.size());
  const auto away = [&](const std::pair<const std::uint32_t, Size>& s) {
    return s.second.runs.size() < std::min(kEnough, most)
               ? UINT32_MAX
               : 2 * (s.first > units ? s.first - units : units - s.first) + (s.first < units ? 1 : 0);
  };
  const auto size = std::ranges::min_element(of->sizes, {}, away);
  if (same_class && size->first == units) return {.size = &size->second, .seen = true};
  return {.size = &size->second,
          .scale = static_cast<double>(planned) / static_cast<double>(planned_ns(of->table, size->first)),
          .seen = same_class && of->sizes.contains(units)};
}

// What takes `alone_ns` where nothing stalls, from `at_ns` on, which is in the first of the spans or before it.
TimeNs RecordedTimes::through_stalls(std::span<const Span> spans, TimeNs at_ns, TimeNs alone_ns) {
  TimeNs now = at_ns, left = alone_ns;
  for (const Span& s : spans) {
    if (now + left <= s.from_ns) break;
    if (s.slow < kStall) continue;
    if (now < s.from_ns) {
      left -= s.from_ns - now;
      now = s.from_ns;
    }
    const double room = static_cast<double>(s.to_ns - now) / s.slow;
    if (static_cast<double>(left) <= room) return now + scaled(left, s.slow) - at_ns;
    left -= static_cast<TimeNs>(room);
    now = s.to_ns;
  }
  return now + left - at_ns;
}

RecordedTimes::Drawn RecordedTimes::draw(const StageKey& stage, const core::LatencyTable& table, std::uint32_t units,
                                         core::PartitionId partition, TimeNs at_ns, std::uint64_t draw) const {
  TimeNs mostly = planned_ns(table.p50_ns, units);
  double slow = 1;
  bool seen = false;
  if (const Times* const times = times_of(stage); times != nullptr) {
    const Near near = nearest(*times, table.p50_ns, units);
    const std::vector<Run>& runs = near.size->runs;
    const auto later = std::ranges::lower_bound(runs, at_ns, {}, &Run::at_ns) - runs.begin();
    const auto count = std::min(runs.size(), kNear);
    const auto first = std::clamp<std::ptrdiff_t>(later - static_cast<std::ptrdiff_t>(count / 2), 0,
                                                  static_cast<std::ptrdiff_t>(runs.size() - count));
    slow = static_cast<double>(runs[static_cast<std::size_t>(first) + draw % count].took_ns) /
           static_cast<double>(near.size->mostly_ns);
    mostly = scaled(near.size->mostly_ns, near.scale);
    seen = near.seen;
  } else if (const auto ratios = ratios_.find(stage.module); ratios != ratios_.end()) {
    // Cut elsewhere: as the whole model did, beside its plan.
    const double middle = ratios->second[ratios->second.size() / 2];
    slow = ratios->second[draw % ratios->second.size()] / middle;
    mostly = scaled(mostly, middle);
  }
  if (partition >= spans_.size()) return {.ns = scaled(mostly, slow), .seen = seen};
  const std::vector<Span>& all = spans_[partition];
  for (auto s = std::ranges::lower_bound(all, at_ns - kSame, {}, &Span::from_ns);
       s != all.end() && s->from_ns <= at_ns + kSame; ++s)
    if (s->mostly_ns == mostly) return {.ns = s->to_ns - s->from_ns, .seen = seen};
  const auto span = std::ranges::upper_bound(all, at_ns, {}, &Span::to_ns);
  return {.ns = through_stalls({span, all.end()}, at_ns, scaled(mostly, slow < kStall ? slow : 1)), .seen = seen};
}

}  // namespace leat::sim
