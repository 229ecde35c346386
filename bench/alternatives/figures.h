// What a run of a contender came to. Pure, but for reading the record; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/alternatives/parties.h"
#include "bench/alternatives/record.h"
#include "bench/alternatives/timetable.h"

namespace leat::bench::alternatives {

// One run, as it was; pictures are those that were due in the time measured.
struct Measured {
  double seconds = 0;
  Parties parties = Parties::alike;
  std::uint64_t offered = 0, answered = 0, passed = 0, failed = 0, lost = 0, decided_twice = 0;
  std::vector<std::vector<std::int64_t>> latency_ns;  // by camera, of answered pictures, from when they were due
  std::vector<std::uint64_t> offered_by_camera;
  std::map<std::string, double> cores;     // used, by group of threads
  std::map<std::string, double> switches;  // of context a second, by group
  double others_cores = 0;                 // used by others meanwhile, as far as the kernel tells
  std::optional<std::map<std::string, double>> memory_mb;

  [[nodiscard]] bool adds_up() const {
    return lost == 0 && decided_twice == 0 && offered == answered + passed + failed;
  }
};
Measured read_record(const Record& record, const Timetable& times, Parties parties);

// The same held against a deadline.
struct Figures {
  double in_time_fps = 0, offered_fps = 0, in_time_share = 0;
  double worst_camera = 0;        // the least share of a camera's pictures that were answered in time
  double p50_ms = 0, p99_ms = 0;  // of answers
  double late_share = 0;          // share of the answers
  double others_cores = 0;
  double cores = 0, switches_a_picture = 0;  // of answered pictures
};
Figures figures_of(const Measured& run, std::int64_t deadline_ns);

// Of a party's cameras, where there are two.
struct PartyFigures {
  double in_time_fps = 0, in_time_share = 0, p99_ms = 0;
};
std::map<std::string, PartyFigures> by_party(const Measured& run, std::int64_t deadline_ns);

}  // namespace leat::bench::alternatives
