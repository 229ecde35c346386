// All runs of a benchmark, told as text, JSON, a table of a page and a picture: of each contender, count of cameras and
// deadline the median of the rounds, with the least and the most. What was told as JSON can be read again, so that a
// report can grow over several calls. Values; one thread. Errors: one line.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bench/alternatives/figures.h"
#include "leat/result.hpp"
#include "tools/base/json/json.h"

namespace leat::bench::alternatives {

using ByGroup = std::map<std::string, double>;

// A run held against a deadline.
struct Round {
  Figures figures;
  std::uint64_t offered = 0, answered = 0, passed = 0, failed = 0, lost = 0, decided_twice = 0;
  ByGroup cores, switches_a_picture, memory_mb;  // by group; no memory: nobody could tell
  ByGroup party_fps, party_share, party_p99_ms;  // in time, by party, where there are two
};

struct Case {
  std::string source, parties, contender;
  std::uint32_t cameras = 0, deadline_ms = 0;
  std::vector<Round> rounds;

  [[nodiscard]] std::vector<double> all(double Figures::*figure) const;
  [[nodiscard]] double middle(double Figures::*figure) const;
  [[nodiscard]] ByGroup middle(ByGroup Round::*groups) const;
  [[nodiscard]] std::vector<double> memory_mb() const;
};

[[nodiscard]] std::string words_of(const Case& c);  // " of two users"; nothing where all are alike

class Report {
 public:
  void add(const std::string& source, std::string_view contender, std::uint32_t cameras, std::uint32_t deadline_ms,
           const Measured& run);  // of the run's parties
  Status read(const std::string& file);

  // By source, parties, cameras and deadline; contenders as they came first.
  [[nodiscard]] std::vector<Case> cases() const;
  [[nodiscard]] std::string text() const;
  [[nodiscard]] Json json() const;  // where nothing was measured, its figures are null

 private:
  Case& at(const Case& like);
  std::vector<Case> cases_;
};

// report_page.cpp: tables in Markdown, and a picture of what was in time by count of cameras, one plot a source.
// The deadline in the middle stands for what the tables do not tell by deadline, and for the picture.
[[nodiscard]] std::string page_of(const std::vector<Case>& cases);
[[nodiscard]] std::string picture_of(const std::vector<Case>& cases);

}  // namespace leat::bench::alternatives
