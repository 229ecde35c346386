#include "cuda/probe/command.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "cuda/probe/child.h"

namespace leat::probe {
namespace {

constexpr std::size_t kMaxOutputBytes = 64 * 1024;

struct Pipe {
  Fd read, write;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Error{std::string("pipe: ") + std::strerror(errno)};
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of("\r\n ");
  if (end == std::string::npos) return "no output";
  const std::size_t start = text.find_last_of('\n', end);
  return text.substr(start == std::string::npos ? 0 : start + 1,
                     end - (start == std::string::npos ? 0 : start + 1) + 1);
}

// The environment is set in the child, before exec: the probe's processes that run commands have one thread.
[[noreturn]] void become(const std::vector<std::string>& words, const Environment& environment, int in, int out) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(out, STDERR_FILENO);
  for (const auto& [name, value] : environment) {
    if (value.empty()) {
      ::unsetenv(name.c_str());
    } else {
      ::setenv(name.c_str(), value.c_str(), 1);
    }
  }
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}

// Output until its end, or until the deadline (false).
bool read_all(int fd, Deadline deadline, std::string& output) {
  std::array<char, 4096> chunk{};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, static_cast<int>(std::min<long>(left, 3'600'000))) <= 0) continue;
    const ssize_t got = ::read(fd, chunk.data(), chunk.size());
    if (got == 0) return true;
    if (got < 0) {
      if (errno == EINTR) continue;
      return true;
    }
    output.append(chunk.data(), std::min(static_cast<std::size_t>(got), kMaxOutputBytes - output.size()));
  }
}

}  // namespace

Result<std::string> run_command(const std::vector<std::string>& words, const Environment& environment,
                                std::string_view input, Deadline deadline) {
  auto in = make_pipe();
  auto out = make_pipe();
  if (!in || !out) return Error{!in ? in.error() : out.error()};
  // A pipe holds 64 KiB: the whole input fits before the reader exists, so writing it here cannot block.
  if (input.size() > 4096 ||
      ::write(in->write.get(), input.data(), input.size()) != static_cast<ssize_t>(input.size())) {
    return Error{words.front() + ": its input could not be written"};
  }
  const pid_t pid = ::fork();
  if (pid < 0) return Error{std::string("fork: ") + std::strerror(errno)};
  if (pid == 0) become(words, environment, in->read.get(), out->write.get());
  in->read.reset();
  in->write.reset();
  out->write.reset();
  std::string output;
  Ending ending;
  if (!read_all(out->read.get(), deadline, output) || !reap_by(pid, deadline, ending)) {
    ::kill(pid, SIGKILL);
    reap_by(pid, after(std::chrono::seconds(5)), ending);
    return Error{words.front() + ": no end in time; it was killed"};
  }
  if (ending.clean()) return output;
  if (ending.how == Ending::How::exited && ending.code == 127 && output.empty()) {
    return Error{words.front() + ": cannot be started"};
  }
  return Error{words.front() + ": " + ending.text() + ": " + last_line(output)};
}

}  // namespace leat::probe
