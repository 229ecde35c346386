#include "bench/alternatives/figures.h"

#include <algorithm>

#include "tools/base/text/quantile.h"

namespace leat::bench::alternatives {

Measured read_record(const Record& record, const Timetable& times, Parties parties) {
  Measured out;
  out.parties = parties;
  out.seconds = static_cast<double>(times.until_ns - times.from_ns) / 1e9;
  out.decided_twice = record.decided_twice();
  out.latency_ns.resize(times.cameras), out.offered_by_camera.resize(times.cameras);
  for (std::uint32_t c = 0; c < times.cameras; ++c) {
    for (std::uint64_t i = 0; i < times.pictures; ++i) {
      if (!times.measured(c, i)) continue;
      const Record::Picture p = record.at(c, i);
      ++out.offered, ++out.offered_by_camera[c];
      out.answered += p.fate == Fate::answered, out.passed += p.fate == Fate::passed;
      out.failed += p.fate == Fate::failed, out.lost += p.fate == Fate::open;
      if (p.fate == Fate::answered) out.latency_ns[c].push_back(p.answered_ns - times.due_ns(c, i));
    }
  }
  return out;
}

Figures figures_of(const Measured& run, std::int64_t deadline_ns) {
  Figures out{.offered_fps = static_cast<double>(run.offered) / run.seconds,
              .worst_camera = 1,
              .others_cores = run.others_cores};
  std::vector<double> latency_ms;
  std::uint64_t in_time = 0;
  for (std::size_t c = 0; c < run.latency_ns.size(); ++c) {
    std::uint64_t here = 0;
    for (const std::int64_t ns : run.latency_ns[c]) {
      here += ns <= deadline_ns;
      latency_ms.push_back(static_cast<double>(ns) / 1e6);
    }
    in_time += here;
    const auto offered = static_cast<double>(std::max<std::uint64_t>(run.offered_by_camera[c], 1));
    out.worst_camera = std::min(out.worst_camera, static_cast<double>(here) / offered);
  }
  out.in_time_fps = static_cast<double>(in_time) / run.seconds;
  if (run.offered > 0) out.in_time_share = static_cast<double>(in_time) / static_cast<double>(run.offered);
  for (const auto& [group, cores] : run.cores) out.cores += cores;
  if (run.answered == 0) return out;
  const auto answered = static_cast<double>(run.answered);
  out.late_share = static_cast<double>(run.answered - in_time) / answered;
  for (const auto& [group, switches] : run.switches) out.switches_a_picture += switches * run.seconds / answered;
  out.p50_ms = quantile(latency_ms, .5), out.p99_ms = quantile(latency_ms, .99);
  return out;
}

std::map<std::string, PartyFigures> by_party(const Measured& run, std::int64_t deadline_ns) {
  std::map<std::string, PartyFigures> out;
  for (std::uint32_t party = 0; run.parties != Parties::alike && party < count_of(run.parties); ++party) {
    PartyFigures& figures = out[std::string(party_name(run.parties, party))];
    std::vector<double> latency_ms;
    std::uint64_t offered = 0, in_time = 0;
    for (std::uint32_t c = 0; c < run.latency_ns.size(); ++c) {
      if (party_of(run.parties, c) != party) continue;
      offered += run.offered_by_camera[c];
      for (const std::int64_t ns : run.latency_ns[c]) {
        in_time += ns <= deadline_ns;
        latency_ms.push_back(static_cast<double>(ns) / 1e6);
      }
    }
    figures.in_time_fps = static_cast<double>(in_time) / run.seconds;
    if (offered > 0) figures.in_time_share = static_cast<double>(in_time) / static_cast<double>(offered);
    if (!latency_ms.empty()) figures.p99_ms = quantile(latency_ms, .99);
  }
  return out;
}

}  // namespace leat::bench::alternatives
