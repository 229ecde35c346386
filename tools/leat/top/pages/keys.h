// What keys do, and which of them a page tells of. One table: the keys' row, the help page and the mouse read it.
#pragma once

#include <string>
#include <vector>

#include "tools/leat/top/pages/view.h"

namespace leat::tools::top {

enum class Action : std::uint8_t {
  none,
  quit,
  back,  // Esc
  help,
  find,
  filter,
  tree,
  sort,
  look,
  up,
  down,
  page_up,
  page_down,
  home,
  end_of_list,
  pin,
  open,
  close,
  toggle_all,
  freeze_order,
  pause,
  earlier,
  later,
  much_earlier,
  much_later,
  newest,
  minutes,
  previous_sort,
  next_sort,
  reverse,
  by_suffering,
  by_name,
  user,
  room,
  save,
  record,
  next_page,
  page_1,
  page_2,
  page_3,
  page_4,
  page_5,
  page_6,
  page_7
};

// Of a letter that was typed; what has no letter (arrows, F keys) the terminal knows.
[[nodiscard]] Action action_of(char32_t letter, bool replayed) noexcept;

struct KeyHint {
  std::string text;
  Action action = Action::none;
};
[[nodiscard]] std::vector<KeyHint> hints_of(const View& view, bool replayed);

// What is behind a page: how a change of the choice is made. `height`: rows of streams that the last page had.
struct Told {
  bool quit = false, save = false, record = false;
  int step_seconds = 0;  // in time; 0: none
  bool newest = false, pause = false;
};
[[nodiscard]] Told act(Action action, const Second& second, const std::vector<Row>& rows, int height, View* view);
// A letter of a word that is being typed; Enter is '\n', Escape 27, Backspace 8 or 127. False: nothing is being typed.
bool type(char32_t letter, const Second& second, const std::vector<Row>& rows, int height, View* view);
// A click on what was drawn; `again`: on the row that the cursor was on.
[[nodiscard]] Told click(const Screen& screen, int row, int column, const Second& second, const std::vector<Row>& rows,
                         View* view);

}  // namespace leat::tools::top
