#include "tools/leat/top/page.h"

#include <algorithm>

namespace leat::tools {
namespace {

using shm::RecordSnapshot;

std::string fit(std::string text, int width, bool right) {
  const auto room = static_cast<std::size_t>(std::max(width, 0));
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';  // a client chose this name: nothing in it may reach the terminal as a command
  }
  if (text.size() > room) {
    text.resize(room);
    if (room > 2) text.back() = '~';
  }
  const std::string space(room - text.size(), ' ');
  return right ? space + text : text + space;
}

Line cut(std::string text, int columns, Style style) { return {fit(std::move(text), columns, false), style}; }

std::string pair(const Column& column, const Window& window, const RecordSnapshot& record) {
  return std::string(column.title) + " " + shown(column.value(window, record, earlier(window, record)), column.unit);
}

// Two lines of "title value" pairs of one record, as many as fit.
void head_lines(std::vector<Line>& lines, Pane pane, const Window& window, int columns, int room) {
  const auto records = records_of(pane, window.now);
  std::string text = pane == Pane::daemon ? "leatd" : "total";
  if (records.empty()) text += "  nothing known yet";
  int left = room;
  for (const Column& column : columns_of(pane)) {
    if (records.empty() || left == 0) break;
    const std::string next = pair(column, window, records.front());
    if (static_cast<int>(text.size() + 2 + next.size()) > columns && left > 1) {
      lines.push_back(cut(text, columns, left == room ? Style::good : Style::plain));
      text = "     ";
      --left;
    }
    text += "  " + next;
  }
  while (left-- > 0) {
    lines.push_back(cut(text, columns, left + 1 == room ? Style::good : Style::plain));
    text.clear();
  }
}

Style row_style(Pane pane, const Window& window, const RecordSnapshot& record) {
  const RecordSnapshot* before = earlier(window, record);
  if (pane == Pane::partitions) {
    const auto state = record.value(shm::PartitionCounter::state);
    if (state && *state != 2) return *state == 1 ? Style::warning : Style::bad;
  }
  if (pane == Pane::users && record.value(shm::UserCounter::refused).value_or(0) != 0 && before != nullptr)
    return before->value(shm::UserCounter::refused) == record.value(shm::UserCounter::refused) ? Style::warning
                                                                                               : Style::bad;
  if (pane == Pane::streams) {
    for (const Column& column : columns_of(pane)) {
      if (column.name != "miss_percent") continue;
      const Value value = column.value(window, record, before);
      const double* misses = std::get_if<double>(&value);
      if (misses != nullptr && *misses > 10) return Style::bad;
      if (misses != nullptr && *misses > 0) return Style::warning;
    }
  }
  return Style::plain;
}

// By their first column: names.
std::vector<const RecordSnapshot*> sorted_rows(const Window& window, Pane pane) {
  const Column& column = columns_of(pane).front();
  std::vector<std::pair<Value, const RecordSnapshot*>> rows;
  for (const RecordSnapshot& record : records_of(pane, window.now))
    rows.emplace_back(column.value(window, record, earlier(window, record)), &record);
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<const RecordSnapshot*> order;
  for (const auto& [value, record] : rows) order.push_back(record);
  return order;
}

void table_lines(std::vector<Line>& lines, std::size_t table, const Window& window, int columns, int height) {
  const Pane pane = kTables[table];
  const auto all = columns_of(pane);
  int name_width = 0;
  const auto shown_columns = fitting_columns(all, columns, &name_width);
  const auto row = [&](auto&& cell) {
    std::string text;
    for (const std::size_t i : shown_columns) {
      const bool name = i == shown_columns.front();
      if (!name) text += ' ';
      text += fit(cell(i), name ? name_width : all[i].width, !name && all[i].unit != Unit::text);
    }
    return text;
  };
  const auto rows = sorted_rows(window, pane);
  lines.push_back(cut(row([&](std::size_t i) {
                        return (i == 0 ? "^" : "") + std::string(all[i].title);  // the order of rows
                      }),
                      columns, table == 0 ? Style::chosen : Style::title));
  for (int i = 0; i < height - 1; ++i) {
    if (i >= static_cast<int>(rows.size())) {
      lines.push_back(cut("", columns, Style::plain));
      continue;
    }
    const RecordSnapshot& record = *rows[static_cast<std::size_t>(i)];
    const RecordSnapshot* before = earlier(window, record);
    lines.push_back(cut(row([&](std::size_t c) { return shown(all[c].value(window, record, before), all[c].unit); }),
                        columns, row_style(pane, window, record)));
  }
}

void reason_lines(std::vector<Line>& lines, const Window& window, int columns, int height) {
  const auto found = reasons(window.now);
  lines.push_back(cut("why frames were not completed", columns, Style::title));
  for (int i = 0; i + 1 < height; ++i) {
    std::string text;
    if (i < static_cast<int>(found.size())) {
      const ReasonCount& reason = found[static_cast<std::size_t>(i)];
      text = fit(std::to_string(reason.count), 9, true) + "  " + fit(std::string(reason.name), 16, false) +
             std::string(reason.text);
    }
    lines.push_back(cut(text, columns, Style::plain));
  }
}

}  // namespace

std::vector<Line> top_page(const Window& window, int rows, int columns) {
  TopCounts counts{.reasons = static_cast<int>(reasons(window.now).size())};
  for (std::size_t i = 0; i < std::size(kTables); ++i)
    counts.tables[i] = static_cast<int>(records_of(kTables[i], window.now).size());
  const TopLayout layout = layout_top(rows, counts);
  std::vector<Line> lines;
  const int half = (layout.head.height + 1) / 2;
  if (half > 0) head_lines(lines, Pane::daemon, window, columns, half);
  if (layout.head.height > half) head_lines(lines, Pane::total, window, columns, layout.head.height - half);
  for (std::size_t i = 0; i < std::size(kTables); ++i) {
    if (layout.tables[i].height > 0) table_lines(lines, i, window, columns, layout.tables[i].height);
  }
  if (layout.reasons.height > 0) reason_lines(lines, window, columns, layout.reasons.height);
  lines.resize(static_cast<std::size_t>(std::max(rows, 0)), cut("", columns, Style::plain));
  return lines;
}

}  // namespace leat::tools
