// A real leatd with real workers for tests that cross processes: started on a private folder, watched, stopped, and
// asked what it counts. Thread rule: one thread a Leatd.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "leat/client.hpp"
#include "shm/src/counters/counters.h"

namespace leat::test {

// How long what is to come may take: a limit, not a bar, for a machine that does other things may hold up any process
// for seconds.
inline constexpr std::chrono::minutes kPatience(1);

// A folder of its own under the system's temporary one; removed with everything in it.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string write(const std::string& name, const std::string& text) const;  // returns the file's path

 private:
  std::string path_;
};

struct Exit {
  int status = -1;  // exit status, or 128 + signal
  std::string err;  // what it wrote to stderr
};
// Runs a program to its end (killed after `limit`).
Exit run_to_end(const std::vector<std::string>& words, std::chrono::milliseconds limit = kPatience);

class Leatd {
 public:
  // Starts leatd on `config` (TOML; its socket is put in front) and waits until it serves. Fails the test when it does
  // not.
  // `prefix`: words put before leatd's, a program that becomes it, by its path; `uid`: who it will be then.
  explicit Leatd(const std::string& config, std::vector<std::string> options = {}, std::vector<std::string> prefix = {},
                 uid_t uid = ::getuid());
  ~Leatd();  // kill -9 if it still runs
  Leatd(const Leatd&) = delete;
  Leatd& operator=(const Leatd&) = delete;

  const std::string& socket() const { return socket_; }
  pid_t pid() const { return pid_; }
  std::vector<pid_t> workers() const;       // of the partitions, in their order; 0: none runs now
  void start();                             // again, after it ended
  void rewrite(const std::string& config);  // what it reads when it is told to, or starts again
  int stop();                               // SIGTERM; exit status
  void kill();                              // SIGKILL, waited for
  bool alive() const;
  std::string log() const;  // what it wrote to stderr

  // These two ask again where leatd only keeps silent: held up, it answers later than an observer waits.
  std::string status_json() const;                      // empty: no daemon
  std::optional<shm::CountersReader> counters() const;  // goes on while no further observer is let in
  std::optional<shm::RecordSnapshot> record(shm::RecordKind kind, std::uint32_t index) const;
  std::optional<shm::RecordSnapshot> total() const { return record(shm::RecordKind::total, 0); }
  std::vector<shm::Event> events(shm::EventKind kind) const;  // that the flight recorder holds

 private:
  ScratchFolder folder_;
  std::string config_, socket_, log_;
  std::vector<std::string> options_, prefix_;
  pid_t pid_ = 0;
};

// submitted = completed + late + dropped + failed + rejected + in flight.
bool balances(const shm::RecordSnapshot& stream_or_total);
std::uint64_t value(const shm::RecordSnapshot& record, shm::StreamCounter counter);

// Fills a frame with noise drawn from `seed` and returns the emulated executor's answer to it.
std::uint64_t paint(const leat_frame& frame, std::uint64_t seed);

// Waits, by looking again and again, until `condition` holds or the time is up.
template <class Condition>
bool eventually(Condition condition, std::chrono::milliseconds limit = kPatience) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    struct timespec pause {
      0, 1'000'000
    };
    nanosleep(&pause, nullptr);
  }
  return true;
}

// Descriptors, mappings of Leat's segments and threads of a process, for leak checks. -1: no such process.
struct Footprint {
  int descriptors = -1, mappings = -1, threads = -1;
};
Footprint footprint(pid_t pid);

}  // namespace leat::test
