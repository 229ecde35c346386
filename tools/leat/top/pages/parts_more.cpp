// What pages 3 and 4 have beside the first page's rows: what became of a module's tasks, and of a partition's workers.
#include "tools/leat/top/facts/text.h"
#include "tools/leat/top/pages/parts.h"
#include "tools/leat/top/pages/signs.h"

namespace leat::tools::top {
namespace {

Ink bad_if(bool bad, Meaning meaning) { return {bad ? meaning : Meaning::plain, Stress::none}; }

}  // namespace

std::string end_text(float status) {
  if (!known(status)) return "-";
  return status < 256 ? "exit status " + whole(status) : "signal " + whole(status - 256);
}

void draw_modules_more(Canvas& canvas, const Scene& scene, Place place) {
  int row = place.row;
  const int at = place.column;
  canvas.rule(row++, at, at + place.width,
              " MODULE ────────── come/s  given up/s  left out ever  squeezed ever  oldest ms ");
  for (const ModuleFigures& m : scene.second().modules) {
    if (row >= place.row + place.height) break;
    canvas.put(row, at + 2, m.name, {}, at + 19);
    canvas.put_right(row, at + 25, three(m.come));
    canvas.put_right(row, at + 37, three(m.given_up), bad_if(known(m.given_up) && m.given_up > 0, Meaning::dropped));
    canvas.put_right(row, at + 52, whole(m.left_out));
    canvas.put_right(row, at + 67, whole(m.squeezed));
    canvas.put_right(row++, at + 78, three(m.oldest));
  }
}

void draw_partitions_more(Canvas& canvas, const Scene& scene, Place place) {
  int row = place.row;
  const int at = place.column;
  canvas.rule(row++, at, at + place.width,
              " PARTITION ─── batches/s  ms p50 ── p99  restarts ─ worker ── C ─── W  last end ");
  for (const PartitionFigures& p : scene.second().partitions) {
    if (row >= place.row + place.height) break;
    canvas.put(row, at + 2, p.name, {}, at + 17);
    canvas.put_right(row, at + 24, three(p.batches));
    canvas.put_right(row, at + 32, three(p.p50));
    canvas.put_right(row, at + 39, three(p.p99));
    canvas.put_right(row, at + 49, whole(p.restarts), bad_if(known(p.restarts) && p.restarts > 0, Meaning::late));
    canvas.put_right(row, at + 58, p.pid != 0 ? std::to_string(p.pid) : "-");
    const bool held_back = p.heat && !p.heat->held_back.empty();
    canvas.put_right(row, at + 63, p.heat ? whole(p.heat->temperature_c) : "-", bad_if(held_back, Meaning::late));
    canvas.put_right(row, at + 69, p.heat ? whole(p.heat->power_w) : "-", bad_if(held_back, Meaning::late));
    canvas.put(row++, at + 71, end_text(p.end_status), {}, at + place.width);
  }
}

}  // namespace leat::tools::top
