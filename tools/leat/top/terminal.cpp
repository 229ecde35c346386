#include "tools/leat/top/terminal.h"

#define NCURSES_NOMACROS
#define NCURSES_WIDECHAR 1
#include <langinfo.h>
#include <ncurses.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <string>

// ncurses gives these names to macros.
#undef lines
#undef columns

namespace leat::tools {
namespace {

constexpr int kFatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGQUIT};
constexpr int kPolite[] = {SIGTERM, SIGINT, SIGHUP};

// What a signal handler needs to put the terminal back with calls that are allowed there: write and tcsetattr.
termios saved_settings;
char restore_text[256];
std::size_t restore_bytes = 0;
volatile std::sig_atomic_t polite_signal = 0;

void on_fatal(int number) {
  [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, restore_text, restore_bytes);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &saved_settings);
  ::signal(number, SIG_DFL);
  ::raise(number);
}

void on_polite(int number) { polite_signal = number; }

void remember_terminal() { ::tcgetattr(STDIN_FILENO, &saved_settings); }

// Called once terminfo is loaded: leave the other screen, show the cursor, plain letters.
void remember_restore_text() {
  constexpr char kNoMouse[] = "\033[?1000l\033[?1006l";
  restore_bytes = sizeof kNoMouse - 1;
  std::memcpy(restore_text, kNoMouse, restore_bytes);
  for (const char* name : {"sgr0", "rmcup", "cnorm", "rmkx"}) {
    const char* text = ::tigetstr(const_cast<char*>(name));
    if (text == nullptr || text == reinterpret_cast<const char*>(-1)) continue;
    const std::size_t bytes = std::min(std::strlen(text), sizeof restore_text - restore_bytes);
    std::memcpy(restore_text + restore_bytes, text, bytes);
    restore_bytes += bytes;
  }
}

enum class Palette : std::uint8_t { none, sixteen, many };
Palette palette = Palette::none;

constexpr short pair_of(top::Meaning meaning) { return static_cast<short>(meaning); }  // plain is the terminal's own

// Good, late, dropped, failed, idle: no green, so that red against green never matters.
void make_colours() {
  ::start_color();
  ::use_default_colors();
  palette = ::COLORS >= 256 ? Palette::many : Palette::sixteen;
  const bool many = palette == Palette::many;
  const auto red = static_cast<short>(::COLORS >= 16 ? 9 : COLOR_RED);
  ::init_pair(pair_of(top::Meaning::good), many ? 74 : COLOR_CYAN, -1);
  ::init_pair(pair_of(top::Meaning::late), many ? 221 : COLOR_YELLOW, -1);
  ::init_pair(pair_of(top::Meaning::dropped), many ? 208 : red, -1);
  ::init_pair(pair_of(top::Meaning::failed), many ? 231 : COLOR_WHITE, many ? 160 : COLOR_RED);
  ::init_pair(pair_of(top::Meaning::idle), many ? 244 : -1, -1);
}

attr_t attributes_of(const top::Cell& cell) {
  attr_t out = A_NORMAL;
  if (cell.stress == top::Stress::strong || cell.stress == top::Stress::title) out |= A_BOLD;
  if (cell.stress == top::Stress::chosen) out |= A_REVERSE;
  switch (cell.meaning) {
    case top::Meaning::plain:
      break;
    case top::Meaning::good:
      if (palette == Palette::none) break;
      out |= COLOR_PAIR(pair_of(cell.meaning));
      break;
    case top::Meaning::late:
    case top::Meaning::dropped:
      out |= palette == Palette::none ? A_BOLD : static_cast<attr_t>(COLOR_PAIR(pair_of(cell.meaning)));
      break;
    case top::Meaning::failed:
      out |= palette == Palette::none ? A_REVERSE : static_cast<attr_t>(COLOR_PAIR(pair_of(cell.meaning)));
      break;
    case top::Meaning::idle:
      if (palette == Palette::many) out |= COLOR_PAIR(pair_of(cell.meaning));
      if (palette == Palette::sixteen) out |= A_DIM;
      break;
  }
  return out;
}

top::Action action_of_code(wint_t code) {
  using top::Action;
  switch (code) {
    case KEY_F(1):
      return Action::help;
    case KEY_F(3):
      return Action::find;
    case KEY_F(4):
      return Action::filter;
    case KEY_F(5):
      return Action::tree;
    case KEY_F(6):
    case KEY_RIGHT:
      return Action::next_sort;
    case KEY_LEFT:
      return Action::previous_sort;
    case KEY_F(10):
      return Action::quit;
    case KEY_UP:
      return Action::up;
    case KEY_DOWN:
      return Action::down;
    case KEY_PPAGE:
      return Action::page_up;
    case KEY_NPAGE:
      return Action::page_down;
    case KEY_HOME:
      return Action::home;
    case KEY_END:
      return Action::newest;
    case KEY_ENTER:
      return Action::look;
    case KEY_BTAB:
      return Action::previous_sort;
    default:
      return Action::none;
  }
}

Typed typed_by_mouse() {
  MEVENT event{};
  if (::getmouse(&event) != OK) return {};
  if ((event.bstate & BUTTON4_PRESSED) != 0) return {.action = top::Action::up};
#ifdef BUTTON5_PRESSED
  if ((event.bstate & BUTTON5_PRESSED) != 0) return {.action = top::Action::down};
#endif
  if ((event.bstate & (BUTTON1_PRESSED | BUTTON1_CLICKED)) == 0) return {};
  return {.clicked = true, .row = event.y, .column = event.x};
}

}  // namespace

Result<Terminal> Terminal::open(const Wishes& wishes) {
  if (::isatty(STDOUT_FILENO) == 0 || ::isatty(STDIN_FILENO) == 0)
    return Error{"this needs a terminal; for scripts there is 'leat top --once', with --json if wanted"};
  const char* kind = std::getenv("TERM");
  int error = 0;
  if (::setupterm(nullptr, STDOUT_FILENO, &error) != OK)
    return Error{std::string("the terminal kind '") + (kind != nullptr ? kind : "") +
                 "' is unknown here; set TERM, e.g. to xterm, or use --once"};
  remember_terminal();
  remember_restore_text();
  ::initscr();
  for (const int number : kFatal) ::signal(number, on_fatal);
  struct sigaction polite {};
  polite.sa_handler = on_polite;  // without SA_RESTART: the wait for a key ends
  for (const int number : kPolite) ::sigaction(number, &polite, nullptr);
  ::cbreak();
  ::noecho();
  ::keypad(stdscr, TRUE);
  ::set_escdelay(50);
  ::curs_set(0);
  palette = Palette::none;
  if (wishes.colours && ::has_colors()) make_colours();
  if (wishes.mouse) {
    ::mouseinterval(0);
    mmask_t mask = BUTTON1_PRESSED | BUTTON4_PRESSED;
#ifdef BUTTON5_PRESSED
    mask |= BUTTON5_PRESSED;
#endif
    ::mousemask(mask, nullptr);
  }
  Terminal terminal;
  terminal.open_ = true;
  return terminal;
}

Terminal::Terminal(Terminal&& other) noexcept : open_(std::exchange(other.open_, false)) {}

Terminal::~Terminal() {
  if (!open_) return;
  ::endwin();
  for (const int number : kFatal) ::signal(number, SIG_DFL);
  for (const int number : kPolite) ::signal(number, SIG_DFL);
}

int Terminal::rows() const { return getmaxy(stdscr); }
int Terminal::columns() const { return getmaxx(stdscr); }

bool Terminal::full_signs() const {
  const char* kind = std::getenv("TERM");
  if (std::strcmp(::nl_langinfo(CODESET), "UTF-8") != 0) return false;
  if (kind != nullptr && std::strcmp(kind, "linux") == 0) return false;  // its console has few signs
  for (const wchar_t sign : {L'─', L'━', L'▁', L'█', L'▼', L'▸', L'·'})
    if (::wcwidth(sign) != 1) return false;
  return true;
}

void Terminal::draw(const top::Canvas& canvas) {
  ::erase();
  for (int row = 0; row < canvas.rows(); ++row) {
    for (int column = 0; column < canvas.columns();) {
      const top::Cell& first = canvas.at(row, column);
      const attr_t attributes = attributes_of(first);
      std::wstring run;
      int end = column;
      while (end < canvas.columns() && attributes_of(canvas.at(row, end)) == attributes) {
        if (const char32_t sign = canvas.at(row, end).sign; sign != 0) run += static_cast<wchar_t>(sign);
        ++end;
      }
      ::attrset(static_cast<int>(attributes));
      ::mvaddnwstr(row, column, run.c_str(), static_cast<int>(run.size()));
      column = end;
    }
  }
  ::attrset(A_NORMAL);
  ::refresh();
}

Typed Terminal::wait(int milliseconds) {
  ::timeout(milliseconds);
  wint_t code = 0;
  const int what = ::get_wch(&code);
  if (what == ERR) return {};
  if (what != KEY_CODE_YES) return {.letter = static_cast<char32_t>(code)};
  if (code == KEY_MOUSE) return typed_by_mouse();
  if (code == KEY_BACKSPACE) return {.letter = 127};
  return {.action = action_of_code(code)};
}

bool Terminal::ended_by_signal() { return polite_signal != 0; }

}  // namespace leat::tools
