// Where the parts stand, by size. What gives way first on a small screen: module rows, the log but one line, all
// partitions but the fullest, graph rows, streams that are well.
#include <algorithm>

#include "tools/leat/top/facts/text.h"
#include "tools/leat/top/pages/parts.h"

namespace leat::tools::top {
namespace {

// Nothing in here depends on who suffers: rows do not move because a figure did.
Heights heights_of(const Scene& scene, int body, int width, int listed, int stream_rows) {
  const int modules = static_cast<int>(scene.second().modules.size());
  const int partitions = partition_rows(scene, width);
  Heights h;
  const int all = (1 + partitions) + (modules > 0 ? 1 + modules : 0) + (1 + listed) + (1 + 3);
  if (body - all >= 6) {
    h = {6, 1 + partitions, modules > 0 ? 1 + modules : 0, 1 + listed, 0};
    h.changes = body - h.frames - h.partitions - h.modules - h.streams;
    return h;
  }
  h.frames = body >= 10 ? 2 : 0;
  h.partitions = body >= 6 ? 1 + std::min(partitions, std::max(1, (body - 8) / 4)) : 0;
  h.modules = body >= 16 && modules > 0 ? 1 + std::min(modules, std::max(1, (body - 16) / 4 + 1)) : 0;
  h.changes = body >= 16 ? 4 : body >= 8 ? 2 : 0;
  h.streams = body - h.frames - h.partitions - h.modules - h.changes;
  // What streams leave is the log's, and what they need they take from it.
  const int wanted = 1 + stream_rows;
  while (h.streams < wanted && h.changes > 2) ++h.streams, --h.changes;
  if (h.streams > wanted && body >= 8) {
    h.changes += h.streams - wanted;
    h.streams = wanted;
  }
  return h;
}

// How many rows the list would have if the well ones were folded, or all were shown where they fit.
int rows_wanted(const Scene& scene, int room) {
  const auto rows = folded(scene.rows, scene.second(), static_cast<std::size_t>(std::max(room, 1)), scene.view.open);
  return static_cast<int>(rows.size());
}

void draw_now(Screen& screen, const Scene& scene, int rows, int width) {
  Canvas& canvas = screen.canvas;
  const int body = rows - 3, listed = static_cast<int>(scene.rows.size());
  if (body <= 0) return;
  const Heights probe = heights_of(scene, body, width, listed, listed);
  const Heights h = scene.view.held ? *scene.view.held
                                    : heights_of(scene, body, width, listed, rows_wanted(scene, probe.streams - 1));
  screen.heights = h;
  int row = 2;
  draw_frames(screen, scene, {row, 0, h.frames, width});
  row += h.frames;
  draw_partitions(screen, scene, {row, 0, h.partitions, width});
  row += h.partitions;
  draw_modules(canvas, scene, {row, 0, h.modules, width});
  row += h.modules;
  draw_streams(screen, scene, {row, 0, h.streams, width});
  row += h.streams;
  draw_changes_of(canvas, scene, {row, 0, h.changes, width}, false);
}

Heights heights_wide(const Scene& scene, int body, int width) {
  const int modules = static_cast<int>(scene.second().modules.size());
  Heights h;
  h.frames = body >= 24 ? 9 : 2;
  h.partitions = 1 + std::min(partition_rows(scene, width), std::max(1, body / 5));
  h.modules = modules > 0 && body >= 16 ? 1 + std::min(modules, std::max(1, body / 6)) : 0;
  h.streams = std::max(2, body - h.frames - h.partitions - h.modules - (body >= 24 ? 6 : 2));
  h.streams = std::min(h.streams, 1 + rows_wanted(scene, h.streams - 1));
  h.changes = body - h.frames - h.partitions - h.modules - h.streams;
  return h;
}

void draw_now_wide(Screen& screen, const Scene& scene, int rows, int width) {
  Canvas& canvas = screen.canvas;
  const Heights h = scene.view.held ? *scene.view.held : heights_wide(scene, rows - 3, width);
  screen.heights = h;
  int row = 2;
  const Place top{row, 0, h.frames, width};
  if (h.frames >= 9)
    draw_frames_wide(screen, scene, top);
  else
    draw_frames(screen, scene, top);
  row += h.frames;
  draw_partitions(screen, scene, {row, 0, h.partitions, width});
  row += h.partitions;
  draw_modules(canvas, scene, {row, 0, h.modules, width});
  row += h.modules;
  draw_streams(screen, scene, {row, 0, h.streams, width});
  row += h.streams;
  if (h.changes < 2) return;
  draw_why(canvas, scene, {row, 0, h.changes, 42});
  draw_changes_of(canvas, scene, {row, 43, h.changes, width - 43}, true);
}

// The stream that a look beside the page is of: the chosen one, or the worst.
std::optional<Key> looked_at(const Scene& scene) {
  if (scene.view.stream) return scene.view.stream;
  for (const Row& r : scene.rows)
    if (r.kind == Row::Kind::stream) return r.key;
  return std::nullopt;
}

std::optional<Key> fullest(const Scene& scene) {
  if (scene.view.partition) return scene.view.partition;
  const PartitionFigures* found = nullptr;
  const auto worth = [](const PartitionFigures& p) {
    return p.state != PartitionState::up ? 1000.0 : known(p.busy) ? p.busy : 0.0;
  };
  for (const PartitionFigures& p : scene.second().partitions)
    if (found == nullptr || worth(p) > worth(*found)) found = &p;
  return found == nullptr ? std::nullopt : std::optional(found->key);
}

void draw_beside(Screen& screen, const Scene& scene, int rows, int column, int width) {
  const int half = (rows - 1) / 2;
  const auto stream = looked_at(scene);
  if (stream) draw_stream_look(screen, scene, *stream, {0, column, std::min(half, kLookRows - 1), width});
  const auto partition = fullest(scene);
  if (partition && rows >= 40)
    draw_partition_look(screen, scene, *partition,
                        {std::min(half, kLookRows - 1), column, std::min(half, kLookRows - 1), width});
  const int at = 2 * std::min(half, kLookRows - 1);
  if (rows - 1 - at > 2) draw_changes_of(screen.canvas, scene, {at, column, rows - 1 - at, width}, true);
}

void draw_list_page(Screen& screen, const Scene& scene, int rows, int width) {
  const int body = rows - 3;
  switch (scene.view.page) {
    case Page::streams:
      return draw_streams(screen, scene, {2, 0, body, width});
    case Page::modules: {
      const int rows_each = 1 + static_cast<int>(scene.second().modules.size());
      int row = 2;
      for (const auto draw : {draw_modules, draw_modules_more}) {
        if (const int height = std::min(rows_each, 2 + body - row); height > 1)
          draw(screen.canvas, scene, {row, 0, height, width});
        row += rows_each;
      }
      if (const int left = 2 + body - row; left > 3) draw_why(screen.canvas, scene, {row, 0, left, width});
      return;
    }
    case Page::partitions: {
      const int rows_wanted = std::min(body, 1 + partition_rows(scene, width));
      draw_partitions(screen, scene, {2, 0, rows_wanted, width}, true);
      const int left = std::min(body - rows_wanted, 1 + static_cast<int>(scene.second().partitions.size()));
      if (left > 1) draw_partitions_more(screen.canvas, scene, {2 + rows_wanted, 0, left, width});
      return;
    }
    default:
      return;
  }
}

// head_width: of the first two lines, which end where they are told.
void draw_page(Screen& screen, const Scene& scene, int rows, int width, int head_width) {
  const Place body{2, 0, rows - 3, width};
  const Place whole_page{0, 0, rows - 1, width};
  if (scene.view.look == Look::stream && scene.view.stream)
    return draw_stream_look(screen, scene, *scene.view.stream, whole_page);
  if (scene.view.look == Look::partition && scene.view.partition)
    return draw_partition_look(screen, scene, *scene.view.partition, whole_page);
  if (scene.view.page == Page::leatd) return draw_daemon_page(screen, scene, whole_page);
  draw_head(screen.canvas, scene, head_width);
  switch (scene.view.page) {
    case Page::now:
      return width >= kWide ? draw_now_wide(screen, scene, rows, width) : draw_now(screen, scene, rows, width);
    case Page::users:
      return draw_users_page(screen, scene, body);
    case Page::changes:
      return draw_changes_page(screen, scene, body);
    default:
      return draw_list_page(screen, scene, rows, width);
  }
}

}  // namespace

std::string_view name_of(Page page) noexcept {
  static constexpr std::string_view kNames[] = {"now", "streams", "modules", "partitions", "users", "changes", "leatd"};
  static_assert(std::size(kNames) == kPages);
  return kNames[static_cast<std::size_t>(page)];
}

std::string_view name_of(Sort sort) noexcept {
  static constexpr std::string_view kNames[] = {"suffer", "name", "in", "good", "miss", "p99", "flying", "busy"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(Sort::count_));
  return kNames[static_cast<std::size_t>(sort)];
}

std::vector<Row> rows_of(const Second& second, const std::vector<Order::Group>& groups, const View& view) {
  std::vector<Row> rows;
  for (const Order::Group& group : groups) {
    std::vector<Row> of_group;
    const auto add = [&](const std::vector<Key>& keys) {
      for (const Key key : keys) {
        const StreamFigures* s = find(second, key);
        if (s == nullptr || (!view.filter.empty() && !view.filter.matches(*s))) continue;
        of_group.push_back({Row::Kind::stream, key, s->who->name, {}});
      }
    };
    add(group.suffer);
    add(group.well);
    if (of_group.empty()) continue;
    if (groups.size() > 1 && view.tree)
      rows.push_back({Row::Kind::group,
                      {},
                      (group.application.empty() ? "other" : group.application) + ": " +
                          std::to_string(of_group.size()) + (of_group.size() == 1 ? " stream" : " streams"),
                      {}});
    rows.insert(rows.end(), of_group.begin(), of_group.end());
  }
  return rows;
}

std::vector<Row> folded(const std::vector<Row>& rows, const Second& second, std::size_t height, bool open) {
  if (open || rows.size() <= height) return rows;
  std::vector<Row> out;
  for (std::size_t i = 0; i < rows.size();) {
    const auto well = [&](const Row& r) {
      if (r.kind != Row::Kind::stream) return false;
      const StreamFigures* s = find(second, r.key);
      return s != nullptr && s->mark == Mark::well;
    };
    if (!well(rows[i])) {
      out.push_back(rows[i++]);
      continue;
    }
    // Rows that recovered stand among the others and keep their places; those at a group's end are one row.
    std::size_t end = i;
    while (end < rows.size() && well(rows[end])) ++end;
    const bool last_of_group = end == rows.size() || rows[end].kind == Row::Kind::group;
    if (!last_of_group || end - i < 2) {
      out.insert(out.end(), rows.begin() + static_cast<std::ptrdiff_t>(i),
                 rows.begin() + static_cast<std::ptrdiff_t>(end));
      i = end;
      continue;
    }
    Row one{Row::Kind::well, {}, {}, {}};
    std::vector<std::string> names;
    for (; i < end; ++i) {
      one.keys.push_back(rows[i].key);
      names.push_back(rows[i].text);
    }
    one.text = names_together(std::move(names), 40);
    out.push_back(std::move(one));
  }
  return out;
}

Screen make_screen(const Scene& scene, int rows, int columns) {
  Screen screen{Canvas(rows, columns)};
  if (rows <= 0 || columns <= 0 || scene.facts.seconds().empty()) return screen;
  if (scene.view.help) {
    draw_help(screen.canvas, rows, columns);
    return screen;
  }
  const bool beside =
      columns >= kWide + 1 + kLookColumns && scene.view.page == Page::now && scene.view.look == Look::none;
  const int width = beside ? columns - kLookColumns - 1 : columns;
  if (rows == 1) {
    draw_head(screen.canvas, scene, columns);
    return screen;
  }
  if (beside) {
    Screen page{Canvas(rows, width)};
    draw_page(page, scene, rows, width, width - 1);
    draw_beside(screen, scene, rows, width + 1, kLookColumns);
    screen.canvas.paste(page.canvas, 0, 0);
    screen.hits.insert(screen.hits.end(), page.hits.begin(), page.hits.end());
    screen.stream_lines = page.stream_lines;
    screen.heights = page.heights;
    for (int row = 0; row + 1 < rows; ++row) screen.canvas.put_sign(row, width, U'│', {Meaning::idle, Stress::none});
  } else {
    draw_page(screen, scene, rows, columns, columns);
  }
  if (rows >= 3) draw_keys(screen, scene, rows - 1, columns);
  return screen;
}

}  // namespace leat::tools::top
