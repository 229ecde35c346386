// Who uses what: users and their clients, how full their limits are, who has the partitions, and what one more of each
// kind of stream would take.
#include <algorithm>
#include <cmath>

#include "tools/leat/top/facts/room.h"
#include "tools/leat/top/facts/text.h"
#include "tools/leat/top/pages/parts.h"
#include "tools/leat/top/pages/signs.h"

namespace leat::tools::top {
namespace {

void figures(Canvas& canvas, int row, int column, double streams, double in, double good, double miss) {
  canvas.put_right(row, column + 25, whole(streams));
  canvas.put_right(row, column + 32, three(in));
  canvas.put_right(row, column + 39, three(good));
  canvas.put_right(row, column + 46, share(miss),
                   {known(miss) && miss >= 1 ? Meaning::dropped : Meaning::plain, Stress::none});
}

int users_table(Canvas& canvas, const Scene& scene, Place p) {
  canvas.rule(p.row, p.column, p.column + p.width,
              " USER, client ──── streams ─ in/s ─ good  miss%  share ─ within it ──── refused ");
  int row = p.row + 1;
  const int end = p.row + p.height;
  const Second& second = scene.second();
  std::vector<const UserFigures*> users;
  for (const UserFigures& u : second.users) users.push_back(&u);
  std::stable_sort(users.begin(), users.end(), [](const auto* a, const auto* b) { return a->streams > b->streams; });
  for (const UserFigures* u : users) {
    if (row >= end) break;
    canvas.put(row, p.column + 1, "▾ " + u->name, {}, p.column + 18);
    figures(canvas, row, p.column, u->streams, u->in, u->good, u->miss);
    canvas.put_right(row, p.column + 53, known(u->share) ? three(u->share) : "-");
    if (known(u->within) && u->within > 0)
      canvas.put_right(row, p.column + 66, three(u->within) + " of " + three(u->in));
    else
      canvas.put_right(row, p.column + 66, "-");
    const std::string refused =
        !(u->refused > 0) ? "none" : u->last_refusal + ", " + span_of(second.at_ns - u->last_refusal_ns);
    canvas.put_right(row++, p.column + p.width - 1, refused,
                     {u->refused > 0 ? Meaning::late : Meaning::plain, Stress::none});
    for (const ClientFigures& c : second.clients) {
      if (c.user != u->key.index || row >= end) continue;
      canvas.put(row, p.column + 3, "└ " + c.name + "  " + std::to_string(c.pid), {}, p.column + 20);
      figures(canvas, row++, p.column, c.streams, c.in, c.good, c.miss);
    }
  }
  if (users.empty() && row < end) canvas.put(row++, p.column + 1, "no user has connected yet", kIdleInk);
  return row - p.row;
}

int limits_table(Canvas& canvas, const Scene& scene, Place p) {
  std::vector<const UserFigures*> users;
  for (const UserFigures& u : scene.second().users)
    if (u.streams > 0) users.push_back(&u);
  const std::size_t fit = static_cast<std::size_t>(std::max(1, (p.width - 20) / 27));
  if (users.size() > fit) users.resize(fit);
  canvas.rule(p.row, p.column, p.column + p.width, " HOW FULL ");
  static constexpr std::pair<const char*, UserFigures::Used UserFigures::*> kRows[] = {
      {"streams", &UserFigures::stream_places},
      {"depths together", &UserFigures::depths},
      {"memory, MiB", &UserFigures::memory_mib},
      {"connections", &UserFigures::connections}};
  int row = p.row + 1;
  for (std::size_t i = 0; i < users.size(); ++i)
    canvas.put(p.row, p.column + 36 + 27 * static_cast<int>(i), " " + users[i]->name + " ",
               {Meaning::plain, Stress::title}, p.column + 46 + 27 * static_cast<int>(i));
  for (const auto& [name, used] : kRows) {
    if (row >= p.row + p.height) break;
    canvas.put(row, p.column + 1, name);
    for (std::size_t i = 0; i < users.size(); ++i) {
      const UserFigures::Used& u = users[i]->*used;
      const int at = p.column + 20 + 27 * static_cast<int>(i);
      used_bar(canvas, row, at, 8, u.now, u.most);
      canvas.put_right(row, at + 25, whole(std::ceil(u.now)) + (known(u.most) ? " of " + whole(u.most) : ""));
    }
    ++row;
  }
  return row - p.row;
}

int partitions_table(Canvas& canvas, const Scene& scene, Place p) {
  canvas.rule(p.row, p.column, p.column + p.width, " WHO HAS THE PARTITIONS, batches of each module ");
  int row = p.row + 1;
  double free = 0;
  const auto all = static_cast<double>(scene.second().partitions.size());
  for (const PartitionFigures& f : scene.second().partitions)
    if (known(f.busy)) free += std::max(0.0, 1 - (f.busy + (known(f.over) ? f.over : 0.0)) / 100);
  const auto line = [&](const std::string& name, double held) {
    if (row >= p.row + p.height) return;
    canvas.put(row, p.column + 1, name, {}, p.column + 20);
    busy_bar(canvas, row, p.column + 20, 40, known(held) && all > 0 ? 100 * held / all : kUnknownFigure, 0);
    canvas.put_right(row++, p.column + p.width - 2, three(held) + " of " + whole(all));
  };
  for (const ModuleFigures& m : scene.second().modules) line(m.name, m.held);
  line("free", free);
  return row - p.row;
}

}  // namespace

void draw_users_page(Screen& screen, const Scene& scene, Place p) {
  Canvas& canvas = screen.canvas;
  const int end = p.row + p.height;
  const int modules = static_cast<int>(scene.second().modules.size());
  const int rest = std::min(5 + 2 + modules + 6, std::max(0, p.height - 4));
  int row = p.row;
  row += users_table(canvas, scene, {row, p.column, p.height - rest, p.width});
  if (end - row >= 5) row += limits_table(canvas, scene, {row, p.column, 5, p.width});
  if (end - row >= 3)
    row += partitions_table(canvas, scene, {row, p.column, std::min(2 + modules, end - row - 2), p.width});
  if (end - row < 2) return;
  canvas.rule(row++, p.column, p.column + p.width, " ONE MORE LIKE ──────────── in/s ─ of a partition  fits ");
  for (const OneMore& like : one_more_like(scene.second())) {
    if (row + 2 >= end) break;
    canvas.put(row, p.column + 1, like.stream->who->name, {}, p.column + 24);
    canvas.put_right(row, p.column + 32, three(like.stream->in));
    canvas.put_right(row, p.column + 48, share(like.percent) + " %");
    canvas.put_right(row++, p.column + 54,
                     !known(like.percent) ? "-"
                     : like.fits          ? "yes"
                                          : "no",
                     {like.fits ? Meaning::plain : Meaning::late, Stress::none});
  }
  if (row + 1 < end) {
    canvas.put(row++, p.column + 1, "Estimates: what its frames took of the partitions in 5 s. To be sure:", kIdleInk);
    canvas.put(row, p.column + 1, "leat sim --plan plan.json --presets leat --sweep 0.8:1.2:0.1", kIdleInk);
  }
}

void draw_changes_page(Screen& screen, const Scene& scene, Place p) {
  Canvas& canvas = screen.canvas;
  const Sentence& s = scene.second().sentence;
  int row = p.row;
  std::string others;
  for (const State state : s.others) others += (others.empty() ? "" : ", ") + std::string(name_of(state));
  if (!others.empty())
    canvas.put(row++, p.column + 1, "in force besides: " + others, {Meaning::late, Stress::none}, p.column + p.width);
  canvas.rule(row++, p.column, p.column + p.width, " CHANGED, the newest first ");
  std::vector<const Change*> lines;
  for (const Change& c : scene.facts.changes())
    if (c.at_ns <= scene.second().at_ns) lines.push_back(&c);
  std::reverse(lines.begin(), lines.end());
  const int room = p.row + p.height - row;
  const int first = std::clamp(scene.view.scroll, 0, std::max(0, static_cast<int>(lines.size()) - 1));
  for (int i = 0; i < room && first + i < static_cast<int>(lines.size()); ++i) {
    draw_change(canvas, scene, *lines[static_cast<std::size_t>(first + i)], row + i, p);
  }
}

}  // namespace leat::tools::top
