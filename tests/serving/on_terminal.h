// A program whose standard error is a terminal, and what it shows there. Thread rule: one thread.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

namespace leat::test {

class OnTerminal {
 public:
  // words[0]: its path.
  explicit OnTerminal(std::vector<std::string> words) : terminal_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    EXPECT_GE(terminal_, 0);
    EXPECT_EQ(::grantpt(terminal_) + ::unlockpt(terminal_), 0);
    const int inside = ::open(::ptsname(terminal_), O_RDWR | O_NOCTTY | O_CLOEXEC);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(inside, STDERR_FILENO);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(inside);
  }
  OnTerminal(const OnTerminal&) = delete;
  OnTerminal& operator=(const OnTerminal&) = delete;
  ~OnTerminal() {
    if (pid_ > 0) (void)end();
    ::close(terminal_);
  }

  // Reads on until it has shown this. False: it has ended before.
  bool shows(std::string_view text) {
    while (shown_.find(text) == std::string::npos)
      if (!read_on()) return false;
    return true;
  }
  // Its exit status.
  int end() {
    while (read_on()) {
    }
    int status = 0;
    (void)::waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  [[nodiscard]] const std::string& shown() const { return shown_; }

 private:
  bool read_on() {
    char piece[4096];
    const ssize_t n = ::read(terminal_, piece, sizeof piece);
    if (n > 0) shown_.append(piece, static_cast<std::size_t>(n));
    return n > 0;
  }

  int terminal_;
  pid_t pid_ = 0;
  std::string shown_;
};

}  // namespace leat::test
