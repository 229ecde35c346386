#include <algorithm>
#include <cmath>
#include <set>

#include "bench/alternatives/report.h"
#include "bench/study.h"
#include "tools/base/cli/svg.h"
#include "tools/base/text/formatted.h"

namespace leat::bench::alternatives {

namespace {

template <class T>
std::vector<T> distinct(const std::vector<Case>& cases, T Case::*what) {
  std::vector<T> out;
  for (const Case& c : cases)
    if (std::find(out.begin(), out.end(), c.*what) == out.end()) out.push_back(c.*what);
  return out;
}

std::uint32_t middle_deadline(const std::vector<Case>& cases) {
  auto all = distinct(cases, &Case::deadline_ms);
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

const Case* find(const std::vector<Case>& cases, const std::string& source, const std::string& contender,
                 std::uint32_t cameras, std::uint32_t deadline_ms) {
  const auto at = std::find_if(cases.begin(), cases.end(), [&](const Case& c) {
    return c.source == source && c.parties == name_of(Parties::alike) && c.contender == contender &&
           c.cameras == cameras && c.deadline_ms == deadline_ms;
  });
  return at == cases.end() ? nullptr : &*at;
}

// "706 [683-730]"; alike: the median alone.
std::string spread(const std::vector<double>& v) {
  const long least = std::lround(min_of(v)), most = std::lround(max_of(v));
  std::string out = formatted("%.0f", median(v));
  if (least != most) out += formatted(" [%ld-%ld]", least, most);
  return out;
}

std::string row(const std::vector<Case>& cases, const Case& like, const std::vector<std::uint32_t>& deadlines_ms) {
  std::string out = "| " + like.contender + " |";
  for (const std::uint32_t ms : deadlines_ms) {
    const Case* const c = find(cases, like.source, like.contender, like.cameras, ms);
    out += c == nullptr ? " |" : " " + spread(c->all(&Figures::in_time_fps)) + " |";
  }
  out +=
      formatted(" %.2f | %.1f, %.1f | %.1f | %.2f | %.1f |", like.middle(&Figures::worst_camera),
                like.middle(&Figures::p50_ms), like.middle(&Figures::p99_ms), like.middle(&Figures::late_share) * 100,
                like.middle(&Figures::cores), like.middle(&Figures::switches_a_picture));
  out += like.memory_mb().empty() ? " |" : formatted(" %.0f |", median(like.memory_mb()));
  return out + "\n";
}

// Of cameras of two classes or users: what each party had.
std::string page_of_parties(const std::vector<Case>& cases) {
  std::string out;
  const Case* before = nullptr;
  for (const Case& c : cases) {
    if (c.parties == name_of(Parties::alike)) continue;
    const ByGroup fps = c.middle(&Round::party_fps), share = c.middle(&Round::party_share);
    const ByGroup p99 = c.middle(&Round::party_p99_ms);
    if (before == nullptr || before->source != c.source || before->parties != c.parties ||
        before->cameras != c.cameras || before->deadline_ms != c.deadline_ms) {
      out += formatted("\n%s, %u cameras%s, %.0f pictures a second, within %u ms\n\n| | all |", c.source.c_str(),
                       c.cameras, words_of(c).c_str(), c.middle(&Figures::offered_fps), c.deadline_ms);
      for (const auto& [party, value] : fps) out += formatted(" %s | share | p99 ms |", party.c_str());
      out += "\n|---|---|---|---|---|---|---|---|\n";
    }
    before = &c;
    out += "| " + c.contender + " | " + spread(c.all(&Figures::in_time_fps)) + " |";
    for (const auto& [party, value] : fps)
      out += formatted(" %.0f | %.3f | %.1f |", value, share.at(party), p99.at(party));
    out += "\n";
  }
  return out;
}

}  // namespace

std::string page_of(const std::vector<Case>& cases) {
  if (cases.empty()) return {};
  const std::uint32_t middle = middle_deadline(cases);
  auto deadlines_ms = distinct(cases, &Case::deadline_ms);
  std::sort(deadlines_ms.begin(), deadlines_ms.end());
  std::string out, head = "| |", line = "|---|";
  for (const std::uint32_t ms : deadlines_ms) head += formatted(" within %u ms |", ms), line += "---|";
  head += " worst camera | p50, p99 ms | late % | cores | switches a picture | MB |\n";
  line += "---|---|---|---|---|---|\n";
  const Case* before = nullptr;
  for (const Case& c : cases) {
    if (c.deadline_ms != middle || c.parties != name_of(Parties::alike)) continue;
    if (before == nullptr || before->source != c.source || before->cameras != c.cameras)
      out += formatted("%s%s, %u cameras, %.0f pictures a second\n\n", before == nullptr ? "" : "\n", c.source.c_str(),
                       c.cameras, c.middle(&Figures::offered_fps)) +
             head + line;
    out += row(cases, c, deadlines_ms);
    before = &c;
  }
  return out + page_of_parties(cases);
}

std::string picture_of(const std::vector<Case>& cases) {
  if (cases.empty()) return {};
  const std::uint32_t middle = middle_deadline(cases);
  std::vector<cli::Plot> plots;
  for (const std::string& source : distinct(cases, &Case::source)) {
    cli::Plot plot{.title = formatted("Answered within %u ms, a second: %s cameras", middle, source.c_str()),
                   .x_label = "cameras, 30 pictures a second each",
                   .y_label = "pictures a second",
                   .from_zero = true,
                   .series = {{.name = "offered", .points = {}, .dashed = true}},
                   .width = 720,
                   .height = 320,
                   .legend_beside = true};
    for (const std::string& contender : distinct(cases, &Case::contender)) {
      cli::Series series{.name = contender, .points = {}};
      for (const Case& c : cases)
        if (c.source == source && c.parties == name_of(Parties::alike) && c.contender == contender &&
            c.deadline_ms == middle)
          series.points.emplace_back(c.cameras, c.middle(&Figures::in_time_fps));
      if (!series.points.empty()) plot.series.push_back(std::move(series));
    }
    std::set<std::pair<double, double>> offered;
    for (const Case& c : cases)
      if (c.source == source && c.deadline_ms == middle) offered.emplace(c.cameras, c.middle(&Figures::offered_fps));
    plot.series.front().points.assign(offered.begin(), offered.end());
    plots.push_back(std::move(plot));
  }
  return cli::plots_svg(plots);
}

}  // namespace leat::bench::alternatives
