// One partition: how full it was, its batches, whose modules it runs, what became of its workers.
#include <algorithm>
#include <cmath>

#include "tools/leat/top/facts/text.h"
#include "tools/leat/top/pages/distribution.h"
#include "tools/leat/top/pages/parts.h"
#include "tools/leat/top/pages/signs.h"

namespace leat::tools::top {
namespace {

const PartitionFigures* partition_of(const Second& second, Key key) {
  for (const PartitionFigures& p : second.partitions)
    if (p.key == key) return &p;
  return nullptr;
}

std::string heat_text(const HeatFigures& h) {
  std::string text = " heat " + three(h.temperature_c) + " C, " + three(h.power_w) + " of " + three(h.power_cap_w) +
                     " W, " + whole(h.sm_clock_mhz) + " MHz, memory " + whole(h.memory_used_mib) + " of " +
                     whole(h.memory_mib) + " MiB, of the whole GPU";
  return h.held_back.empty() ? text : text + "; clocks held back: " + printable(h.held_back);
}

// Rows that it took.
int partition_head(Canvas& canvas, const Scene& scene, const PartitionFigures& of, Place p) {
  static constexpr const char* kStates[] = {"DOWN", "STARTING", "UP", "LOST", "UNKNOWN"};
  const bool up = of.state == PartitionState::up, full = known(of.busy) && of.busy > 90;
  std::string state =
      up ? (full ? "FULL: " : "UP: ") + percent(of.busy) + " % busy" : kStates[static_cast<std::size_t>(of.state)];
  const std::string name = " " + of.name + "  ";
  canvas.put(p.row, p.column, name, {Meaning::plain, Stress::strong});
  canvas.put(p.row, p.column + width_of(name), state,
             {up ? (full ? Meaning::late : Meaning::good) : Meaning::failed, Stress::strong});
  if (up && of.started_ns != 0)
    canvas.put_right(p.row, p.column + p.width - 1, "up for " + span_of(scene.second().at_ns - of.started_ns));
  const auto status = scene.facts.status().partitions.find(of.name);
  std::string device, worker = " worker " + (of.pid != 0 ? std::to_string(of.pid) : "-");
  bool gpu = false;
  if (status == scene.facts.status().partitions.end()) {
    worker += "; " + whole(of.restarts) + (of.restarts == 1 ? " restart" : " restarts") + ", last end " +
              end_text(of.end_status);
  } else {
    const PartitionStatus& s = status->second;
    device = " " + (s.gpu.empty() ? s.kind + (s.cores.empty() ? "" : " on cores " + s.cores) : s.gpu);
    if (!s.gpu.empty() && !s.cores.empty()) worker += " on cores " + s.cores;
    if (!s.sandbox.empty()) worker += ", sandbox " + s.sandbox;
    worker += "; " + whole(of.restarts) + (of.restarts == 1 ? " restart" : " restarts");
    worker += ", last end " + (s.last_end.empty() ? end_text(of.end_status) : s.last_end);
    gpu = !s.device.empty();
    if (!s.why_down.empty()) worker += "; " + s.why_down;
  }
  canvas.put(p.row + 1, p.column, device, {}, p.column + p.width);
  canvas.put(p.row + 2, p.column, worker, {}, p.column + p.width);
  if (!gpu) return 3;
  const bool held_back = of.heat && !of.heat->held_back.empty();
  canvas.put(p.row + 3, p.column, of.heat ? heat_text(*of.heat) : " heat -: leat-gpu watch says nothing",
             held_back ? Ink{Meaning::late, Stress::strong} : kIdleInk, p.column + p.width);
  return 4;
}

void busy_graph(Screen& screen, const Scene& scene, const PartitionFigures& of, Place p) {
  Canvas& canvas = screen.canvas;
  canvas.rule(p.row, p.column, p.column + p.width, " BUSY ");
  const int rows = p.height - 2, cells = std::clamp(p.width - 20, 10, 60);
  const std::int64_t step = (scene.view.minutes ? 600 : 60) * kSecondNs / cells;
  std::vector<Stacked> busy(static_cast<std::size_t>(cells));
  over_time(scene, cells, step, [&](int cell, const Second& second) {
    const PartitionFigures* was = partition_of(second, of.key);
    if (was == nullptr || !known(was->busy_now) || second.gone) return;
    Stacked& to = busy[static_cast<std::size_t>(cell)];
    to = {std::max<double>(known(to.good) ? to.good : 0, was->busy_now), 0};
  });
  for (int i = 0; i < rows; ++i) canvas.put_sign(p.row + 1 + i, p.column + 6, i == 0 || i == rows - 1 ? U'┤' : U'│');
  canvas.put_right(p.row + 1, p.column + 6, "100");
  canvas.put_right(p.row + rows, p.column + 6, "0");
  graph(canvas, p.row + 1, p.column + 7, rows, busy, 100);
  draw_time_axis(canvas, p.row + 1 + rows, p.column + 7, cells, scene.view.minutes);
  for (int i = 0; i < rows; ++i)
    screen.hits.push_back(
        {p.row + 1 + i, p.column + 7, p.column + 7 + cells, Hit::What::time, {}, static_cast<int>(step / kSecondNs)});
  const int at = p.column + 8 + cells;
  canvas.put(p.row + 1, at, "busy " + share(of.busy) + " %");
  canvas.put(p.row + 2, at, "over " + share(of.over) + " %");
  if (known(of.busy))
    canvas.put(p.row + 3, at, "idle " + share(std::max(0.0, 100.0 - of.busy - (known(of.over) ? of.over : 0))) + " %");
  canvas.put(p.row + 4, at, three(of.overhead_us) + " us each", kIdleInk);
}

}  // namespace

void draw_partition_look(Screen& screen, const Scene& scene, Key key, Place p) {
  Canvas& canvas = screen.canvas;
  const PartitionFigures* of = partition_of(scene.second(), key);
  if (of == nullptr) {
    canvas.put(p.row, p.column + 1, "this partition is not there", kIdleInk);
    return;
  }
  const int end = p.row + p.height;
  int row = p.row + partition_head(canvas, scene, *of, p);
  if (end - row >= 7) {
    busy_graph(screen, scene, *of, {row, p.column, 7, p.width});
    row += 7;
  }
  if (end - row >= 2) {
    canvas.rule(row, p.column, p.column + p.width, " BATCHES ");
    canvas.put(row + 1, p.column + 1,
               three(of->batches) + " a second   " + three(of->items) + " items each   " + three(of->items_rate) +
                   " items/s   queue " + whole(of->queued),
               {}, p.column + p.width);
    row += 2;
  }
  const auto buckets =
      scene.back() ? std::nullopt : scene.facts.minute_of(shm::RecordKind::partition, key, shm::Which::first);
  if (end - row >= 5 && buckets) {
    const auto q = [&](double part) { return quantile_of(*buckets, part); };
    canvas.rule(row, p.column, p.column + p.width,
                " TIME OF A BATCH, 60 s ───────────────────────────── p50 " +
                    three(q(.5).value_or(kUnknownFigure) / 1e6) + "   p99 " +
                    three(q(.99).value_or(kUnknownFigure) / 1e6) + " ms ");
    if (q(.5))
      draw_distribution(canvas, *buckets, scale_over(*q(.999) / 1e6) * 1e6, 0, {row + 1, p.column + 1, 4, p.width - 2});
    row += 5;
  }
  if (end - row >= 2 && !of->modules.empty()) {
    canvas.rule(row++, p.column, p.column + p.width, " RUN TIME BY MODULE, 60 s ");
    double all = 0;
    for (const auto& [module, part] : of->modules) all += part;
    for (const auto& [module, part] : of->modules) {
      if (row + 1 >= end) break;
      const auto& modules = scene.second().modules;
      const auto found =
          std::find_if(modules.begin(), modules.end(), [&](const ModuleFigures& m) { return m.key.index == module; });
      canvas.put(row, p.column + 1, found == modules.end() ? "module " + std::to_string(module) : found->name, {},
                 p.column + 17);
      busy_bar(canvas, row, p.column + 17, 40, 100 * part / all, 0);
      canvas.put_right(row, p.column + 65, percent(100 * part / all) + " %");
      if (found != modules.end()) canvas.put_right(row, p.column + 78, three(found->run50) + " ms");
      ++row;
    }
  }
  if (end - row < 2) return;
  draw_changes_of(canvas, scene, {row, p.column, end - row, p.width}, false,
                  [&](const Change& c) { return c.partition == key; });
}

}  // namespace leat::tools::top
