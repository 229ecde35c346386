// leatd itself: its scheduler thread, connections, and what this top reads.
#include <algorithm>

#include "tools/leat/top/facts/text.h"
#include "tools/leat/top/pages/distribution.h"
#include "tools/leat/top/pages/parts.h"
#include "tools/leat/top/pages/signs.h"

namespace leat::tools::top {
namespace {

constexpr int kNowEnd = 41, kEverEnd = 51, kBeside = 56;

std::string time_text(double us) { return !known(us) ? "-" : us < 1000 ? three(us) + " us" : three(us / 1e3) + " ms"; }

}  // namespace

void draw_daemon_page(Screen& screen, const Scene& scene, Place p) {
  Canvas& canvas = screen.canvas;
  const DaemonFigures& d = scene.second().daemon;
  const int end = p.row + p.height;
  static constexpr const char* kPhases[] = {"starting", "serving", "draining", "stopping"};
  const std::string phase = known(d.phase) && d.phase < 4 ? kPhases[static_cast<std::size_t>(d.phase)] : "there";
  std::string head = " leatd " + scene.facts.status().version + "  process " + std::to_string(d.pid) + ", " +
                     (scene.second().gone ? "gone" : phase);
  if (d.started_ns != 0) head += ", began " + span_of(scene.second().at_ns - d.started_ns) + " ago";
  if (known(d.change_step) && d.change_step > 0)
    head += ", changes what it serves" + (known(d.change_waves) && d.change_waves > 0
                                              ? ": wave " + whole(d.change_wave) + " of " + whole(d.change_waves)
                                              : std::string());
  canvas.put(p.row, p.column, head, {Meaning::plain, Stress::strong});
  canvas.put(p.row + 1, p.column, " everything below is about leatd itself; cameras are on page 1", kIdleInk);
  int row = p.row + 2;
  const auto title = [&](const char* text) {
    if (row < end) canvas.rule(row++, p.column, p.column + p.width, text);
  };
  const auto line = [&](const char* name, const std::string& now, const std::string& ever,
                        const std::string& beside = {}) {
    if (row >= end) return;
    canvas.put(row, p.column + 1, name);
    canvas.put_right(row, p.column + kNowEnd, now);
    canvas.put_right(row, p.column + kEverEnd, ever);
    canvas.put(row++, p.column + kBeside, beside, kIdleInk, p.column + p.width);
  };
  title(" SCHEDULER THREAD ───────────────── now ──── ever ");
  line("turns a second", three(d.turns), "", "Turns over 1 ms by the");
  line("  with work", three(d.turns_with_work), "", "clock, but not by CPU");
  line("sleeps a second", three(d.parks), "", "time, waited for a core:");
  line("wakes sent a second", three(d.wakes), "", "see leat doctor.");
  line("turns over 1 ms, 60 s", whole(d.stalls_minute), whole(d.stalls));
  line("  by its own CPU time", whole(d.own_stalls_minute), whole(d.own_stalls));
  line("longest turn", "-", time_text(d.longest_us));
  line("  its own CPU time", "-", time_text(d.longest_own_us));
  const auto buckets = scene.back() || scene.facts.newest() == nullptr || !scene.facts.newest()->daemon
                           ? std::nullopt
                           : scene.facts.minute_of(shm::RecordKind::daemon, {}, shm::Which::first);
  if (end - row >= 10) {
    canvas.rule(row++, p.column, p.column + p.width,
                " TIME OF A TURN WITH WORK, 60 s ──────────────── p50 " + time_text(d.turn50_us) + "   p99 " +
                    time_text(d.turn99_us) + " ");
    const auto most = buckets ? quantile_of(*buckets, 0.99) : std::nullopt;
    if (most)
      draw_distribution(canvas, *buckets, scale_over(*most / 1e6) * 1e6, 0, {row, p.column + 1, 3, p.width - 2});
    row += 3;
  }
  title(" CONNECTIONS ────────────────────── now ──── ever ");
  line("connections, of them clients", whole(d.sessions) + ", " + whole(d.clients), whole(d.accepted),
       three(d.memory_mib) + " MiB held");
  line("refused; ended for a violation", "", whole(d.refused) + "; " + whole(d.violated));
  line("accepting paused; unsent", "", whole(d.pauses) + "; " + whole(d.unsent));
  title(" DECISIONS ──────────────────────── now ──── ever ");
  line("tasks run again after a loss", "", whole(d.retries));
  line("left idle for who needs it soon", "", whole(d.idled));
  line("late reports; forgotten", "", whole(d.stale) + "; " + whole(d.undecided));
}

}  // namespace leat::tools::top
