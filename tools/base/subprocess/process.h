// One program started as a child of this process. What it begins with is said by Command and nothing else: no
// descriptor of this process but those named, no blocked signal, no handler, no ignored signal.
//
// Started by vfork(): the calling thread waits until the program runs or is known not to, no memory is copied and no
// page of this process becomes read-only, so that threads that must not be delayed may run beside it. Any thread may
// start one; with a death signal the thread that starts it has to live as long as the process. One thread an object.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shm/include/leat/result.hpp"
#include "tools/base/subprocess/ending.h"
#include "tools/base/text/fd.h"

namespace leat::subprocess {

// Changes to this process's environment; an empty value removes the variable.
using Environment = std::vector<std::pair<std::string, std::string>>;

enum class Group : unsigned char {
  callers,  // the terminal's Ctrl-C reaches it too
  own,      // it leads one, which is killed with it
  session,  // a session of its own: the terminal's end does not reach it
};

struct GivenFd {
  int fd;  // stays the caller's
  int as;  // its number in the child
};

struct Command {
  std::vector<std::string> words;  // at least one; the first is looked up in PATH unless it holds a slash
  std::string file = {};           // the program's file where words[0] is only its name; empty: words[0]
  Environment environment = {};
  // Standard input is empty, standard output and error are the caller's, unless they are named here.
  std::vector<GivenFd> fds = {};
  bool inherits_fds = false;  // also those of this process's that are not close-on-exec
  Group group = Group::callers;
  int death_signal = 0;  // sent by the kernel when the thread that started it ends, however that ends; 0: none
};

// Both ends close-on-exec.
struct Pipe {
  Fd read, write;
};
Result<Pipe> make_pipe();

class Process {
 public:
  Process() = default;
  // An error, one line with the program's name, where there is no such program or it cannot be started.
  static Result<Process> start(const Command& command);
  // A copy of this process that runs the function and ends with status 0, in a group of its own; it dies with the
  // thread that starts it. By fork(): only for programs with one thread.
  static Result<Process> start(const std::function<void()>& function);
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();  // kills what still runs

  // -1: none, or its end has been seen.
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  explicit operator bool() const noexcept { return pid_ > 0; }

  // Whether it has ended; its number stays its own until that is asked by one of the next.
  [[nodiscard]] bool has_ended() const noexcept;
  // How it has ended, if it has; told once. ended_by waits so long.
  std::optional<Ending> ended();
  std::optional<Ending> ended_by(Deadline deadline);
  // Waits for the end; at the deadline it is killed and the ending says timed_out. No process: a clean end.
  Ending wait(Deadline deadline);
  void signal(int number) noexcept;  // to it alone
  // SIGKILL to it and, where it leads a group, to all of that, which is there until its end has been told.
  void send_kill() noexcept;
  // The same, then its end, which is waited for 10 s at most: a driver's call may hold a process for a while.
  void kill() noexcept;

 private:
  Process(pid_t pid, bool leads_group) noexcept : pid_(pid), leads_group_(leads_group) {}
  pid_t pid_ = -1;
  bool leads_group_ = false;
};

}  // namespace leat::subprocess
