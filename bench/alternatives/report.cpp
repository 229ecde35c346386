#include "bench/alternatives/report.h"

#include <algorithm>
#include <tuple>

#include "bench/study.h"
#include "tools/base/documents/text_file.h"
#include "tools/base/text/formatted.h"

namespace leat::bench::alternatives {

namespace {

constexpr std::pair<const char*, double Figures::*> kFigures[] = {{"offered_fps", &Figures::offered_fps},
                                                                  {"in_time_fps", &Figures::in_time_fps},
                                                                  {"in_time_share", &Figures::in_time_share},
                                                                  {"worst_camera", &Figures::worst_camera},
                                                                  {"p50_ms", &Figures::p50_ms},
                                                                  {"p99_ms", &Figures::p99_ms},
                                                                  {"late_share", &Figures::late_share},
                                                                  {"cores", &Figures::cores},
                                                                  {"others_cores", &Figures::others_cores},
                                                                  {"switches_a_picture", &Figures::switches_a_picture}};
constexpr std::pair<const char*, std::uint64_t Round::*> kCounts[] = {
    {"offered", &Round::offered}, {"answered", &Round::answered}, {"passed", &Round::passed},
    {"failed", &Round::failed},   {"lost", &Round::lost},         {"decided_twice", &Round::decided_twice}};
constexpr std::pair<const char*, ByGroup Round::*> kGroups[] = {{"cores_by_group", &Round::cores},
                                                                {"switches_by_group", &Round::switches_a_picture},
                                                                {"memory_mb_by_group", &Round::memory_mb},
                                                                {"in_time_fps_by_party", &Round::party_fps},
                                                                {"in_time_share_by_party", &Round::party_share},
                                                                {"p99_ms_by_party", &Round::party_p99_ms}};

double sum(const ByGroup& groups) {
  double out = 0;
  for (const auto& [group, value] : groups) out += value;
  return out;
}

Json to_json(const Round& round) {
  Json out = Json::object();
  for (const auto& [name, figure] : kFigures) out[name] = round.figures.*figure;
  for (const auto& [name, count] : kCounts) out[name] = round.*count;
  for (const auto& [name, groups] : kGroups) out[name] = round.*groups;
  return out;
}

Round round_of(const Json& json) {
  Round out;
  for (const auto& [name, figure] : kFigures) out.figures.*figure = json.at(name).get<double>();
  for (const auto& [name, count] : kCounts) out.*count = json.at(name).get<std::uint64_t>();
  for (const auto& [name, groups] : kGroups) out.*groups = json.value(name, ByGroup{});
  return out;
}

}  // namespace

std::vector<double> Case::all(double Figures::*figure) const {
  std::vector<double> out;
  for (const Round& r : rounds) out.push_back(r.figures.*figure);
  return out;
}

std::string words_of(const Case& c) { return c.parties == name_of(Parties::alike) ? "" : " of two " + c.parties; }

double Case::middle(double Figures::*figure) const { return median(all(figure)); }

ByGroup Case::middle(ByGroup Round::*groups) const {
  std::map<std::string, std::vector<double>> all;
  for (const Round& r : rounds)
    for (const auto& [group, value] : r.*groups) all[group].push_back(value);
  ByGroup out;
  for (const auto& [group, values] : all) out[group] = median(values);
  return out;
}

std::vector<double> Case::memory_mb() const {
  std::vector<double> out;
  for (const Round& r : rounds)
    if (!r.memory_mb.empty()) out.push_back(sum(r.memory_mb));
  return out;
}

Case& Report::at(const Case& like) {
  const auto key = [](const Case& c) { return std::tie(c.source, c.parties, c.contender, c.cameras, c.deadline_ms); };
  const auto found = std::find_if(cases_.begin(), cases_.end(), [&](const Case& c) { return key(c) == key(like); });
  return found != cases_.end() ? *found : cases_.emplace_back(like);
}

void Report::add(const std::string& source, std::string_view contender, std::uint32_t cameras,
                 std::uint32_t deadline_ms, const Measured& run) {
  Round round{.figures = figures_of(run, std::int64_t{deadline_ms} * 1'000'000),
              .offered = run.offered,
              .answered = run.answered,
              .passed = run.passed,
              .failed = run.failed,
              .lost = run.lost,
              .decided_twice = run.decided_twice,
              .cores = run.cores,
              .switches_a_picture = {},
              .memory_mb = run.memory_mb.value_or(ByGroup{}),
              .party_fps = {},
              .party_share = {},
              .party_p99_ms = {}};
  for (const auto& [group, a_second] : run.switches)
    round.switches_a_picture[group] =
        a_second * run.seconds / static_cast<double>(std::max<std::uint64_t>(run.answered, 1));
  for (const auto& [party, figures] : by_party(run, std::int64_t{deadline_ms} * 1'000'000)) {
    round.party_fps[party] = figures.in_time_fps;
    round.party_share[party] = figures.in_time_share;
    round.party_p99_ms[party] = figures.p99_ms;
  }
  at({.source = source,
      .parties = std::string(name_of(run.parties)),
      .contender = std::string(contender),
      .cameras = cameras,
      .deadline_ms = deadline_ms,
      .rounds = {}})
      .rounds.push_back(std::move(round));
}

Status Report::read(const std::string& file) {
  const auto text = read_text_file(file);
  if (!text.ok()) return Error{text.error()};
  try {
    const Json all = Json::parse(*text);
    for (const Json& c : all.at("cases")) {
      Case& into = at({.source = c.at("source").get<std::string>(),
                       .parties = c.value("case", std::string(name_of(Parties::alike))),
                       .contender = c.at("contender").get<std::string>(),
                       .cameras = c.at("cameras").get<std::uint32_t>(),
                       .deadline_ms = c.at("deadline_ms").get<std::uint32_t>(),
                       .rounds = {}});
      for (const Json& round : c.at("rounds")) into.rounds.push_back(round_of(round));
    }
  } catch (const JsonError& e) {
    return Error{file + ": is not what this program's --json wrote: " + e.what()};
  }
  return Done{};
}

std::vector<Case> Report::cases() const {
  std::vector<std::string> contenders;
  for (const Case& c : cases_)
    if (std::find(contenders.begin(), contenders.end(), c.contender) == contenders.end())
      contenders.push_back(c.contender);
  std::vector<Case> out = cases_;
  std::stable_sort(out.begin(), out.end(), [&](const Case& a, const Case& b) {
    const auto key = [&](const Case& c) {
      return std::tuple(c.source != "raw", parties_named(c.parties), c.cameras, c.deadline_ms,
                        std::find(contenders.begin(), contenders.end(), c.contender));
    };
    return key(a) < key(b);
  });
  return out;
}

Json Report::json() const {
  std::uint64_t lost = 0, twice = 0, failed = 0, wrong = 0;
  double least_share = 1;
  Json list = Json::array();
  for (const Case& c : cases()) {
    Json one = {{"source", c.source},
                {"case", c.parties},
                {"contender", c.contender},
                {"cameras", c.cameras},
                {"deadline_ms", c.deadline_ms}};
    for (const auto& [name, figure] : kFigures) one[name] = c.middle(figure);
    const auto in_time = c.all(&Figures::in_time_fps);
    one["in_time_fps_least"] = min_of(in_time), one["in_time_fps_most"] = max_of(in_time);
    one["memory_mb"] = c.memory_mb().empty() ? Json() : Json(median(c.memory_mb()));
    for (const auto& [name, groups] : kGroups) one[name] = c.middle(groups);
    for (const auto& [party, share] : c.middle(&Round::party_share)) least_share = std::min(least_share, share);
    Json rounds = Json::array();
    std::uint64_t answered = 0;
    for (const Round& r : c.rounds) {
      lost += r.lost, twice += r.decided_twice, failed += r.failed, answered += r.answered;
      wrong += r.offered != r.answered + r.passed + r.failed + r.lost;
      rounds.push_back(to_json(r));
    }
    one["answered"] = answered;
    one["rounds"] = rounds;
    list.push_back(one);
  }
  const auto told = [&](auto figure) { return list.empty() ? Json() : Json(figure); };
  return {{"lost", told(lost)},           {"decided_twice", told(twice)},           {"failed", told(failed)},
          {"ledgers_wrong", told(wrong)}, {"least_party_share", told(least_share)}, {"cases", list}};
}

std::string Report::text() const {
  std::string out;
  const Case* before = nullptr;
  const auto sorted = cases();
  for (const Case& c : sorted) {
    if (before == nullptr || before->source != c.source || before->parties != c.parties ||
        before->cameras != c.cameras || before->deadline_ms != c.deadline_ms) {
      out += formatted("%s, %u cameras%s, %.0f pictures a second, within %u ms\n", c.source.c_str(), c.cameras,
                       words_of(c).c_str(), c.middle(&Figures::offered_fps), c.deadline_ms);
      out += formatted("  %-12s %8s %17s %6s %6s %6s %6s %6s %9s %7s  %s\n", "", "in time", "[least, most]", "worst",
                       "p50", "p99", "late %", "cores", "switches", "MB", "cores by group");
    }
    before = &c;
    const auto in_time = c.all(&Figures::in_time_fps);
    const std::string memory = c.memory_mb().empty() ? "-" : formatted("%.0f", median(c.memory_mb()));
    out += formatted("  %-12s %8.1f [%7.1f,%7.1f] %6.2f %6.1f %6.1f %6.1f %6.2f %9.1f %7s ", c.contender.c_str(),
                     median(in_time), min_of(in_time), max_of(in_time), c.middle(&Figures::worst_camera),
                     c.middle(&Figures::p50_ms), c.middle(&Figures::p99_ms), c.middle(&Figures::late_share) * 100,
                     c.middle(&Figures::cores), c.middle(&Figures::switches_a_picture), memory.c_str());
    for (const auto& [group, cores] : c.middle(&Round::cores)) out += formatted(" %s %.2f", group.c_str(), cores);
    const ByGroup fps = c.middle(&Round::party_fps);
    for (const auto& [party, share] : c.middle(&Round::party_share))
      out += formatted("  %s %.1f (%.3f)", party.c_str(), fps.at(party), share);
    out += "\n";
  }
  return out;
}

}  // namespace leat::bench::alternatives
