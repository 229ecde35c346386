// The sentence, the keys, and graphs of all frames.
#include <algorithm>
#include <cmath>

#include "tools/leat/top/facts/text.h"
#include "tools/leat/top/pages/keys.h"
#include "tools/leat/top/pages/parts.h"
#include "tools/leat/top/pages/signs.h"

namespace leat::tools::top {
namespace {

constexpr int kReasonColumn = 11;

// Seconds' worth of frames over cells of time.
std::vector<Stacked> frames_over(const Scene& scene, int cells, std::int64_t step_ns) {
  std::vector<Stacked> out(static_cast<std::size_t>(cells));
  std::vector<int> seen(out.size());
  over_time(scene, cells, step_ns, [&](int cell, const Second& second) {
    const StreamFigures& t = second.total;
    if (!known(t.done) || second.gone) return;
    Stacked& to = out[static_cast<std::size_t>(cell)];
    if (!known(to.good)) to = {0, 0};
    to.good += t.done - t.lost;
    to.missed += t.lost;
    ++seen[static_cast<std::size_t>(cell)];
  });
  for (std::size_t i = 0; i < out.size(); ++i)
    if (seen[i] > 0) out[i] = {out[i].good / seen[i], out[i].missed / seen[i]};
  return out;
}

double highest(std::span<const Stacked> cells) {
  double most = 0;
  for (const Stacked& c : cells)
    if (known(c.good)) most = std::max(most, c.good + c.missed);
  return most;
}

void axis(Canvas& canvas, int row, int column, int rows, double scale) {
  for (int i = 0; i < rows; ++i) {
    const bool tick = i == 0 || i == rows - 1 || i == (rows - 1) / 2;
    canvas.put_sign(row + i, column + 5, tick ? U'┤' : U'│');
    if (i == 0) canvas.put_right(row, column + 5, three(scale));
    if (i == (rows - 1) / 2 && rows > 2) canvas.put_right(row + i, column + 5, three(scale / 2));
    if (i == rows - 1) canvas.put_right(row + i, column + 5, "0");
  }
}

void time_hits(Screen& screen, int row, int rows, int column, int cells, bool minutes) {
  for (int i = 0; i < rows; ++i)
    screen.hits.push_back({row + i, column, column + cells, Hit::What::time, {}, minutes ? 600 / cells : 60 / cells});
}

void draw_strips(Screen& screen, const Scene& scene, Place place) {
  Canvas& canvas = screen.canvas;
  const bool minutes = scene.view.minutes;
  const int cells = std::clamp(place.width - 20, 10, 60);
  const auto frames = frames_over(scene, cells, minutes ? 10 * kSecondNs : kSecondNs);
  const double scale = scale_over(highest(frames));
  std::vector<double> good;
  std::vector<Missed> missed;
  for (const Stacked& f : frames) {
    good.push_back(known(f.good) ? f.good / scale : kUnknownFigure);
    missed.push_back(known(f.good) ? Missed{f.good + f.missed, f.good + f.missed, f.missed} : Missed{});
  }
  canvas.put(place.row, place.column + 1, "good/s");
  level_strip(canvas, place.row, place.column + kReasonColumn, good, {Meaning::good, Stress::none});
  const StreamFigures& total = scene.second().total;
  canvas.put_right(place.row, place.column + place.width - 1, three(total.good));
  time_hits(screen, place.row, place.height, place.column + kReasonColumn, cells, minutes);
  if (place.height < 2) return;
  canvas.put(place.row + 1, place.column + 1, "missed %");
  miss_strip(canvas, place.row + 1, place.column + kReasonColumn, missed, Meaning::dropped);
  canvas.put_right(place.row + 1, place.column + place.width - 1, percent(total.miss),
                   {total.miss >= 1 ? Meaning::dropped : Meaning::plain, Stress::none});
}

double shortest_slo(const Second& second) {
  double slo = kUnknownFigure;
  for (const StreamFigures& s : second.streams)
    if (known(s.who->slo_ms) && (!known(slo) || s.who->slo_ms < slo)) slo = s.who->slo_ms;
  return slo;
}

void draw_answer_times(Canvas& canvas, const Scene& scene, Place place, int rows, int cells) {
  std::vector<Stacked> times(static_cast<std::size_t>(cells));
  const double slo = shortest_slo(scene.second());
  double most = known(slo) ? slo : 0;
  over_time(scene, cells, 600 * kSecondNs / cells, [&](int cell, const Second& second) {
    const StreamFigures& t = second.total;
    Stacked& to = times[static_cast<std::size_t>(cell)];
    if (!known(t.p50) || second.gone) return;
    if (!known(to.good)) to = {0, 0};
    to.good = std::max(to.good, static_cast<double>(t.p50));
    to.missed = std::max(to.missed, static_cast<double>(t.p99 - t.p50));
    most = std::max(most, to.good + to.missed);
  });
  const double scale = scale_over(most);
  axis(canvas, place.row, place.column, rows, scale);
  if (known(slo)) {
    const int up = std::min(rows - 1, static_cast<int>(slo / scale * rows)), at = place.row + rows - 1 - up;
    for (int i = 0; i < cells; ++i) canvas.put_sign(at, place.column + 6 + i, U'╌', {Meaning::idle, Stress::none});
    if (canvas.at(at, place.column + 4).sign == U' ') canvas.put(at, place.column + 1, "SLO", kIdleInk);
  }
  graph(canvas, place.row, place.column + 6, rows, times, scale, Meaning::late);
}

}  // namespace

void draw_head(Canvas& canvas, const Scene& scene, int width) {
  const Second& second = scene.second();
  const Sentence& s = second.sentence;
  const bool lasting = s.since_ns != 0 && s.state != State::watching && s.state != State::starting &&
                       s.state != State::idle && s.state != State::no_leatd;
  std::string state = " " + std::string(name_of(s.state));
  if (!s.others.empty()) state += " +" + std::to_string(s.others.size());
  const std::string clock = scene.facts.clock_at(second.at_ns);
  std::string right = lasting ? "since " + scene.facts.clock_at(s.since_ns) : clock;
  const bool wide = width >= kWide - 1;  // a divider may stand beside
  if (lasting && wide) right += " (" + span_of(second.at_ns - s.since_ns) + ")";
  Ink right_ink;
  if (scene.back()) {
    right = clock + ", " + span_of(scene.facts.seconds().back().at_ns - second.at_ns) + " ago";
    right_ink = {Meaning::plain, Stress::chosen};
  } else if (scene.view.frozen) {
    right += " order stands";
  }
  const int left = width_of(state) + 2;
  if (left + width_of(s.text) + 1 + width_of(right) > width && lasting && !scene.back())
    right = scene.facts.clock_at(s.since_ns);
  const int right_at = width - width_of(right);
  canvas.put(0, 0, state, {meaning_of(s.state), Stress::strong}, width);
  const bool fits = left + width_of(s.text) + 1 <= right_at;
  // Beside a long text a time still has its place; the clock has not.
  const bool room = fits || (right_at - left >= 24 && (lasting || scene.back()));
  canvas.put(0, left, s.text, {Meaning::plain, Stress::strong}, room ? right_at - 1 : width);
  if (room) canvas.put(0, right_at, right, right_ink);
  canvas.put(1, 1, s.word, {Meaning::idle, Stress::none}, width);
  canvas.put(1, kReasonColumn, s.reason, {}, wide && lasting && !scene.back() ? width - 9 : width);
  if (wide && lasting && !scene.back()) canvas.put_right(1, width, clock);
}

void draw_keys(Screen& screen, const Scene& scene, int row, int width) {
  Canvas& canvas = screen.canvas;
  const View& view = scene.view;
  if (!view.typed.empty()) {
    canvas.put(row, 1, view.typed + "_", {Meaning::plain, Stress::strong}, width);
    return;
  }
  if (!view.notice.empty()) {
    canvas.put(row, 1, view.notice, {Meaning::late, Stress::strong}, width);
    return;
  }
  int column = 1;
  for (const KeyHint& hint : hints_of(view, scene.replayed)) {
    const int end = column + width_of(hint.text);
    if (end >= width) break;
    canvas.put(row, column, hint.text, {Meaning::idle, Stress::none});
    screen.hits.push_back({row, column, end, Hit::What::key, {}, static_cast<int>(hint.action)});
    column = end + 2;
  }
}

void draw_time_axis(Canvas& canvas, int row, int column, int cells, bool minutes) {
  for (int i = 0; i < cells; ++i) canvas.put_sign(row, column + i, U'─', {Meaning::idle, Stress::none});
  canvas.put_sign(row, column - 1, U'└');
  canvas.put(row, column, minutes ? "10 min " : "60 s ", {Meaning::idle, Stress::none});
  for (const int third : {1, 2}) {
    const std::string text = " " + std::to_string(minutes ? (third == 1 ? 7 : 3) : (third == 1 ? 40 : 20)) + " ";
    const double part = minutes ? (third == 1 ? 0.3 : 0.7) : third / 3.0;
    if (cells >= 30)
      canvas.put(row, column + static_cast<int>(part * cells) - width_of(text) / 2, text,
                 {Meaning::idle, Stress::none});
  }
  canvas.put_right(row, column + cells, " now", {Meaning::idle, Stress::none});
}

void draw_frames(Screen& screen, const Scene& scene, Place place) {
  if (place.height < 6) return draw_strips(screen, scene, place);
  Canvas& canvas = screen.canvas;
  const bool minutes = scene.view.minutes;
  const int rows = place.height - 1, cells = std::max(10, std::min(60, place.width - 20));
  const auto frames = frames_over(scene, cells, (minutes ? 600 : 60) * kSecondNs / cells);
  const double scale = scale_over(highest(frames));
  axis(canvas, place.row, place.column, rows, scale);
  graph(canvas, place.row, place.column + 6, rows, frames, scale);
  draw_time_axis(canvas, place.row + rows, place.column + 6, cells, minutes);
  time_hits(screen, place.row, place.height, place.column + 6, cells, minutes);
  const StreamFigures& total = scene.second().total;
  const int at = place.column + 6 + cells + 1, end = place.column + place.width;
  const double lost = known(total.good) ? total.in * (known(total.miss) ? total.miss / 100 : 0) : kUnknownFigure;
  canvas.put_sign(place.row, at, U'█', {Meaning::good, Stress::none});
  canvas.put(place.row, at + 2, "good " + three(total.good) + "/s", {}, end);
  canvas.put_sign(place.row + 1, at, U'░', {Meaning::dropped, Stress::none});
  canvas.put(place.row + 1, at + 2, "missed " + three(lost) + "/s", {}, end);
  canvas.put(place.row + 2, at, "p50 " + three(total.p50) + " ms", {}, end);
  canvas.put(place.row + 3, at, "p99 " + three(total.p99) + " ms", {}, end);
  canvas.put(place.row + 4, at, "of SLO " + three(shortest_slo(scene.second())), {}, end);
}

void draw_frames_wide(Screen& screen, const Scene& scene, Place place) {
  Canvas& canvas = screen.canvas;
  const int half = place.width / 2, rows = place.height - 3, cells = half - 10;
  const StreamFigures& total = scene.second().total;
  canvas.rule(place.row, place.column, place.column + half, " GOOD FRAMES A SECOND, 10 min ");
  canvas.rule(place.row, place.column + half, place.column + place.width,
              " CAPTURE TO ANSWER ms, 10 min ─── p50 " + three(total.p50) + "  p99 " + three(total.p99) + " ");
  const auto frames = frames_over(scene, cells, 600 * kSecondNs / cells);
  const double scale = scale_over(highest(frames));
  axis(canvas, place.row + 1, place.column, rows, scale);
  graph(canvas, place.row + 1, place.column + 6, rows, frames, scale);
  draw_time_axis(canvas, place.row + 1 + rows, place.column + 6, cells, true);
  time_hits(screen, place.row + 1, rows + 2, place.column + 6, cells, true);
  std::vector<Missed> missed;
  for (const Stacked& f : frames)
    missed.push_back(known(f.good) ? Missed{f.good + f.missed, f.good + f.missed, f.missed} : Missed{});
  canvas.put(place.row + rows + 2, place.column + 1, "miss");
  miss_strip(canvas, place.row + rows + 2, place.column + 6, missed, Meaning::dropped);
  const Place right{place.row + 1, place.column + half, rows, half};
  draw_answer_times(canvas, scene, right, rows, cells);
  draw_time_axis(canvas, place.row + 1 + rows, right.column + 6, cells, true);
  time_hits(screen, place.row + 1, rows + 2, right.column + 6, cells, true);
  canvas.put(place.row + rows + 2, right.column + 2, "log");
  const std::int64_t end = scene.second().at_ns, step = 600 * kSecondNs / cells;
  for (const Change& c : scene.facts.changes()) {
    if (c.at_ns > end) continue;
    const std::int64_t cell = cells - 1 - (end - c.at_ns) / step;
    if (cell < 0) continue;
    canvas.put_sign(place.row + rows + 2, right.column + 6 + static_cast<int>(cell), U'▴',
                    {meaning_of(c.meaning), Stress::none});
  }
}

}  // namespace leat::tools::top
