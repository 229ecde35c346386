#include "tools/leat/top/pages/keys.h"

#include <algorithm>

#include "tools/leat/top/facts/text.h"
#include "tools/leat/top/pages/parts.h"

namespace leat::tools::top {
namespace {

Key key_of(const Row& row) { return row.kind == Row::Kind::well ? row.keys.front() : row.key; }

bool stands_on(const Row& row, Key key) {
  return row.kind == Row::Kind::stream ? row.key == key
                                       : std::find(row.keys.begin(), row.keys.end(), key) != row.keys.end();
}

void move_cursor(const std::vector<Row>& shown, int by, int height, View* view) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < shown.size(); ++i)
    if (shown[i].kind != Row::Kind::group) places.push_back(i);
  if (places.empty()) return;
  int at = -1;
  for (std::size_t i = 0; i < places.size(); ++i)
    if (view->stream && stands_on(shown[places[i]], *view->stream)) at = static_cast<int>(i);
  const int last = static_cast<int>(places.size()) - 1;
  const int next = at < 0 ? (by > 0 ? 0 : last) : std::clamp(at + by, 0, last);
  const int moved = at < 0 ? 0
                           : static_cast<int>(places[static_cast<std::size_t>(next)]) -
                                 static_cast<int>(places[static_cast<std::size_t>(at)]);
  view->stream = key_of(shown[places[static_cast<std::size_t>(next)]]);
  const int line = at < 0 ? static_cast<int>(places[static_cast<std::size_t>(next)]) : view->cursor_line + moved;
  view->cursor_line = std::clamp(line, 0, std::max(height - 1, 0));
}

void move_partition(const Second& second, int by, View* view) {
  if (second.partitions.empty()) return;
  int at = -1;
  for (std::size_t i = 0; i < second.partitions.size(); ++i)
    if (view->partition == second.partitions[i].key) at = static_cast<int>(i);
  const int last = static_cast<int>(second.partitions.size()) - 1;
  view->partition = second.partitions[static_cast<std::size_t>(at < 0 ? 0 : std::clamp(at + by, 0, last))].key;
}

void move(const Second& second, const std::vector<Row>& rows, int by, int height, View* view) {
  if (view->look == Look::partition || (view->look == Look::none && view->page == Page::partitions))
    return move_partition(second, by, view);
  if (view->page == Page::changes) {
    view->scroll = std::max(0, view->scroll + by);
    return;
  }
  const bool one_by_one = view->look == Look::stream;
  move_cursor(one_by_one ? rows : folded(rows, second, static_cast<std::size_t>(std::max(height, 1)), view->open), by,
              height, view);
}

void look(const Second& second, const std::vector<Row>& rows, int height, View* view) {
  if (view->page == Page::partitions) {
    if (!view->partition) move_partition(second, 0, view);
    if (view->partition) view->look = Look::partition;
    return;
  }
  const auto shown = folded(rows, second, static_cast<std::size_t>(std::max(height, 1)), view->open);
  for (const Row& row : shown)
    if (row.kind == Row::Kind::well && view->stream && stands_on(row, *view->stream)) {
      view->open = true;  // what Enter looks into is who they are
      return;
    }
  if (!view->stream) move_cursor(shown, 1, height, view);
  if (view->stream) view->look = Look::stream;
}

void go_back(View* view) {
  if (view->look != Look::none)
    view->look = Look::none;
  else if (!view->filter.empty())
    view->filter = Filter();
  else if (view->stream || view->partition)
    view->stream.reset(), view->partition.reset();
  else
    view->page = Page::now;
  view->scroll = 0;
}

void sort_by(Sort sort, View* view) {
  if (view->sort == sort && sort != Sort::suffer)
    view->reversed = !view->reversed;
  else
    view->reversed = false;
  view->sort = sort;
}

void step_sort(int by, View* view) {
  constexpr int kCount = static_cast<int>(Sort::count_);
  view->sort = static_cast<Sort>((static_cast<int>(view->sort) + by + kCount) % kCount);
  view->reversed = false;
}

void find_typed(const Second& second, const std::vector<Row>& rows, int height, View* view) {
  const std::string wanted = view->typed.substr(1);
  if (wanted.empty()) return;
  for (const Row& row : rows) {
    if (row.kind != Row::Kind::stream || row.text.find(wanted) == std::string::npos) continue;
    const auto shown = folded(rows, second, static_cast<std::size_t>(std::max(height, 1)), view->open);
    view->stream = row.key;
    for (std::size_t i = 0; i < shown.size(); ++i)
      if (shown[i].kind != Row::Kind::group && stands_on(shown[i], row.key))
        view->cursor_line = std::clamp(static_cast<int>(i), 0, std::max(height - 1, 0));
    return;
  }
  view->notice = "no stream is called '" + wanted + "'";
}

// What only the choice knows of: pages, sorting, what is shown. False: it is none of these.
bool choose(Action action, View* view) {
  switch (action) {
    case Action::back:
      go_back(view);
      return true;
    case Action::help:
      view->help = true;
      return true;
    case Action::find:
      view->typed = "/";
      return true;
    case Action::filter:
      view->typed = "\\" + view->filter.text();
      return true;
    case Action::user:
      view->typed = "\\user=";
      return true;
    case Action::tree:
      view->tree = !view->tree;
      return true;
    case Action::sort:
    case Action::next_sort:
      step_sort(1, view);
      return true;
    case Action::previous_sort:
      step_sort(-1, view);
      return true;
    case Action::reverse:
      view->reversed = !view->reversed;
      return true;
    case Action::by_suffering:
      sort_by(Sort::suffer, view);
      return true;
    case Action::by_name:
      view->sort = Sort::name;
      view->reversed = false;
      return true;
    case Action::pin:
      if (view->stream && !view->pinned.erase(*view->stream)) view->pinned.insert(*view->stream);
      return true;
    case Action::open:
    case Action::close:
      view->open = action == Action::open;
      return true;
    case Action::toggle_all:
      view->open = !view->open;
      return true;
    case Action::freeze_order:
      view->frozen = !view->frozen;
      return true;
    case Action::minutes:
      view->minutes = !view->minutes;
      return true;
    default:
      return false;
  }
}

// Another page; it begins without a look.
bool turn_page(Action action, View* view) {
  Page page = view->page;
  if (action == Action::room)
    page = Page::users;
  else if (action == Action::next_page)
    page = static_cast<Page>((static_cast<std::size_t>(view->page) + 1) % kPages);
  else if (action >= Action::page_1 && action <= Action::page_7)
    page = static_cast<Page>(static_cast<int>(action) - static_cast<int>(Action::page_1));
  else
    return false;
  view->page = page;
  view->look = Look::none;
  view->scroll = 0;
  return true;
}

// What whoever drives the screen must do.
Told told_of(Action action) {
  switch (action) {
    case Action::quit:
      return {.quit = true};
    case Action::save:
      return {.save = true};
    case Action::record:
      return {.record = true};
    case Action::pause:
      return {.pause = true};
    case Action::newest:
    case Action::end_of_list:
      return {.newest = true};
    case Action::earlier:
      return {.step_seconds = -1};
    case Action::later:
      return {.step_seconds = 1};
    case Action::much_earlier:
      return {.step_seconds = -10};
    case Action::much_later:
      return {.step_seconds = 10};
    default:
      return {};
  }
}

}  // namespace

Action action_of(char32_t letter, bool replayed) noexcept {
  switch (letter) {
    case U'q':
      return Action::quit;
    case 27:
      return Action::back;
    case U'h':
    case U'?':
      return Action::help;
    case U'/':
      return Action::find;
    case U'\\':
      return Action::filter;
    case U't':
      return Action::tree;
    case U'\n':
    case U'\r':
      return Action::look;
    case U'k':
      return Action::up;
    case U'j':
      return Action::down;
    case U' ':
      return replayed ? Action::pause : Action::pin;
    case U'+':
      return Action::open;
    case U'-':
      return Action::close;
    case U'*':
      return Action::toggle_all;
    case U'z':
      return Action::freeze_order;
    case U'p':
    case U'Z':
      return Action::pause;
    case U'[':
      return Action::earlier;
    case U']':
      return Action::later;
    case U'{':
      return Action::much_earlier;
    case U'}':
      return Action::much_later;
    case U'g':
      return Action::minutes;
    case U'<':
    case U',':
      return Action::previous_sort;
    case U'>':
    case U'.':
      return Action::next_sort;
    case U'I':
    case U'r':
      return Action::reverse;
    case U'P':
      return Action::by_suffering;
    case U'N':
      return Action::by_name;
    case U'u':
      return Action::user;
    case U'R':
      return Action::room;
    case U'w':
      return Action::save;
    case U'W':
      return Action::record;
    case U'\t':
      return Action::next_page;
    default:
      break;
  }
  if (letter >= U'1' && letter <= U'7')
    return static_cast<Action>(static_cast<int>(Action::page_1) + static_cast<int>(letter - U'1'));
  return Action::none;
}

std::vector<KeyHint> hints_of(const View& view, bool replayed) {
  if (view.look != Look::none)
    return {{"Esc Back", Action::back},         {"Down Next", Action::down},  {"[ ] 1 s", Action::earlier},
            {"{ } 10 s", Action::much_earlier}, {"g 10min", Action::minutes}, {"w Save", Action::save},
            {"F1Help", Action::help},           {"qQuit", Action::quit}};
  if (replayed)
    return {{"Space Play", Action::pause}, {"[ ] 1 s", Action::earlier}, {"{ } 10 s", Action::much_earlier},
            {"F4Filter", Action::filter},  {"Enter Look", Action::look}, {"g 10min", Action::minutes},
            {"F1Help", Action::help},      {"qQuit", Action::quit}};
  if (view.page == Page::leatd || view.page == Page::changes || view.page == Page::users)
    return {{"1 Now", Action::page_1},   {"2 Streams", Action::page_2}, {"3 Modules", Action::page_3},
            {"4 Parts", Action::page_4}, {"5 Users", Action::page_5},   {"6 Changes", Action::page_6},
            {"7 leatd", Action::page_7}, {"F1Help", Action::help},      {"qQuit", Action::quit}};
  return {{"F1Help", Action::help},
          {"F3Find", Action::find},
          {"F4Filter", Action::filter},
          {"F5Tree", Action::tree},
          {"F6Sort", Action::next_sort},
          {"Enter Look", Action::look},
          {view.open ? "- Fold" : "+ All", Action::toggle_all},
          {"g 10min", Action::minutes},
          {"7 leatd", Action::page_7},
          {"qQuit", Action::quit},
          {"[ ] { } In time", Action::earlier},
          {"w Save", Action::save},
          {"W Record", Action::record}};
}

Told act(Action action, const Second& second, const std::vector<Row>& rows, int height, View* view) {
  if (view->help && action != Action::none) {
    view->help = false;
    return {.quit = action == Action::quit};
  }
  if (action != Action::none) view->notice.clear();
  if (choose(action, view) || turn_page(action, view)) return {};
  const int page = std::max(height - 1, 1);
  switch (action) {
    case Action::look:
      look(second, rows, height, view);
      return {};
    case Action::up:
      move(second, rows, -1, height, view);
      return {};
    case Action::down:
      move(second, rows, 1, height, view);
      return {};
    case Action::page_up:
      move(second, rows, -page, height, view);
      return {};
    case Action::page_down:
      move(second, rows, page, height, view);
      return {};
    case Action::home:
      move(second, rows, -100'000, height, view);
      return {};
    default:
      return told_of(action);
  }
}

bool type(char32_t letter, const Second& second, const std::vector<Row>& rows, int height, View* view) {
  if (view->typed.empty()) return false;
  if (letter == 27) {
    view->typed.clear();
  } else if (letter == U'\n' || letter == U'\r') {
    if (view->typed.front() == '/') {
      find_typed(second, rows, height, view);
    } else if (auto filter = Filter::parse(view->typed.substr(1)); filter.ok()) {
      view->filter = std::move(*filter);
    } else {
      view->notice = filter.error();
    }
    view->typed.clear();
  } else if (letter == 8 || letter == 127) {
    while (view->typed.size() > 1 && (static_cast<unsigned char>(view->typed.back()) & 0xc0u) == 0x80u)
      view->typed.pop_back();
    if (view->typed.size() > 1) view->typed.pop_back();
  } else if (columns_of(letter) > 0 && view->typed.size() < 60) {
    append_utf8(&view->typed, letter);
  }
  return true;
}

Told click(const Screen& screen, int row, int column, const Second& second, const std::vector<Row>& rows, View* view) {
  Told told;
  for (const Hit& hit : screen.hits) {
    if (hit.row != row || column < hit.from || column >= hit.end) continue;
    switch (hit.what) {
      case Hit::What::key:
        if (hit.value < 0) {
          view->open = !view->open;
          return told;
        }
        return act(static_cast<Action>(hit.value), second, rows, screen.stream_lines, view);
      case Hit::What::sort:
        sort_by(static_cast<Sort>(hit.value), view);
        return told;
      case Hit::What::row:
        if (view->stream == hit.key) view->look = Look::stream;
        view->stream = hit.key;
        view->cursor_line = hit.value;
        return told;
      case Hit::What::partition:
        if (view->partition == hit.key) view->look = Look::partition;
        view->partition = hit.key;
        return told;
      case Hit::What::time:
        told.step_seconds = -(hit.end - 1 - column) * hit.value;
        return told;
    }
  }
  return told;
}

void draw_help(Canvas& canvas, int rows, int columns) {
  static constexpr std::string_view kLines[] = {
      "leat top: what leatd does, read from its counters; nothing is asked of it.",
      "",
      "PAGES                           FIND                    SIGNS",
      "1 Now     2 Streams             / F3   search           ▼ dropped  ▲ late",
      "3 Modules 4 Partitions          \\ F4   filter           × failed   · none came",
      "5 Users   6 Changes             u      one user         ~ near its SLO",
      "7 leatd   Tab  next             R      room for more",
      "                                                        60 s",
      "ROWS                            ORDER                   ▁ none missed  ▂ to 1%",
      "Up Down j k  choose             < > F6 column           ▃ 5  ▄ 10  ▅ 20  ▆ 40",
      "Enter        look closer        I r    turn round       ▇ more, per cent",
      "Esc          back               P      who suffers",
      "Space        pin to the top     N      name             BARS",
      "t  F5        groups             z      order stands     ━ p50 ─ p99 │ deadline",
      "+ - *        open, close                                ━ busy  ─ overhead",
      "                                FILES",
      "TIME                            w      save the screen  FIGURES",
      "p  Z         stop the page      W      record on, off   of 5 s, or as they say",
      "[ ]  { }     1 s, 10 s back                             -  not known, not zero",
      "End          now                FILTER                  <  too small to round",
      "g            60 s, 10 min       yard  app=plates  !well  user=yard  a|b",
      "                                miss>5  p99>80%slo  in<  good<  flying>",
      "any key: back                                 every column: leat top --columns"};
  int row = 0;
  for (const std::string_view line : kLines) {
    if (row >= rows) break;
    const bool title = line.starts_with("PAGES") || line.starts_with("ROWS") || line.starts_with("TIME");
    canvas.put(row++, 1, line, {Meaning::plain, title || row == 1 ? Stress::strong : Stress::none}, columns);
  }
}

}  // namespace leat::tools::top
