// What every study is made of: a command line, its progress, figures as text and JSON; means and extremes of a list,
// bars and whether they are reached.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "tools/base/cli/command.h"
#include "tools/base/cli/json_output.h"
#include "tools/base/cli/progress.h"
#include "tools/base/json/json.h"

namespace leat::bench {

// 0 of an empty list.
inline double mean(const std::vector<double>& v) {
  double sum = 0;
  for (const double x : v) sum += x;
  return v.empty() ? 0 : sum / static_cast<double>(v.size());
}
inline double min_of(const std::vector<double>& v) { return v.empty() ? 0 : *std::min_element(v.begin(), v.end()); }
inline double max_of(const std::vector<double>& v) { return v.empty() ? 0 : *std::max_element(v.begin(), v.end()); }
// The middle one, or between the two in the middle; 0 of an empty list.
inline double median(std::vector<double> v) {
  if (v.empty()) return 0;
  std::sort(v.begin(), v.end());
  return (v[(v.size() - 1) / 2] + v[v.size() / 2]) / 2;
}

// What a study must show, and whether it does.
struct Bar {
  std::string name;
  double value = 0, bar = 0;
  bool at_least = true;
  std::string where;  // the case that decides, where one does

  [[nodiscard]] bool reached() const { return at_least ? value >= bar : value <= bar; }
};

inline Json to_json(const std::vector<Bar>& bars) {
  Json out = Json::array();
  for (const Bar& b : bars) {
    out.push_back({{"name", b.name},
                   {"value", b.value},
                   {"bar", b.bar},
                   {"kind", b.at_least ? "at least" : "at most"},
                   {"reached", b.reached()},
                   {"where", b.where}});
  }
  return out;
}

inline void print(const std::vector<Bar>& bars) {
  if (!bars.empty()) std::printf("bars\n");
  for (const Bar& b : bars) {
    std::printf("  %-84s %9.4f %s %-6g %-11s %s\n", b.name.c_str(), b.value, b.at_least ? ">=" : "<=", b.bar,
                b.reached() ? "reached" : "NOT REACHED", b.where.c_str());
  }
}

// The workloads of a study, generated from a seed and numbered: --seed and --workloads.
struct Workloads {
  explicit Workloads(const cli::Arguments& args)
      : seed(static_cast<std::uint64_t>(args.integer("seed"))),
        count(static_cast<std::uint32_t>(args.integer("workloads"))) {}
  // study(number) for each, in their order.
  template <class Study>
  void each(const std::string& title, const Study& study) const {
    cli::Progress progress(title, count, "workloads");
    for (std::uint32_t i = 0; i < count; ++i, progress.add(1)) study(i);
  }
  std::uint64_t seed;
  std::uint32_t count;
};

}  // namespace leat::bench
