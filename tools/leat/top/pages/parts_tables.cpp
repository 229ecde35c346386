// Partitions, modules, streams, reasons and what changed, as rows.
#include <algorithm>
#include <cmath>

#include "tools/leat/top/facts/cameras.h"
#include "tools/leat/top/facts/text.h"
#include "tools/leat/top/pages/parts.h"
#include "tools/leat/top/pages/signs.h"

namespace leat::tools::top {
namespace {

constexpr Ink kPlain{};

Ink ink(Meaning meaning) { return {meaning, Stress::none}; }

std::string queue_text(double v) { return known(v) ? whole(v) : "-"; }

const char* word_of(PartitionState state) {
  switch (state) {
    case PartitionState::down:
      return "down";
    case PartitionState::starting:
      return "starting";
    case PartitionState::lost:
      return "lost";
    case PartitionState::up:
      return "up";
    case PartitionState::unknown:
      break;
  }
  return "-";
}

// "killed by signal 9 (Killed), 4 restarts" of one that is not up.
std::string trouble_of(const Scene& scene, const PartitionFigures& p) {
  const auto status = scene.facts.status().partitions.find(p.name);
  std::string text;
  if (status != scene.facts.status().partitions.end())
    text = status->second.why_down.empty() ? status->second.last_end : status->second.why_down;
  if (known(p.restarts) && p.restarts > 0)
    text += (text.empty() ? "" : ", ") + whole(p.restarts) + (p.restarts == 1 ? " restart" : " restarts");
  return text;
}

// Those that are shown where not all fit: who is not up, then the fullest.
std::vector<const PartitionFigures*> chosen_partitions(const Second& second, std::size_t room) {
  std::vector<const PartitionFigures*> list;
  for (const PartitionFigures& p : second.partitions) list.push_back(&p);
  if (list.size() <= room) return list;
  const auto worth = [](const PartitionFigures* p) {
    return p->state != PartitionState::up ? 1000.0 : known(p->busy) ? p->busy : 0.0;
  };
  std::stable_sort(list.begin(), list.end(), [&](const auto* a, const auto* b) { return worth(a) > worth(b); });
  list.resize(room);
  std::stable_sort(list.begin(), list.end(), [](const auto* a, const auto* b) { return a->key.index < b->key.index; });
  return list;
}

void partition_cell(Canvas& canvas, const Scene& scene, const PartitionFigures& p, int row, int column, int end) {
  const bool up = p.state == PartitionState::up;
  canvas.put(row, column + 2, p.name, up ? kPlain : Ink{Meaning::failed, Stress::none}, column + 10);
  if (!up) {
    canvas.put(row, column + 10, "[", kPlain);
    canvas.put(row, column + 11, word_of(p.state),
               ink(p.state == PartitionState::starting ? Meaning::late : Meaning::failed), column + 25);
    canvas.put(row, column + 25, "]", kPlain);
    canvas.put_right(row, column + 31, "-  ", kPlain);
    canvas.put_right(row, column + 34, queue_text(p.queued), kPlain);
    canvas.put_right(row, column + 40, "-  ", kPlain);
    canvas.put(row, column + 42, trouble_of(scene, p), ink(Meaning::failed), end);
    return;
  }
  const Meaning meaning = known(p.busy) && p.busy > 90 ? Meaning::late : Meaning::plain;
  busy_bar(canvas, row, column + 10, 14, p.busy, p.over, ink(meaning));
  canvas.put_right(row, column + 31, known(p.busy) ? percent(p.busy) + " %" : "-  ", ink(meaning));
  canvas.put_right(row, column + 34, queue_text(p.queued));
  canvas.put_right(row, column + 40, three(p.items));
}

void partition_row_wide(Canvas& canvas, const Scene& scene, const PartitionFigures& p, int row, Place place) {
  partition_cell(canvas, scene, p, row, place.column, place.column + place.width);
  if (p.state != PartitionState::up) return;
  const int at = place.column;
  canvas.put_right(row, at + 51, three(p.batches));
  canvas.put_right(row, at + 59, three(p.p50));
  canvas.put_right(row, at + 65, three(p.p99));
  const int cells = std::min(60, place.width - 69);
  std::vector<double> busy(static_cast<std::size_t>(cells), kUnknownFigure);
  over_time(scene, cells, 600 * kSecondNs / cells, [&](int cell, const Second& second) {
    for (const PartitionFigures& was : second.partitions)
      if (was.key == p.key && known(was.busy_now) && !second.gone) {
        double& to = busy[static_cast<std::size_t>(cell)];
        to = known(to) ? std::max<double>(to, was.busy_now / 100) : was.busy_now / 100;
      }
  });
  level_strip(canvas, row, at + 68, busy);
}

double minute_worst_of(const Scene& scene, const std::vector<Key>& keys, std::vector<Missed>* cells,
                       std::int64_t step_ns) {
  double worst = kUnknownFigure;
  over_time(scene, static_cast<int>(cells->size()), step_ns, [&](int cell, const Second& second) {
    if (second.gone) return;
    for (const Key key : keys)
      if (const StreamFigures* s = find(second, key)) (*cells)[static_cast<std::size_t>(cell)].add(*s);
  });
  return worst;
}

struct Sums {
  double in = kUnknownFigure, good = kUnknownFigure, p50 = kUnknownFigure, p99 = kUnknownFigure, slo = kUnknownFigure,
         flying = 0, depth = 0, lost = 0, done = 0;
};
Sums sums_of(const Second& second, const std::vector<Key>& keys) {
  Sums out;
  for (const Key key : keys) {
    const StreamFigures* s = find(second, key);
    if (s == nullptr) continue;
    const auto add = [](double* to, float v) {
      if (known(v)) *to = (known(*to) ? *to : 0) + v;
    };
    add(&out.in, s->in);
    add(&out.good, s->good);
    if (known(s->in_flight)) out.flying += s->in_flight;
    if (known(s->who->depth)) out.depth += s->who->depth;
    if (known(s->miss)) {
      const double done = s->good + s->late + s->dropped + s->failed + s->rejected;
      out.done += done;
      out.lost += done * s->miss / 100;
    }
    if (known(s->p99) && (!known(out.p99) || s->p99 > out.p99)) {
      out.p99 = s->p99;
      out.p50 = s->p50;
      out.slo = s->who->slo_ms;
    }
  }
  return out;
}

struct Columns {
  bool wide = false;
  int strip_cells = 12;
  std::int64_t step_ns = 5 * kSecondNs;
  int strip = 52, why = 65;
  [[nodiscard]] static Columns of(const Scene& scene, int width) {
    Columns c;
    c.wide = width >= kWide;
    if (c.wide) c = {true, 15, 4 * kSecondNs, 87, 104};
    if (scene.view.minutes) c.step_ns *= 10;
    return c;
  }
};

void stream_title(Screen& screen, const Scene& scene, Place place, const Columns& c) {
  Canvas& canvas = screen.canvas;
  std::set<std::string> applications;
  for (const StreamFigures& s : scene.second().streams) applications.insert(s.who->application);
  const std::string first =
      applications.size() == 1 && !applications.begin()->empty() ? " STREAM of " + *applications.begin() : " STREAM";
  canvas.rule(place.row, place.column, place.column + place.width, first + " ");
  const Stress stress = Stress::title;
  const auto put = [&](int end, const char* text, Sort sort) {
    const Ink of = scene.view.sort == sort ? Ink{Meaning::plain, Stress::chosen} : Ink{Meaning::plain, stress};
    const int from = place.column + end - width_of(text);
    canvas.put(place.row, from - 1, " ", {Meaning::plain, stress});
    canvas.put(place.row, from, text, of);
    canvas.put(place.row, place.column + end, " ", {Meaning::plain, stress});
    screen.hits.push_back({place.row, from, place.column + end, Hit::What::sort, {}, static_cast<int>(sort)});
  };
  screen.hits.push_back(
      {place.row, place.column, place.column + 16, Hit::What::sort, {}, static_cast<int>(Sort::name)});
  put(23, "in/s", Sort::in);
  put(29, "good", Sort::good);
  put(35, "miss%", Sort::miss);
  const auto words = [&](int column, const char* text) {
    canvas.put(place.row, place.column + column, text, {Meaning::plain, stress}, place.column + place.width);
  };
  const std::string span = scene.view.minutes ? " 10 min " : " 60 s ";
  if (!c.wide) {
    put(41, "p99", Sort::p99);
    words(41, " to SLO ");
  } else {
    words(37, " p50 ");
    put(47, "p99", Sort::p99);
    words(47, " to SLO ");
    words(56, " dropped late failed ");
    put(85, "flying", Sort::in_flight);
  }
  words(c.strip - 1, span.c_str());
  words(c.why - 1, " why ");
  if (!scene.view.filter.empty()) words(c.why + 4, (" only " + scene.view.filter.text() + " ").c_str());
}

void stream_row(Canvas& canvas, const Scene& scene, const StreamFigures& s, int row, Place place, const Columns& c) {
  const int at = place.column;
  const Meaning meaning = meaning_of(s.mark);
  canvas.put_sign(row, at, sign_of(s.mark), {meaning, Stress::strong});
  if (scene.view.pinned.contains(s.who->key)) canvas.put_sign(row, at + 1, U'▸');
  canvas.put(row, at + 2, s.who->name, kPlain, at + 18);
  canvas.put_right(row, at + 23, three(s.in));
  canvas.put_right(row, at + 29, three(s.good));
  const bool missing = known(s.miss) && s.miss >= 1;
  canvas.put_right(row, at + 35, share(s.miss),
                   ink(missing ? (meaning == Meaning::plain ? Meaning::dropped : meaning) : Meaning::plain));
  const bool slow = known(s.p99) && s.p99 > 0.85 * s.who->slo_ms;
  int bar = at + 42;
  if (c.wide) {
    canvas.put_right(row, at + 41, three(s.p50));
    bar = at + 48;
    const auto zero = [&](int end, float v, Meaning of) {
      canvas.put_right(row, at + end, three(v), ink(known(v) && v > 0 ? of : Meaning::plain));
    };
    zero(64, s.dropped + s.rejected, Meaning::dropped);
    zero(69, s.late, Meaning::late);
    zero(76, s.failed, Meaning::failed);
    if (known(s.in_flight))
      canvas.put_right(row, at + 85, whole(s.in_flight) + (known(s.who->depth) ? "/" + whole(s.who->depth) : ""));
  }
  canvas.put_right(row, bar - 1, three(s.p99), ink(slow ? Meaning::late : Meaning::plain));
  slo_bar(canvas, row, bar, 8, s.p50, s.p99, s.who->slo_ms);
  draw_misses(canvas, scene, row, at + c.strip, c.strip_cells, c.step_ns, s.who->key, meaning);
  canvas.put(row, at + c.why, why_text(s, scene.second().at_ns), ink(meaning), at + place.width);
}

void well_row(Canvas& canvas, const Scene& scene, const Row& r, int row, Place place, const Columns& c) {
  const int at = place.column;
  const Sums sums = sums_of(scene.second(), r.keys);
  canvas.put_sign(row, at, U'▸');
  canvas.put(row, at + 2, std::to_string(r.keys.size()) + (r.rest ? " more" : " well"), kPlain, at + 18);
  canvas.put_right(row, at + 23, three(sums.in));
  canvas.put_right(row, at + 29, three(sums.good));
  canvas.put_right(row, at + 35, sums.done > 0 ? share(100 * sums.lost / sums.done) : "-");
  int bar = at + 42;
  if (c.wide) {
    canvas.put_right(row, at + 41, three(sums.p50));
    bar = at + 48;
    canvas.put_right(row, at + 85, whole(sums.flying) + "/" + whole(sums.depth));
  }
  canvas.put_right(row, bar - 1, three(sums.p99));
  slo_bar(canvas, row, bar, 8, sums.p50, sums.p99, sums.slo);
  std::vector<Missed> cells(static_cast<std::size_t>(c.strip_cells));
  (void)minute_worst_of(scene, r.keys, &cells, c.step_ns);
  miss_strip(canvas, row, at + c.strip, cells, Meaning::plain);
  canvas.put(row, at + c.why, r.text, kPlain, at + place.width);
}

// Rows that have no place any more are the last one together, unless the cursor is there.
void sum_up_the_rest(int first, int height, const View& view, std::vector<Row>* shown) {
  const int last = first + height - 1;
  if (height < 2 || last < 0 || last + 1 >= static_cast<int>(shown->size())) return;
  Row rest{Row::Kind::well, {}, {}, {}, true};
  std::vector<std::string> names;
  for (auto row = shown->begin() + last; row != shown->end(); ++row) {
    if (row->kind == Row::Kind::stream) rest.keys.push_back(row->key), names.push_back(row->text);
    if (row->kind != Row::Kind::well) continue;
    rest.keys.insert(rest.keys.end(), row->keys.begin(), row->keys.end());
    names.push_back(row->text);
  }
  const auto is_rest = [&](Key key) { return std::find(rest.keys.begin(), rest.keys.end(), key) != rest.keys.end(); };
  if (rest.keys.empty() || (view.stream && is_rest(*view.stream))) return;
  rest.text = names_together(std::move(names), 40);
  shown->resize(static_cast<std::size_t>(last));
  shown->push_back(std::move(rest));
}

}  // namespace

std::string why_text(const StreamFigures& s, std::int64_t now_ns) {
  if (s.mark == Mark::silent && s.camera && !s.camera->runs()) {
    // The end of it says most: "Connection refused".
    const std::string error = short_error(*s.camera);
    const std::size_t colon = error.rfind(": ");
    return (colon == std::string::npos ? error : error.substr(colon + 2)) + ", " + span_of(now_ns - s.since_ns);
  }
  if (s.mark == Mark::silent) return "silent " + span_of(now_ns - s.since_ns);
  if (s.mark == Mark::late) return "answers late";
  if (s.mark == Mark::near && known(s.who->slo_ms))
    return "p99 " + percent(100 * s.p99_minute / s.who->slo_ms) + " % of SLO";
  if (s.cause == Reason::none) return {};
  const std::string name(leat::name_of(s.cause));
  return known(s.cause_percent) && s.cause_percent < 95 ? name + " " + percent(s.cause_percent) + " %" : name;
}

void draw_misses(Canvas& canvas, const Scene& scene, int row, int column, int cells, std::int64_t step_ns, Key key,
                 Meaning meaning) {
  std::vector<Missed> of(static_cast<std::size_t>(cells));
  (void)minute_worst_of(scene, {key}, &of, step_ns);
  miss_strip(canvas, row, column, of, meaning);
}

int partition_rows(const Scene& scene, int width) {
  const auto count = static_cast<int>(scene.second().partitions.size());
  if (width >= kWide || width < 80) return count;
  return (count + 1) / 2;
}

void draw_partitions(Screen& screen, const Scene& scene, Place place, bool cursor) {
  Canvas& canvas = screen.canvas;
  if (place.height <= 0) return;
  const bool wide = place.width >= kWide, two = !wide && place.width >= 80;
  const int end = place.column + place.width;
  int row = place.row;
  if (place.height > 1) {
    const char* title = wide ? " PARTITION  busy, overhead ───── q  items batches/s  ms p50 ─ p99 ─ busy, 10 min "
                        : two ? " PARTITION  busy, overhead ───── q items ────────── busy, overhead ───── q items"
                              : " PARTITION  busy, overhead ───── q items ";
    canvas.rule(row++, place.column, end, title);
  }
  const int rows = place.row + place.height - row;
  const auto list = chosen_partitions(scene.second(), static_cast<std::size_t>(rows) * (two ? 2 : 1));
  int column = place.column;
  for (std::size_t i = 0; i < list.size() && row < place.row + place.height; ++i) {
    const PartitionFigures& p = *list[i];
    if (wide)
      partition_row_wide(canvas, scene, p, row, place);
    else  // the last has the row's rest for what became of it
      partition_cell(canvas, scene, p, row, column, i + 1 == list.size() ? end : std::min(end, column + 40));
    screen.hits.push_back({row, column, wide || !two ? end : column + 40, Hit::What::partition, p.key, 0});
    if (cursor && scene.view.partition == p.key)
      canvas.stress(row, column, wide || !two ? end : column + 40, Stress::chosen);
    if (two && column == place.column) {
      column += 40;
    } else {
      column = place.column;
      ++row;
    }
  }
}

void draw_modules(Canvas& canvas, const Scene& scene, Place place) {
  if (place.height <= 0) return;
  const bool wide = place.width >= kWide;
  int row = place.row;
  const int at = place.column, end = at + place.width;
  if (place.height > 1)
    canvas.rule(
        row++, at, end,
        wide
            ? " MODULE ───────── tasks/s  a batch  wait ms p50 ─ p99 run ms p50 ─ p99  waiting ─ tasks waiting, 10 min "
            : " MODULE ───────── tasks/s  a batch  wait ms p50 ─ p99 run ms p50 ─ p99  waiting ");
  for (const ModuleFigures& m : scene.second().modules) {
    if (row >= place.row + place.height) break;
    canvas.put(row, at + 2, m.name, kPlain, at + 19);
    canvas.put_right(row, at + 25, three(m.tasks));
    canvas.put_right(row, at + 34, three(m.batch));
    canvas.put_right(row, at + 47, three(m.wait50));
    canvas.put_right(row, at + 53, three(m.wait99));
    canvas.put_right(row, at + 64, three(m.run50));
    canvas.put_right(row, at + 70, three(m.run99));
    canvas.put_right(row, at + 79, whole(m.waiting));
    if (wide) {
      const int cells = std::min(40, place.width - 83);
      std::vector<double> waiting(static_cast<std::size_t>(cells), kUnknownFigure);
      double most = 8;
      over_time(scene, cells, 600 * kSecondNs / cells, [&](int cell, const Second& second) {
        for (const ModuleFigures& was : second.modules)
          if (was.key == m.key && known(was.waiting) && !second.gone) {
            double& to = waiting[static_cast<std::size_t>(cell)];
            to = known(to) ? std::max<double>(to, was.waiting) : was.waiting;
            most = std::max(most, to);
          }
      });
      for (double& v : waiting) v = known(v) ? v / most : v;
      level_strip(canvas, row, at + 82, waiting);
    }
    ++row;
  }
}

void draw_streams(Screen& screen, const Scene& scene, Place place) {
  if (place.height <= 0) return;
  const Columns c = Columns::of(scene, place.width);
  int row = place.row;
  if (place.height > 1) stream_title(screen, scene, {row++, place.column, 1, place.width}, c);
  const int height = place.row + place.height - row;
  screen.stream_lines = height;
  std::vector<Row> shown =
      folded(scene.rows, scene.second(), static_cast<std::size_t>(std::max(height, 0)), scene.view.open);
  int first = 0;
  if (scene.view.stream) {
    const auto at = std::find_if(shown.begin(), shown.end(), [&](const Row& r) {
      return r.kind == Row::Kind::stream ? r.key == *scene.view.stream
                                         : std::find(r.keys.begin(), r.keys.end(), *scene.view.stream) != r.keys.end();
    });
    if (at != shown.end())
      first = static_cast<int>(at - shown.begin()) - std::clamp(scene.view.cursor_line, 0, std::max(height - 1, 0));
  }
  sum_up_the_rest(first, height, scene.view, &shown);
  for (int i = 0; i < height; ++i, ++row) {
    const int at = first + i;
    if (at < 0 || at >= static_cast<int>(shown.size())) continue;
    const Row& r = shown[static_cast<std::size_t>(at)];
    bool chosen = false;
    if (r.kind == Row::Kind::group) {
      screen.canvas.put(row, place.column, " " + r.text, {Meaning::plain, Stress::strong}, place.column + place.width);
    } else if (r.kind == Row::Kind::well) {
      well_row(screen.canvas, scene, r, row, place, c);
      chosen = scene.view.stream && std::find(r.keys.begin(), r.keys.end(), *scene.view.stream) != r.keys.end();
      screen.hits.push_back({row, place.column, place.column + 18, Hit::What::key, {}, -1});
    } else if (const StreamFigures* s = find(scene.second(), r.key)) {
      stream_row(screen.canvas, scene, *s, row, place, c);
      chosen = scene.view.stream == r.key;
      screen.hits.push_back({row, place.column, place.column + place.width, Hit::What::row, r.key, i});
    }
    if (chosen) screen.canvas.stress(row, place.column, place.column + place.width, Stress::chosen);
  }
}

void draw_change(Canvas& canvas, const Scene& scene, const Change& change, int row, Place place) {
  canvas.put(row, place.column + 1, scene.facts.clock_at(change.at_ns), kIdleInk);
  canvas.put_sign(row, place.column + 10, sign_of(change.meaning), {meaning_of(change.meaning), Stress::strong});
  canvas.put(row, place.column + 12, change.text, kPlain, place.column + place.width);
}

void draw_changes_of(Canvas& canvas, const Scene& scene, Place place, bool newest_first,
                     const std::function<bool(const Change&)>& which) {
  if (place.height <= 0) return;
  int row = place.row;
  if (place.height > 1) canvas.rule(row++, place.column, place.column + place.width, " CHANGED ");
  const int room = place.row + place.height - row;
  std::vector<const Change*> lines;
  for (const Change& c : scene.facts.changes())
    if (c.at_ns <= scene.second().at_ns && (!which || which(c))) lines.push_back(&c);
  if (static_cast<int>(lines.size()) > room) lines.erase(lines.begin(), lines.end() - room);
  if (newest_first) std::reverse(lines.begin(), lines.end());
  for (const Change* c : lines) draw_change(canvas, scene, *c, row++, place);
  if (!newest_first && row < place.row + place.height && !lines.empty())
    canvas.put(row, place.column + 12, "nothing since", kIdleInk);
}

void draw_why(Canvas& canvas, const Scene& scene, Place place) {
  canvas.rule(place.row, place.column, place.column + place.width, " WHY, 60 s ");
  int row = place.row + 1;
  const int end = place.row + place.height;
  double all = 0;
  for (const ReasonFigures& r : scene.second().reasons)
    if (known(r.minute)) all += r.minute;
  const ReasonFigures* first = nullptr;
  for (const ReasonFigures& r : scene.second().reasons) {
    if (!known(r.minute) || r.minute <= 0 || row >= end) continue;
    if (first == nullptr) first = &r;
    canvas.put(row, place.column + 1, leat::name_of(r.reason));
    canvas.put_right(row, place.column + 24, whole(r.minute));
    canvas.put_right(row++, place.column + 32, percent(100 * r.minute / all) + " %");
  }
  if (first == nullptr) {
    if (row < end) canvas.put(row, place.column + 1, "no frame was missed", ink(Meaning::idle));
    return;
  }
  // What helps against the first, in lines.
  std::string text = std::string(leat::name_of(first->reason)) + ": " + std::string(text_of(first->reason));
  ++row;
  const auto width = static_cast<std::size_t>(std::max(place.width - 3, 10));
  while (!text.empty() && row < end) {
    std::size_t cut = text.size() <= width ? text.size() : text.rfind(' ', width);
    if (cut == std::string::npos || cut == 0) cut = std::min(width, text.size());
    canvas.put(row++, place.column + 1, text.substr(0, cut), kPlain, place.column + place.width);
    text.erase(0,
               text.find_first_not_of(' ', cut) == std::string::npos ? text.size() : text.find_first_not_of(' ', cut));
  }
}

}  // namespace leat::tools::top
