// Many users in one test: a piece of work done as another user by a thread of root's, one after the other, and
// processes of users of their own that do something and stay. Needs root. Thread rule: one thread.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace leat::test {

// While it lives this process is another user in the kernel's eyes, and root again afterwards.
class AsUser {
 public:
  explicit AsUser(uid_t uid) : done_(seteuid(uid) == 0) {}
  ~AsUser() { (void)!seteuid(0); }
  AsUser(const AsUser&) = delete;
  AsUser& operator=(const AsUser&) = delete;
  explicit operator bool() const noexcept { return done_; }

 private:
  bool done_;
};

// Processes of `count` users from `first` on. Each does its work and stays, until this process or the crowd ends.
class Crowd {
 public:
  Crowd(uid_t first, std::uint32_t count, const std::function<bool()>& work) {
    int words[2];
    if (pipe(words) != 0) return;
    const pid_t parent = getpid();
    for (std::uint32_t i = 0; i < count; ++i) {
      const pid_t pid = fork();
      if (pid == 0) {
        const uid_t uid = first + i;
        const bool other = setresgid(uid, uid, uid) == 0 && setresuid(uid, uid, uid) == 0;  // clears the signal
        const bool ends = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
        if (getppid() != parent) _exit(0);  // it ended before that
        const bool done = other && ends && work();
        (void)!write(words[1], done ? "y" : "n", 1);
        for (;;) pause();
      }
      if (pid > 0) pids_.push_back(pid);
    }
    close(words[1]);
    char word = 0;
    for (std::size_t i = 0; i < pids_.size() && read(words[0], &word, 1) == 1; ++i) did_ += word == 'y';
    close(words[0]);
  }
  ~Crowd() {
    for (const pid_t pid : pids_) {
      (void)kill(pid, SIGKILL);
      (void)waitpid(pid, nullptr, 0);
    }
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;
  std::uint32_t did() const { return did_; }  // of whom the work succeeded

 private:
  std::vector<pid_t> pids_;
  std::uint32_t did_ = 0;
};

}  // namespace leat::test
