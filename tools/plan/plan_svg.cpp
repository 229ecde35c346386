#include "tools/plan/plan_svg.h"

#include <algorithm>
#include <map>

#include "tools/base/cli/svg.h"
#include "tools/base/text/formatted.h"

namespace leat::planner {
namespace {

constexpr double kLeft = 190, kBoxWidth = 236, kBoxHeight = 66, kGap = 56, kRow = 86, kTop = 74;

// "V100 1/2 x 4"
std::string pool_words(const Plan& plan, const Stage& stage) {
  std::map<std::pair<std::string, std::uint32_t>, int> counts;
  for (const auto p : stage.pool) ++counts[{plan.partitions[p].partition_class, plan.partitions[p].share}];
  std::string out;
  for (const auto& [key, count] : counts) {
    if (!out.empty()) out += ", ";
    out += key.first + (key.second > 1 ? formatted(" 1/%u", key.second) : "") + formatted(" x %d", count);
  }
  return out;
}

std::string blocks_words(const Route& route, std::size_t s) {
  if (route.stages.size() == 1) return "the whole model";
  const Stage& stage = route.stages[s];
  if (stage.first_block + 1 == stage.end_block) return formatted("block %u", stage.first_block);
  return formatted("blocks %u to %u", stage.first_block, stage.end_block - 1);
}

// "after detect, 9 a request": where the module stands in its application.
std::string where_words(const Application& app, const Module& module) {
  std::string out;
  for (std::size_t k = 0; k < module.after.size(); ++k)
    out += (k == 0 ? "after " : " and ") + app.modules[module.after[k]].name;
  if (module.items_per_request != 1)
    out += formatted("%s%.3g a request", out.empty() ? "" : ", ", module.items_per_request);
  return out;
}

void draw_route(cli::Svg& svg, const PlanFile& file, const Route& route, double y) {
  const Application& app = file.applications[route.application];
  double x = kLeft;
  svg.arrow(kLeft - 24, y + kBoxHeight / 2, kLeft, y + kBoxHeight / 2, "#555");
  for (std::size_t s = 0; s < route.stages.size(); ++s) {
    const Stage& stage = route.stages[s];
    const Latency& l = stage.latency_by_batch.back();
    const double rate = static_cast<double>(stage.pool.size()) * route.batch * 1e9 / static_cast<double>(l.p50_ns);
    svg.box(x, y, kBoxWidth, kBoxHeight, "#eef4fa", std::string(cli::series_colour(route.application)));
    svg.text(x + 8, y + 18, pool_words(file.plan, stage), 12, cli::Svg::Anchor::start, "#222", true);
    svg.text(x + 8, y + 36, blocks_words(route, s) + formatted(", batch %u", route.batch), 11);
    svg.text(x + 8, y + 54,
             formatted("%.2f ms (p99 %.2f), up to %.1f/s", static_cast<double>(l.p50_ns) / 1e6,
                       static_cast<double>(l.p99_ns) / 1e6, rate),
             11);
    if (s + 1 < route.stages.size()) {
      svg.arrow(x + kBoxWidth, y + kBoxHeight / 2, x + kBoxWidth + kGap, y + kBoxHeight / 2, "#555");
      svg.text(x + kBoxWidth + kGap / 2, y + kBoxHeight / 2 - 8,
               formatted("%.2f MB", static_cast<double>(stage.transfer_bytes) / 1e6), 10, cli::Svg::Anchor::middle,
               "#555");
    }
    x += kBoxWidth + kGap;
  }
  const Module& module = app.modules[route.module];
  double line = y + 14;
  svg.text(12, line, module.name, 12, cli::Svg::Anchor::start, "#222", true);
  if (const std::string where = where_words(app, module); !where.empty())
    svg.text(12, line += 15, where, 10, cli::Svg::Anchor::start, "#555");
  svg.text(12, line + 17, formatted("%.1f %s/s", route.rate_rps, module.items_per_request == 1 ? "requests" : "items"),
           11);
  const auto& budgets = file.plan.budget_ns;
  if (budgets.empty()) return;
  svg.text(12, line + 33,
           formatted("within %.1f ms", static_cast<double>(budgets[route.application][route.module]) / 1e6), 11);
}

}  // namespace

std::string plan_svg(const PlanFile& file) {
  std::size_t stages = 1;
  for (const Route& r : file.plan.routes) stages = std::max(stages, r.stages.size());
  const double height = kTop + kRow * static_cast<double>(file.plan.routes.size()) +
                        26 * static_cast<double>(file.applications.size()) + 20;
  const double width = std::max(720.0, kLeft + static_cast<double>(stages) * (kBoxWidth + kGap));
  cli::Svg svg(width, height);
  const Certificate& c = file.plan.certificate;
  svg.text(12, 24, formatted("%zu routes over %zu partitions", file.plan.routes.size(), file.plan.partitions.size()),
           15, cli::Svg::Anchor::start, "#222", true);
  svg.text(12, 44, formatted("objective %.6g, at most %.6g (gap %.3g)", c.objective, c.upper_bound, c.gap), 12);
  svg.text(12, 60, c.binding, 11, cli::Svg::Anchor::start, "#555");
  double y = kTop;
  for (std::uint32_t a = 0; a < file.applications.size(); ++a) {
    svg.text(12, y + 16,
             formatted("%s: SLO %.1f ms", file.applications[a].name.c_str(),
                       static_cast<double>(file.applications[a].slo_ns) / 1e6),
             13, cli::Svg::Anchor::start, cli::series_colour(a), true);
    y += 26;
    for (const Route& r : file.plan.routes) {
      if (r.application != a) continue;
      draw_route(svg, file, r, y);
      y += kRow;
    }
  }
  return svg.str();
}

}  // namespace leat::planner
