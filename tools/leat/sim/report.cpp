#include <algorithm>
#include <cmath>
#include <filesystem>

#include "tools/base/cli/svg.h"
#include "tools/base/documents/text_file.h"
#include "tools/base/text/formatted.h"
#include "tools/leat/sim/results.h"

namespace leat::tools {
namespace {

using core::TimeNs;

constexpr double kWidth = 920;
constexpr std::size_t kMaxRows = 48;  // partitions of a timeline
constexpr double kRowHeight = 18, kNamesWidth = 130, kTimelineTop = 56;
constexpr double kSlosShown = 5;  // length of a timeline, in the longest SLO

// Names with settings hold characters that a link would read as something else.
std::string file_word(std::string name) {
  for (char& c : name) {
    if (c == ':' || c == '=') c = '-';
  }
  return name;
}

const sim::History& history_of(const SimPreset& p) { return p.runs.front().measured.history; }

std::vector<std::string> module_names(const sim::Study& study) {
  std::vector<std::string> names;
  for (const planner::Application& a : study.plan.applications) {
    for (const planner::Module& m : a.modules)
      names.push_back(study.plan.applications.size() > 1 ? a.name + "/" + m.name : m.name);
  }
  return names;
}

// As PARD's figure 10: what is offered and what is answered in time, and the part that is not, over time.
std::string goodput_svg(const SimResults& results) {
  cli::Plot rate{.title = "goodput over time",
                 .x_label = "seconds",
                 .y_label = "requests/s",
                 .from_zero = true,
                 .width = kWidth,
                 .height = 330,
                 .legend_beside = true};
  cli::Plot missed{.title = "not in time",
                   .x_label = "seconds",
                   .y_label = "% of those that arrived then",
                   .from_zero = true,
                   .width = kWidth,
                   .height = 280,
                   .legend_beside = true};
  const sim::History& first = history_of(results.presets.front());
  const double bin = static_cast<double>(first.bin_ns) / 1e9;
  // The last bin is cut off by the end of the arrivals.
  const std::size_t bins = first.arrived.size() > 1 ? first.arrived.size() - 1 : 1;
  for (const SimPreset& p : results.presets) {
    cli::Series in_time{.name = p.name}, lost{.name = p.name};
    const sim::History& h = history_of(p);
    for (std::size_t i = 0; i < bins; ++i) {
      const double at = static_cast<double>(i) * bin;
      in_time.points.emplace_back(at, h.in_time[i] / bin);
      lost.points.emplace_back(at, h.arrived[i] == 0 ? NAN : 100.0 * (h.arrived[i] - h.in_time[i]) / h.arrived[i]);
    }
    rate.series.push_back(std::move(in_time));
    missed.series.push_back(std::move(lost));
  }
  cli::Series offered{.name = "offered", .dashed = true};
  for (std::size_t i = 0; i < bins; ++i)
    offered.points.emplace_back(static_cast<double>(i) * bin, first.arrived[i] / bin);
  rate.series.push_back(std::move(offered));
  return cli::plots_svg({rate, missed});
}

std::string drops_svg(const SimResults& results, const sim::Study& study) {
  cli::Bars bars{.title = "given up, by the module where it happened",
                 .y_label = "% of all requests",
                 .groups = module_names(study),
                 .width = kWidth,
                 .height = 330};
  for (const SimPreset& p : results.presets) {
    std::vector<double> parts;
    for (std::size_t m = 0; m < bars.groups.size(); ++m) {
      parts.push_back(spread(p.runs, [&](const SimRun& r) {
                        const sim::Outcomes& o = r.measured.outcomes;
                        return o.requests == 0 ? 0
                                               : 100 * static_cast<double>(o.counters.modules[m].dropped_here) /
                                                     static_cast<double>(o.requests);
                      }).mean);
    }
    bars.bars.emplace_back(p.name, std::move(parts));
  }
  return cli::bars_svg(bars);
}

std::string queueing_svg(const SimResults& results, const sim::Study& study) {
  const std::vector<std::string> names = module_names(study);
  std::vector<cli::Plot> plots;
  for (std::size_t m = 0; m < names.size(); ++m) {
    cli::Plot plot{.title = "queueing delay at " + names[m],
                   .x_label = "seconds",
                   .y_label = "ms, mean",
                   .from_zero = true,
                   .width = kWidth,
                   .height = 240,
                   .legend_beside = true};
    for (const SimPreset& p : results.presets) {
      const sim::History& h = history_of(p);
      cli::Series line{.name = p.name};
      for (std::size_t i = 0; i < h.wait_ns[m].size(); ++i)
        line.points.emplace_back(static_cast<double>(i) * static_cast<double>(h.bin_ns) / 1e9, h.wait_ns[m][i] / 1e6);
      plot.series.push_back(std::move(line));
    }
    plots.push_back(std::move(plot));
  }
  return cli::plots_svg(plots);
}

std::string attainment_svg(const SimResults& results) {
  cli::Plot plot{.title = "attainment over load",
                 .x_label = "load (1: the rate that the plan was made for)",
                 .y_label = "% in time",
                 .width = kWidth,
                 .height = 380,
                 .legend_beside = true};
  for (const SimPreset& p : results.presets) {
    cli::Series line{.name = p.name};
    for (std::size_t l = 0; l < results.sweep_loads.size(); ++l) {
      line.points.emplace_back(results.sweep_loads[l], spread(p.sweep[l], [](const SimRun& r) {
                                                         return 100 * r.measured.outcomes.goodput();
                                                       }).mean);
    }
    plot.series.push_back(std::move(line));
  }
  return cli::plot_svg(plot);
}

// Where a timeline begins: half an SLO before the bin with the most misses.
TimeNs worst_moment(const SimResults& results, TimeNs slo) {
  const sim::History& h = history_of(results.presets.front());
  std::size_t worst = 0;
  for (std::size_t i = 0; i < h.arrived.size(); ++i) {
    if (h.arrived[i] - h.in_time[i] > h.arrived[worst] - h.in_time[worst]) worst = i;
  }
  return std::max<TimeNs>(0, static_cast<TimeNs>(worst) * h.bin_ns - slo / 2);
}

struct Window {
  TimeNs from_ns, length_ns;
  [[nodiscard]] TimeNs until_ns() const { return from_ns + length_ns; }
  [[nodiscard]] double x(TimeNs at) const {
    const double part =
        static_cast<double>(std::clamp(at, from_ns, until_ns()) - from_ns) / static_cast<double>(length_ns);
    return kNamesWidth + part * (kWidth - kNamesWidth - 40);
  }
};

// When the partition was down, as the faults have it.
std::vector<std::pair<TimeNs, TimeNs>> downtimes(const sim::Study& study, core::PartitionId p) {
  std::vector<std::pair<TimeNs, TimeNs>> out;
  TimeNs since = -1;
  for (const sim::Fault& f : study.faults.faults) {
    if (f.partition != p) continue;
    if (f.kind == sim::FaultKind::lose && since < 0) since = f.at_ns;
    if (f.kind == sim::FaultKind::restore && since >= 0) {
      out.emplace_back(since, f.at_ns);
      since = -1;
    }
  }
  if (since >= 0) out.emplace_back(since, core::kNever);
  return out;
}

void draw_ticks(cli::Svg& svg, const Window& w, double floor) {
  for (int i = 0; i <= 5; ++i) {
    const TimeNs at = w.from_ns + w.length_ns * i / 5;
    svg.line(w.x(at), kTimelineTop - 6, w.x(at), floor, "#e4e4e4");
    svg.text(w.x(at), floor + 16, formatted("%.2f s", static_cast<double>(at) / 1e9), 11, cli::Svg::Anchor::middle,
             "#555");
  }
}

std::string timeline_svg(const SimPreset& preset, const sim::Study& study, const Window& w) {
  const std::size_t partitions = study.plan.plan.partitions.size(), rows = std::min(partitions, kMaxRows);
  const double floor = kTimelineTop + kRowHeight * static_cast<double>(rows);
  cli::Svg svg(kWidth, floor + 34);
  svg.text(12, 20,
           preset.name + ": what runs where" +
               (rows < partitions ? formatted(" (the first %zu of %zu partitions)", rows, partitions) : ""),
           14, cli::Svg::Anchor::start, "#222", true);
  double x = 12;
  for (std::size_t m = 0; const std::string& name : module_names(study)) {
    svg.box(x, 30, 12, 12, cli::series_colour(m++), "none", 2);
    svg.text(x + 17, 40, name, 11);
    x += 34 + 7 * static_cast<double>(name.size());
  }
  svg.box(x, 30, 12, 12, "#cccccc", "none", 2);
  svg.text(x + 17, 40, "lost; a number is a batch's size", 11);
  draw_ticks(svg, w, floor);
  for (std::size_t p = 0; p < rows; ++p) {
    const double y = kTimelineTop + kRowHeight * static_cast<double>(p);
    svg.text(kNamesWidth - 8, y + 13, study.plan.plan.partitions[p].name, 11, cli::Svg::Anchor::end);
    for (const auto& [from, until] : downtimes(study, static_cast<core::PartitionId>(p))) {
      if (until > w.from_ns && from < w.until_ns())
        svg.box(w.x(from), y + 1, w.x(until) - w.x(from), kRowHeight - 2, "#cccccc", "none", 0);
    }
  }
  for (const sim::RunEvent& run : history_of(preset).runs) {
    if (run.end_ns <= w.from_ns || run.start_ns >= w.until_ns() || run.partition >= rows) continue;
    const double y = kTimelineTop + kRowHeight * static_cast<double>(run.partition), from = w.x(run.start_ns),
                 width = w.x(run.end_ns) - from;
    svg.box(from, y + 2, std::max(0.5, width - 0.8), kRowHeight - 4,
            cli::series_colour(study.believed.routes[run.route].module), "none", 2);
    if (width > (run.items < 10 ? 9 : 15))
      svg.text(from + width / 2, y + 13, formatted("%u", run.items), 10, cli::Svg::Anchor::middle, "#ffffff");
  }
  return svg.str();
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

std::string seed_words(const SimResults& results) {
  const auto first = static_cast<unsigned long long>(results.first_seed);
  const std::size_t seeds = results.presets.front().runs.size();
  return seeds == 1 ? formatted("seed %llu", first)
                    : formatted("seeds %llu to %llu; over time and timelines: the first", first, first + seeds - 1);
}

}  // namespace

Status prepare_report(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return Error{"--report " + folder + ": cannot be made: " + error.message() + "; name a folder where you may write"};
  return write_text_file(folder + "/index.html", "");
}

Status write_report(const SimResults& results, const sim::Study& study, const std::string& folder,
                    TimeNs timeline_at_ns) {
  std::vector<std::pair<std::string, std::string>> files = {{"goodput.svg", goodput_svg(results)},
                                                            {"drops.svg", drops_svg(results, study)},
                                                            {"queueing.svg", queueing_svg(results, study)}};
  if (!results.sweep_loads.empty()) files.emplace_back("attainment.svg", attainment_svg(results));
  TimeNs slo = 0;
  for (const core::ApplicationSpec& a : study.believed.applications) slo = std::max(slo, a.slo_ns);
  const Window window{timeline_at_ns >= 0 ? timeline_at_ns : worst_moment(results, slo),
                      static_cast<TimeNs>(kSlosShown * static_cast<double>(slo))};
  for (const SimPreset& p : results.presets)
    files.emplace_back("timeline-" + file_word(p.name) + ".svg", timeline_svg(p, study, window));

  std::string html =
      "<!doctype html><meta charset=\"utf-8\"><title>leat sim</title><body "
      "style=\"font-family:sans-serif;margin:24px\">\n<h1>" +
      escaped(results.plan) + "</h1>\n<p>" + escaped(results.trace) + formatted(", load %g, ", results.load) +
      seed_words(results) + "</p>\n<pre>" + escaped(table_text(results)) + "</pre>\n";
  for (const auto& [name, text] : files) {
    if (const auto status = write_text_file(folder + "/" + name, text); !status) return status;
    html += "<p><img src=\"" + name + "\" alt=\"" + name + "\"></p>\n";
  }
  return write_text_file(
      folder + "/index.html",
      html + formatted("<p>trace hash %016llx</p>\n", static_cast<unsigned long long>(trace_hash(results))));
}

}  // namespace leat::tools
