// The terminal is left as it was found: in good order, and by a fatal signal. On a terminal of its own (a pty).
#include "tools/leat/top/terminal.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

#include <csignal>
#include <cstdlib>
#include <string>

namespace leat::tools {
namespace {

struct Ended {
  std::string written;
  int status = 0;
  termios before{}, after{};
};

// Opens a Terminal in a child on a pty of 24 x 80, draws, and ends as told.
Ended run_on_pty(int signal_number) {
  Ended outcome;
  winsize size{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
  int master = -1, slave = -1;
  EXPECT_EQ(::openpty(&master, &slave, nullptr, nullptr, &size), 0);
  ::tcgetattr(slave, &outcome.before);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(master);
    ::login_tty(slave);
    ::setenv("TERM", "xterm", 1);
    {
      auto terminal = Terminal::open({});
      if (!terminal.ok()) ::_exit(3);
      top::Canvas page(24, 80);
      page.put(0, 0, "a line of the page", {top::Meaning::late, top::Stress::strong});
      terminal->draw(page);
      if (terminal->rows() != 24 || terminal->columns() != 80) ::_exit(4);
      if (signal_number != 0) ::raise(signal_number);
    }
    ::_exit(0);
  }
  // The slave stays open here, so that its settings can be read after the child has ended.
  EXPECT_EQ(::waitpid(child, &outcome.status, 0), child);
  ::tcgetattr(slave, &outcome.after);
  ::close(slave);
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(master, buffer, sizeof buffer)) > 0;)
    outcome.written.append(buffer, static_cast<std::size_t>(n));
  ::close(master);
  return outcome;
}

class Restores : public ::testing::TestWithParam<int> {};

TEST_P(Restores, TheTerminal) {
  const Ended outcome = run_on_pty(GetParam());
  if (GetParam() == 0 || GetParam() == SIGTERM) {
    EXPECT_TRUE(WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) == 0) << outcome.status;
  } else {
    EXPECT_TRUE(WIFSIGNALED(outcome.status) && WTERMSIG(outcome.status) == GetParam()) << outcome.status;
  }
  EXPECT_EQ(outcome.after.c_lflag & (ICANON | ECHO), outcome.before.c_lflag & (ICANON | ECHO));
  EXPECT_NE(outcome.before.c_lflag & ECHO, 0U);
  const std::size_t text = outcome.written.find("a line of the page");
  ASSERT_NE(text, std::string::npos);
  EXPECT_NE(outcome.written.find("\033[?1049l", text), std::string::npos) << "the other screen was not left";
  EXPECT_NE(outcome.written.find("\033[?25h", text), std::string::npos) << "the cursor was not shown again";
}
INSTANTIATE_TEST_SUITE_P(Ends, Restores, ::testing::Values(0, SIGTERM, SIGSEGV, SIGABRT, SIGBUS));

TEST(Terminal, WithoutATerminalSaysWhatElseThereIs) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const int saved = ::dup(STDOUT_FILENO);
  ::dup2(ends[1], STDOUT_FILENO);
  const auto terminal = Terminal::open({.colours = false});
  ::dup2(saved, STDOUT_FILENO);
  for (const int fd : {saved, ends[0], ends[1]}) ::close(fd);
  ASSERT_FALSE(terminal.ok());
  EXPECT_NE(terminal.error().find("--once"), std::string::npos);
}

}  // namespace
}  // namespace leat::tools
