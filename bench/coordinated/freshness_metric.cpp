#include "bench/coordinated/freshness_metric.h"

#include <algorithm>
#include <vector>

namespace leat::bench {
namespace {

double ms(TimeNs ns) { return static_cast<double>(ns) / 1e6; }

double permille(std::size_t part, std::size_t whole) {
  return whole == 0 ? 0 : 1000 * static_cast<double>(part) / static_cast<double>(whole);
}

double coverage(const Observed& s, std::span<const Delivery> deliveries, std::size_t windows) {
  std::vector<bool> covered(windows, false);
  for (const Delivery& d : deliveries) {
    const auto window = static_cast<std::size_t>((d.at - s.first) / s.period);
    if (d.at - d.capture <= s.max_age && window < windows) covered[window] = true;
  }
  return permille(static_cast<std::size_t>(std::count(covered.begin(), covered.end(), false)), windows);
}

void view(const Observed& s, std::span<const Delivery> deliveries, std::size_t windows, Freshness& out) {
  std::size_t next = 0, missed = 0, none = 0, run = 0, longest = 0;
  TimeNs newest = s.first;
  for (std::size_t k = 1; k <= windows; ++k) {
    const TimeNs sample = s.first + static_cast<TimeNs>(k) * s.period;
    for (; next < deliveries.size() && deliveries[next].at <= sample; ++next)
      newest = std::max(newest, deliveries[next].capture);
    const bool fresh = next > 0 && sample - newest <= s.max_age;
    none += next == 0 ? 1 : 0;
    missed += fresh ? 0 : 1;
    run = fresh ? 0 : run + 1;
    longest = std::max(longest, run);
  }
  out.view_permille = permille(missed, windows);
  out.no_result_permille = permille(none, windows);
  out.longest_miss_run = static_cast<double>(longest);
}

double longest_gap_ms(const Observed& s, std::span<const Delivery> deliveries) {
  TimeNs expiry = s.first + s.max_age, gap = 0;
  for (const Delivery& d : deliveries) {
    if (d.at - d.capture > s.max_age) continue;
    gap = std::max(gap, d.at - expiry);
    expiry = std::max(expiry, d.capture + s.max_age);
  }
  return ms(std::max(gap, s.end - expiry));
}

void age(const Observed& s, std::span<const Delivery> deliveries, Freshness& out) {
  TimeNs newest = s.first, since = s.first, peak = 0;
  double area = 0;  // ms^2
  const auto until = [&](TimeNs at) {
    area += (ms(since - newest) + ms(at - newest)) / 2 * ms(at - since);
    peak = std::max(peak, at - newest);
    since = at;
  };
  for (const Delivery& d : deliveries) {
    until(d.at);
    newest = std::max(newest, d.capture);
  }
  until(s.end);
  out.mean_age_ms = s.end > s.first ? area / ms(s.end - s.first) : 0;
  out.peak_age_ms = ms(peak);
}

void responses(const Observed& s, std::span<const Delivery> deliveries, Freshness& out) {
  std::vector<TimeNs> took;
  for (const Delivery& d : deliveries) took.push_back(d.at - d.capture);
  std::sort(took.begin(), took.end());
  if (took.empty()) return;
  const auto at = [&](std::size_t percent) {
    return ms(took[(took.size() * percent + 99) / 100 - 1]);
  };  // nearest rank
  out.response_ms_p50 = at(50);
  out.response_ms_p95 = at(95);
  out.response_ms_p99 = at(99);
  const auto fresh = static_cast<std::size_t>(std::upper_bound(took.begin(), took.end(), s.max_age) - took.begin());
  out.stale_permille = permille(took.size() - fresh, took.size());
}

}  // namespace

Freshness measure(const Observed& s, std::span<const Delivery> all) {
  const auto end = std::find_if(all.begin(), all.end(), [&](const Delivery& d) { return d.at >= s.end; });
  const std::span<const Delivery> deliveries(all.begin(), end);
  const auto windows = s.end > s.first ? static_cast<std::size_t>((s.end - s.first) / s.period) : 0;
  Freshness out;
  out.answers = static_cast<double>(deliveries.size());
  out.uncovered_permille = coverage(s, deliveries, windows);
  view(s, deliveries, windows, out);
  out.longest_gap_ms = longest_gap_ms(s, deliveries);
  age(s, deliveries, out);
  responses(s, deliveries, out);
  return out;
}

}  // namespace leat::bench
