#include "tools/leat/top/terminal.h"

#define NCURSES_NOMACROS
#include <ncurses.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

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
  restore_bytes = 0;
  for (const char* name : {"sgr0", "rmcup", "cnorm", "rmkx"}) {
    const char* text = ::tigetstr(const_cast<char*>(name));
    if (text == nullptr || text == reinterpret_cast<const char*>(-1)) continue;
    const std::size_t bytes = std::min(std::strlen(text), sizeof restore_text - restore_bytes);
    std::memcpy(restore_text + restore_bytes, text, bytes);
    restore_bytes += bytes;
  }
}

int attributes_of(Style style, bool colours) {
  switch (style) {
    case Style::plain:
      return A_NORMAL;
    case Style::title:
      return A_REVERSE | (colours ? A_DIM : 0);
    case Style::chosen:
      return A_REVERSE | A_BOLD;
    case Style::good:
      return A_BOLD | (colours ? COLOR_PAIR(1) : 0);
    case Style::warning:
      return colours ? COLOR_PAIR(2) : A_BOLD;
    case Style::bad:
      return A_BOLD | (colours ? COLOR_PAIR(3) : A_UNDERLINE);
    case Style::dim:
      return colours ? A_DIM : A_NORMAL;
  }
  return A_NORMAL;
}

Key key_of(int code) {
  switch (code) {
    case 'q':
    case 27:  // Escape
      return Key::quit;
    case 'h':
    case '?':
    case KEY_F(1):
      return Key::help;
    case '\t':
      return Key::next_table;
    case '>':
    case '.':
    case KEY_RIGHT:
      return Key::next_column;
    case '<':
    case ',':
    case KEY_LEFT:
      return Key::previous_column;
    case 'r':
      return Key::reverse;
    case KEY_UP:
    case 'k':
      return Key::up;
    case KEY_DOWN:
    case 'j':
      return Key::down;
    case KEY_PPAGE:
      return Key::page_up;
    case KEY_NPAGE:
      return Key::page_down;
    case 'p':
    case ' ':
      return Key::pause;
    default:
      return Key::none;
  }
}

}  // namespace

Result<Terminal> Terminal::open(bool colours) {
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
  if (colours && ::has_colors()) {
    ::start_color();
    ::use_default_colors();
    ::init_pair(1, COLOR_GREEN, -1);
    ::init_pair(2, COLOR_YELLOW, -1);
    ::init_pair(3, COLOR_RED, -1);
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

void Terminal::draw(std::span<const Line> lines) {
  ::erase();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    ::attrset(attributes_of(lines[i].style, ::has_colors() && ::COLOR_PAIRS > 3));
    ::mvaddnstr(static_cast<int>(i), 0, lines[i].text.c_str(), this->columns());
  }
  ::attrset(A_NORMAL);
  ::refresh();
}

Key Terminal::wait_key(int milliseconds) {
  ::timeout(milliseconds);
  return key_of(::getch());
}

bool Terminal::ended_by_signal() { return polite_signal != 0; }

}  // namespace leat::tools
