#include "tools/base/subprocess/ending.h"

#include <sys/wait.h>

#include <cstring>

namespace leat::subprocess {

std::string Ending::text() const {
  switch (how) {
    case How::exited:
      return "ended with status " + std::to_string(code);
    case How::signalled:
      return "was killed by signal " + std::to_string(code) + " (" + ::strsignal(code) + ")";
    case How::timed_out:
      break;
  }
  return "exceeded its time limit and was killed";
}

Ending ending_of(int status) noexcept {
  if (WIFSIGNALED(status)) return {Ending::How::signalled, WTERMSIG(status)};
  return {Ending::How::exited, WEXITSTATUS(status)};
}

}  // namespace leat::subprocess
