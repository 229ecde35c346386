#include "tools/base/subprocess/run.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

namespace leat::subprocess {
namespace {

constexpr std::size_t kMaxInput = 4096;     // fits into any pipe, so that nobody has to write while it runs
constexpr std::chrono::seconds kDeath{10};  // a driver's call may hold a killed process for a while
constexpr int kLookMs = 10;                 // where the end of a process cannot be waited for

// The caller's end of a child's output.
class Captured {
 public:
  explicit Captured(std::size_t max_bytes) : max_bytes_(max_bytes) {}
  Status open() {
    auto pipe = make_pipe();
    if (!pipe) return Error{pipe.error()};
    ::fcntl(pipe->read.get(), F_SETFL, O_NONBLOCK);
    read_ = std::move(pipe->read);
    write_ = std::move(pipe->write);
    return Done{};
  }
  [[nodiscard]] int childs() const { return write_.get(); }
  void started() { write_.reset(); }
  [[nodiscard]] int fd() const { return read_.get(); }  // -1: nothing will follow
  // Takes what is there; of a child that writes as fast as it is read, a part.
  void drain(std::string& text) {
    std::array<char, 16384> chunk;
    for (int chunks = 0; read_ && chunks < kMaxChunks; ++chunks) {
      const ssize_t got = ::read(read_.get(), chunk.data(), chunk.size());
      if (got > 0) {
        text.append(chunk.data(), std::min(static_cast<std::size_t>(got), max_bytes_ - text.size()));
      } else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
        read_.reset();
      } else if (errno == EAGAIN) {
        return;
      }
    }
  }

 private:
  static constexpr int kMaxChunks = 64;
  std::size_t max_bytes_;
  Fd read_, write_;
};

// Reads until the process has ended (true), or the deadline.
bool follow(const Process& process, Deadline deadline, Captured& out, Captured& err, Run& run) {
  const Fd ended(static_cast<int>(::syscall(SYS_pidfd_open, process.pid(), 0)));
  while (!process.has_ended()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    std::array<pollfd, 3> polled{{{ended.get(), POLLIN, 0}, {out.fd(), POLLIN, 0}, {err.fd(), POLLIN, 0}}};
    ::poll(polled.data(), polled.size(), static_cast<int>(std::min<long>(left, ended ? 3'600'000 : kLookMs)));
    out.drain(run.output);
    err.drain(run.errors);
  }
  return true;
}

// Sees a child through, which leads a group of its own, and leaves nothing of it.
Run see_through(Process process, Deadline deadline, Captured& out, Captured& err) {
  Run run;
  out.started();
  err.started();
  const bool in_time = follow(process, deadline, out, err, run);
  process.send_kill();  // or what it has left in its group
  const auto ending = process.ended_by(after(kDeath));
  run.ending = in_time && ending ? *ending : Ending{Ending::How::timed_out, SIGKILL};
  out.drain(run.output);
  err.drain(run.errors);
  return run;
}

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(fd, text.data(), text.size());
    if (wrote < 0 && errno != EINTR) return;
    text.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(0, wrote)));
  }
}

}  // namespace

std::string last_line(std::string_view text) {
  const std::size_t end = text.find_last_not_of("\r\n ");
  if (end == std::string_view::npos) return {};
  const std::size_t before = text.find_last_of('\n', end);
  const std::size_t start = before == std::string_view::npos ? 0 : before + 1;
  return std::string(text.substr(start, end + 1 - start));
}

Result<Run> run(Command command, const RunOptions& options) {
  const Deadline deadline = after(options.limit);
  Captured out(options.max_bytes), err(options.max_bytes);
  if (auto opened = out.open(); !opened) return Error{opened.error()};
  command.fds.push_back({out.childs(), STDOUT_FILENO});
  if (options.errors == Errors::apart) {
    if (auto opened = err.open(); !opened) return Error{opened.error()};
    command.fds.push_back({err.childs(), STDERR_FILENO});
  } else if (options.errors == Errors::with_output) {
    command.fds.push_back({out.childs(), STDERR_FILENO});
  }
  Fd input;
  if (!options.input.empty()) {
    auto pipe = make_pipe();
    if (!pipe) return Error{pipe.error()};
    if (options.input.size() > kMaxInput) return Error{"an input of more than 4096 bytes"};
    write_all(pipe->write.get(), options.input);
    input = std::move(pipe->read);
    command.fds.push_back({input.get(), STDIN_FILENO});
  }
  command.group = Group::own;
  command.death_signal = SIGKILL;
  auto process = Process::start(command);
  if (!process) return Error{process.error()};
  return see_through(std::move(*process), deadline, out, err);
}

Result<std::string> output_of(const Command& command, const RunOptions& options) {
  auto ran = run(command, options);
  if (!ran) return Error{ran.error()};
  if (ran->ending.clean()) return std::move(ran->output);
  const std::string line = last_line(ran->errors.empty() ? ran->output : ran->errors);
  return Error{command.words[0] + ": " + ran->ending.text() + ": " + (line.empty() ? "no output" : line)};
}

Result<Run> run_function(const std::function<std::string()>& function, const RunOptions& options) {
  const Deadline deadline = after(options.limit);
  Captured out(options.max_bytes), err(options.max_bytes);
  if (auto opened = out.open(); !opened) return Error{opened.error()};
  if (options.errors == Errors::apart) {
    if (auto opened = err.open(); !opened) return Error{opened.error()};
  }
  auto process = Process::start([&] {
    if (err.fd() >= 0 && ::dup2(err.childs(), STDERR_FILENO) < 0) ::_exit(127);
    write_all(out.childs(), function());
  });
  if (!process) return Error{process.error()};
  return see_through(std::move(*process), deadline, out, err);
}

}  // namespace leat::subprocess
