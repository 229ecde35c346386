// One stream: its ledger, why frames were missed, how long answers took, where the time goes. It needs no other page.
#include <algorithm>
#include <cmath>

#include "tools/leat/top/facts/cameras.h"
#include "tools/leat/top/facts/text.h"
#include "tools/leat/top/pages/distribution.h"
#include "tools/leat/top/pages/parts.h"
#include "tools/leat/top/pages/signs.h"

namespace leat::tools::top {
namespace {

std::string state_text(const StreamFigures& s) {
  switch (s.mark) {
    case Mark::failing:
      return "FAILING: " + std::string(leat::name_of(s.cause));
    case Mark::dropping:
      return "DROPPING " + percent(s.miss) + " % of its frames" +
             (s.cause == Reason::none ? "" : ": " + std::string(leat::name_of(s.cause)));
    case Mark::late:
      return "LATE with " + percent(s.miss) + " % of its answers";
    case Mark::silent:
      return s.camera && !s.camera->runs() ? "SILENT: its camera is away" : "SILENT: it sends nothing";
    case Mark::near:
      return "NEAR its SLO, none missed";
    case Mark::well:
      break;
  }
  return "WELL";
}

void stream_head(Canvas& canvas, const Scene& scene, const StreamFigures& s, Place p) {
  const StreamIdentity& who = *s.who;
  const std::string name = " " + who.name + " " + who.application + "  ";
  canvas.put(p.row, p.column, name, {Meaning::plain, Stress::strong}, p.column + p.width);
  canvas.put(p.row, p.column + width_of(name), state_text(s),
             {s.mark == Mark::well ? Meaning::good : meaning_of(s.mark), Stress::strong}, p.column + p.width);
  if (s.since_ns != 0)
    canvas.put_right(
        p.row, p.column + p.width - 1,
        "  since " + scene.facts.clock_at(s.since_ns) + " (" + span_of(scene.second().at_ns - s.since_ns) + ")");
  if (who.key.index >= kCameraRows) return;  // no client of leatd
  std::string left = " client " + who.client + ", process " + std::to_string(who.pid);
  if (!who.user.empty()) left += ", user " + who.user;
  if (!who.priority.empty()) left += ", " + who.priority + ", " + who.overload;
  canvas.put(p.row + 1, p.column, left, {}, p.column + p.width);
  std::string right = "  ";
  if (known(who.width) && who.width > 0)
    right += whole(who.width) + "x" + std::to_string(std::lround(who.height)) + " ";
  right += who.format + (known(who.slots) ? ", " + whole(who.slots) + " slots" : "");
  if (known(who.period_ms) && who.period_ms > 0) right += ", every " + three(who.period_ms) + " ms";
  if (width_of(left) + width_of(right) < p.width) canvas.put_right(p.row + 1, p.column + p.width - 1, right);
}

// Its source, as the feeder says; rows that it took.
int camera_lines(Canvas& canvas, const Scene& scene, const CameraFigures& c, Place p) {
  const auto ago = [&](std::int64_t ns) { return span_of(scene.second().at_ns - ns) + " ago"; };
  std::string text = " camera " + c.state + ", " + three(c.rate) + " pictures/s, last picture ";
  text += c.last_picture_ns != 0 ? ago(c.last_picture_ns) : c.runs() ? "now" : "never";
  if (known(c.breaks) && c.breaks > 0) text += ", broke off " + whole(c.breaks) + (c.breaks == 1 ? " time" : " times");
  if (known(c.damaged) && c.damaged > 0) text += ", " + whole(c.damaged) + " damaged pictures";
  if (known(c.format_changes) && c.format_changes > 0) text += ", " + whole(c.format_changes) + " format changes";
  text += "; " + printable(c.source);
  canvas.put(p.row, p.column, text, c.runs() ? Ink{} : Ink{Meaning::idle, Stress::strong}, p.column + p.width);
  if (c.error.empty() || p.height < 2) return 1;
  canvas.put(p.row + 1, p.column,
             "  last error" + (c.error_ns != 0 ? " " + ago(c.error_ns) : "") + ": " + short_error(c), kIdleInk,
             p.column + p.width);
  return 2;
}

// One by one, the newest at the right; false: nobody knows them.
bool draw_last_frames(Canvas& canvas, const Scene& scene, const StreamFigures& s, Place p) {
  const std::deque<LastFrame>* const all = scene.back() ? nullptr : scene.facts.last_frames().of(s.who->key.index);
  if (all == nullptr) return false;
  const std::size_t count = std::min(all->size(), static_cast<std::size_t>(std::max(p.width - 3, 1)));
  canvas.rule(
      p.row, p.column, p.column + p.width,
      " LAST " + std::to_string(count) + " FRAMES ───────────── height: answer of SLO  ▼ dropped ▲ late × failed ");
  int column = p.column + 1;
  for (auto frame = all->end() - static_cast<std::ptrdiff_t>(count); frame != all->end(); ++frame)
    draw_frame(canvas, p.row + 1, column++, frame->outcome,
               known(s.who->slo_ms) ? static_cast<double>(frame->latency_ns) / 1e6 / s.who->slo_ms : 0);
  return true;
}

void ledger(Canvas& canvas, const Scene& scene, const StreamFigures& s, Place p) {
  canvas.rule(p.row, p.column, p.column + p.width,
              " FRAMES ───────── in ──── good ─── late ─ dropped ─ failed  rejected  in flight ");
  static constexpr int kEnds[] = {19, 28, 36, 46, 55, 65};
  const auto row = [&](int at, const char* name, std::span<const double> values) {
    canvas.put(p.row + at, p.column + 1, name);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const bool bad = i >= 2 && known(values[i]) && values[i] > 0;
      const Meaning of = !bad ? Meaning::plain : i == 2 ? Meaning::late : i == 3 ? Meaning::dropped : Meaning::failed;
      canvas.put_right(p.row + at, p.column + kEnds[i], three(values[i]), {of, Stress::none});
    }
  };
  const double five[] = {s.in, s.good, s.late, s.dropped, s.failed, s.rejected};
  row(1, "5 s, per s", five);
  const Span minute = scene.back() ? Span{} : scene.facts.minute_span(shm::RecordKind::stream, s.who->key);
  const shm::StreamCounter counters[] = {shm::StreamCounter::submitted, shm::StreamCounter::completed,
                                         shm::StreamCounter::late,      shm::StreamCounter::dropped,
                                         shm::StreamCounter::failed,    shm::StreamCounter::rejected};
  double of_minute[6], ever[6];
  for (std::size_t i = 0; i < 6; ++i) {
    of_minute[i] = minute ? minute.delta(counters[i]) : kUnknownFigure;
    ever[i] = minute.now != nullptr ? gauge(*minute.now, counters[i]) : kUnknownFigure;
  }
  row(2, "60 s", of_minute);
  row(3, "ever", ever);
  if (known(s.in_flight))
    canvas.put_right(p.row + 1, p.column + 78,
                     whole(s.in_flight) + (known(s.who->depth) ? " of " + whole(s.who->depth) : ""));
}

int stream_reasons(Canvas& canvas, const Scene& scene, const StreamFigures& s, Place p) {
  canvas.rule(p.row, p.column, p.column + p.width, " WHY ────────── 60 s ──── ever ");
  const Span minute = scene.back() ? Span{} : scene.facts.minute_span(shm::RecordKind::stream, s.who->key);
  if (minute.now == nullptr) {
    canvas.put(p.row + 1, p.column + 1, "only the newest second knows", kIdleInk);
    return 2;
  }
  struct Line {
    Reason reason;
    double minute, ever;
  };
  std::vector<Line> lines;
  const Span ever{minute.now, nullptr, 1};
  for (std::size_t r = 1; r < kReasonCount; ++r)
    if (ever.cause(r) > 0)
      lines.push_back({static_cast<Reason>(r), minute ? minute.cause(r) : kUnknownFigure, ever.cause(r)});
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) {
    return (known(a.minute) ? a.minute : 0) > (known(b.minute) ? b.minute : 0);
  });
  int row = p.row + 1;
  for (const Line& l : lines) {
    if (row >= p.row + p.height) break;
    canvas.put(row, p.column + 1, leat::name_of(l.reason), {}, p.column + 17);
    canvas.put_right(row, p.column + 19, whole(l.minute));
    canvas.put_right(row, p.column + 29, whole(l.ever));
    canvas.put(row++, p.column + 33, text_of(l.reason), kIdleInk, p.column + p.width);
  }
  if (lines.empty()) canvas.put(row++, p.column + 1, "no frame was given up or failed", kIdleInk);
  return row - p.row;
}

}  // namespace

void draw_stream_look(Screen& screen, const Scene& scene, Key key, Place p) {
  Canvas& canvas = screen.canvas;
  const StreamFigures* s = find(scene.second(), key);
  if (s == nullptr) {
    canvas.put(p.row, p.column + 1, "this stream is closed", kIdleInk, p.column + p.width);
    draw_changes_of(canvas, scene, {p.row + 2, p.column, p.height - 2, p.width}, true);
    return;
  }
  const int end = p.row + p.height;
  stream_head(canvas, scene, *s, p);
  int row = p.row + 2;
  if (s->camera && row < end) row += camera_lines(canvas, scene, *s->camera, {row, p.column, end - row, p.width});
  if (key.index >= kCameraRows) {
    if (end - row > 2) canvas.put(row + 1, p.column + 1, "leatd has no stream of this camera", kIdleInk);
    row += 3;
    if (end > row)
      draw_changes_of(canvas, scene, {row, p.column, end - row, p.width}, true,
                      [&](const Change& c) { return c.stream == key; });
    return;
  }
  if (end - row >= 4) {
    ledger(canvas, scene, *s, {row, p.column, 4, p.width});
    row += 4;
  }
  if (end - row >= 2) row += stream_reasons(canvas, scene, *s, {row, p.column, std::min(4, end - row), p.width});
  const double slo_ns = known(s->who->slo_ms) ? s->who->slo_ms * 1e6 : 0;
  const auto buckets =
      scene.back() ? std::nullopt : scene.facts.minute_of(shm::RecordKind::stream, key, shm::Which::first);
  if (end - row >= 7) {
    const auto q = [&](double part) { return buckets ? quantile_of(*buckets, part) : std::nullopt; };
    const auto ms = [](const std::optional<double>& ns) { return ns ? three(*ns / 1e6) : std::string("-"); };
    canvas.rule(row, p.column, p.column + p.width,
                " CAPTURE TO ANSWER, 60 s ──────────── p50 " + ms(q(.5)) + "   p95 " + ms(q(.95)) + "   p99 " +
                    ms(q(.99)) + (slo_ns > 0 ? " of " + three(s->who->slo_ms) + " ms " : " "));
    if (buckets) {
      const double longest = std::max(q(0.999).value_or(0), slo_ns > 0 ? slo_ns : 1e6);
      draw_distribution(canvas, *buckets, longest <= slo_ns ? slo_ns : scale_over(longest / 1e6) * 1e6, slo_ns,
                        {row + 1, p.column + 1, 6, p.width - 2});
    }
    row += 7;
  }
  if (end - row >= 3) {
    canvas.rule(row, p.column, p.column + p.width,
                " WHERE THE TIME GOES, medians ─────────── modules: of all streams ");
    std::string text = " waits " + three(s->wait50) + " (p99 " + three(s->wait99) + ")";
    for (const ModuleFigures& m : scene.second().modules)
      if (m.application == s->who->application)
        text += "   " + m.name.substr(std::min(m.name.size(), m.application.size() + 1)) + " waits " + three(m.wait50) +
                " runs " + three(m.run50);
    canvas.put(row + 1, p.column, text, {}, p.column + p.width);
    row += 2;
  }
  if (end - row >= 2 && draw_last_frames(canvas, scene, *s, {row, p.column, 2, p.width})) {
    row += 2;
  } else if (end - row >= 2) {
    canvas.rule(row, p.column, p.column + p.width, scene.view.minutes ? " MISSED, 10 min " : " MISSED, 60 s ");
    const int cells = p.width - 3;
    draw_misses(canvas, scene, row + 1, p.column + 1, std::min(cells, 60), (scene.view.minutes ? 10 : 1) * kSecondNs,
                key, meaning_of(s->mark));
    row += 2;
  }
  if (end - row < 2) return;
  draw_changes_of(canvas, scene, {row, p.column, end - row, p.width}, false,
                  [&](const Change& c) { return c.stream == key || c.text.find(s->who->client) != std::string::npos; });
}

}  // namespace leat::tools::top
